#!/bin/sh
# Does SQLite keep acknowledged orders over power cuts? In WAL mode: with synchronous=FULL yes, with NORMAL no.
set -eu
cd "$(dirname "$0")"
leyden=${LEYDEN:-leyden}
"$leyden" crashtest doctor >/dev/null 2>&1 || { echo "skipped: $("$leyden" crashtest doctor 2>&1 | tail -n 2 | tr '\n' ' ')"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
crashtest() {
    "$leyden" crashtest devices/tlc-datacenter --set device.buffer.region=none --size "32 MiB" --latency off \
        --work "python3 work.py $1" --check "python3 check.py" --states "${STATES:-60}" --out "$out/$1"
}
echo "synchronous=FULL:"
crashtest FULL
echo "synchronous=NORMAL:"
status=0
crashtest NORMAL || status=$?
# 1: a lawful drive can lose what was acknowledged.
[ "$status" -eq 1 ]
