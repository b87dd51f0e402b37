#!/bin/sh
# A sweep in four shards, as a batch system runs them, joined into one table. Results: runs.parquet.
set -eu
leyden=${LEYDEN:-leyden}
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$(mktemp -d)}
for shard in 1 2 3 4; do
    "$leyden" sweep "$here/plan.toml" --shard "$shard/4" --out "$out/parts"
done
"$leyden" sweep status "$out/parts"
"$leyden" sweep merge "$out/parts" --output "$out/runs.parquet"
echo "results: $out/runs.parquet"
