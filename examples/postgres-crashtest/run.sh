#!/bin/sh
# Does PostgreSQL keep acknowledged orders over power cuts? With fsync=on yes, with fsync=off no.
set -eu
cd "$(dirname "$0")"
leyden=${LEYDEN:-leyden}
"$leyden" crashtest doctor >/dev/null 2>&1 || { echo "skipped: $("$leyden" crashtest doctor 2>&1 | tail -n 2 | tr '\n' ' ')"; exit 77; }
ls /usr/lib/postgresql/*/bin/postgres >/dev/null 2>&1 || { echo "skipped: PostgreSQL is missing (Debian: postgresql)"; exit 77; }
out=$(mktemp -d)
# PostgreSQL refuses to run as root, and its user must reach the mounted drive.
chmod 755 "$out"
trap 'rm -rf "$out"' EXIT
crashtest() {
    FSYNC=$1 "$leyden" crashtest devices/tlc-datacenter --set device.buffer.region=none --size "256 MiB" --latency off \
        --setup ./setup.sh --work ./work.sh --check ./check.sh --states "${STATES:-20}" --out "$out/$1"
}
echo "fsync=on:"
crashtest on
echo "fsync=off:"
status=0
crashtest off || status=$?
[ "$status" -eq 1 ]
