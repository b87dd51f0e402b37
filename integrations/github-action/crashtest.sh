#!/usr/bin/env bash
# Installs a release of Leyden and runs one crash test as root; the variables are the action's inputs.
# GitLab and others call it as it is: docs/ci.md.
set -euo pipefail

as_root=()
[ "$(id -u)" -eq 0 ] || as_root=(sudo --preserve-env)

leyden=${BINARY:-}
if [ -z "$leyden" ]; then
    name=leyden-${VERSION:?the release to install}-linux-$(uname -m)
    folder=$(mktemp -d)
    curl -fsSL --retry 3 -o "$folder/$name.tar.gz" "${URL:?where releases are}/v$VERSION/$name.tar.gz"
    curl -fsSL --retry 3 -o "$folder/SHA256SUMS" "$URL/v$VERSION/SHA256SUMS"
    (cd "$folder" && sha256sum --check --ignore-missing --strict SHA256SUMS)
    tar -xzf "$folder/$name.tar.gz" -C "$folder"
    leyden=$folder/$name/bin/leyden
fi

if ! command -v fusermount3 >/dev/null && command -v apt-get >/dev/null; then
    "${as_root[@]}" apt-get install -y --no-install-recommends fuse3 e2fsprogs
fi
"${as_root[@]}" "$leyden" crashtest doctor

command=("$leyden" crashtest "${DRIVE:-devices/tlc-datacenter}" --work "${WORK:?}" --check "${CHECK:?}"
    --states "${STATES:-500}" --out "${OUT:-leyden-crashtest}")
[ -z "${SETUP:-}" ] || command+=(--setup "$SETUP")
# Words, split as a shell does: each is one argument.
eval "options=(${OPTIONS:-})"
# shellcheck disable=SC2154  # eval sets it
command+=("${options[@]}")
status=0
"${as_root[@]}" "${command[@]}" || status=$?
# What root wrote is the user's to upload.
"${as_root[@]}" chown -R "$(id -u):$(id -g)" "${OUT:-leyden-crashtest}" 2>/dev/null || true
exit $status
