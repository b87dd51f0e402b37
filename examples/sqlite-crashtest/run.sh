#!/bin/sh
# Does SQLite keep acknowledged orders over power cuts? In WAL mode: with synchronous=FULL yes, with NORMAL no.
#
#     run.sh             below ext4, on a modelled drive; takes root
#     run.sh --files     at the level of files
set -eu
cd "$(dirname "$0")"
leyden=${LEYDEN:-leyden}
if [ "${1:-}" != --files ]; then
    set -- devices/tlc-datacenter --set device.buffer.region=none --size "32 MiB" --latency off --states "${STATES:-60}"
    "$leyden" crashtest doctor >/dev/null 2>&1 || { echo "skipped: $("$leyden" crashtest doctor 2>&1 | tail -n 2 | tr '\n' ' ')"; exit 77; }
fi
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
crashtest() {
    setting=$1
    shift
    "$leyden" crashtest "$@" --work "python3 work.py $setting" --check "python3 check.py" --out "$out/$setting"
}
echo "synchronous=FULL:"
crashtest FULL "$@"
echo "synchronous=NORMAL:"
status=0
crashtest NORMAL "$@" || status=$?
# 1: a lawful drive can lose what was acknowledged.
[ "$status" -eq 1 ]
