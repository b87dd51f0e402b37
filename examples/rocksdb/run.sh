#!/bin/sh
# RocksDB on a zoned drive: db_bench is killed amid its work (a power cut); the database opens and is consistent.
set -eu
leyden=${LEYDEN:-leyden}
plugin=${LEYDEN_ROCKSDB:-$(cd "$(dirname "$0")/../.." && pwd)/build}
[ -e "$plugin/libleyden_rocksdb.so" ] || { echo "skipped: no libleyden_rocksdb.so in $plugin (docs/rocksdb.md)"; exit 77; }
for tool in db_bench ldb; do
    command -v $tool >/dev/null || { echo "skipped: $tool is missing (Debian: rocksdb-tools)"; exit 77; }
done
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
export LD_LIBRARY_PATH="$plugin${LEYDEN_LIBRARY_DIR:+:$LEYDEN_LIBRARY_DIR}"
rocks() { tool=$1; shift; LD_PRELOAD=libleyden_rocksdb.so "$tool" --fs_uri="leyden:$out/rocks.leyden" --db=/bench "$@"; }
"$leyden" image create --drive devices/zns --set device.zoned.zrwa.count=4 "$out/rocks.leyden"
"$plugin/leyden-fs" mkfs "$out/rocks.leyden"
rocks db_bench --benchmarks=fillrandom --num=2000000 --sync=1 >"$out/bench.log" 2>&1 &
bench=$!
sleep "${SECONDS_BEFORE_KILL:-5}"
kill -KILL $bench
wait $bench 2>/dev/null || true
rocks ldb checkconsistency
"$plugin/leyden-fs" check "$out/rocks.leyden"
