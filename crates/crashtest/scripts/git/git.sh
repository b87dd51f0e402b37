#!/bin/sh
# git under `leyden crashtest`: a setup, a work, and a check.
#
#     git.sh setup [KEY=VALUE]     a key of git's configuration, like core.fsync=all
#     git.sh work COMMITS
#     git.sh check
#
# Each commit is acknowledged when `git commit` has returned.
set -u
export GIT_CONFIG_NOSYSTEM=1 GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
export HOME=${LEYDEN_TMP:-/tmp}
repository=$LEYDEN_MOUNT/repository
case $1 in
setup)
    echo "version $(git --version)"
    git init -q "$repository" || exit 1
    [ -z "${2:-}" ] || git -C "$repository" config "${2%%=*}" "${2#*=}"
    ;;
work)
    cd "$repository" || exit 1
    for number in $(seq 1 "$2"); do
        echo "line $number" >>file
        git add file && git commit -q -m "$number" || exit 1
        echo "ack $number" >>"$LEYDEN_ACK"
    done
    ;;
check)
    promised=$(wc -l <"$LEYDEN_ACKS")
    git config --global --add safe.directory '*'
    cd "$repository" || exit 1
    if ! git rev-parse -q --verify HEAD >/dev/null; then
        [ "$promised" -eq 0 ] || { echo "lost all $promised commits"; exit 1; }
        exit 0
    fi
    if ! said=$(git fsck --full --no-dangling 2>&1); then
        echo "$said" | head -n 5
        exit 1
    fi
    found=$(git rev-list --count HEAD) || exit 1
    [ "$found" -ge "$promised" ] || { echo "lost $((promised - found)) acknowledged commits of $promised"; exit 1; }
    ;;
esac
