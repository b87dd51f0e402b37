#!/bin/sh
# A trace of your own: profile it, then compare over-provisioning. Results: sweep.csv and sweep.html.
set -eu
leyden=${LEYDEN:-leyden}
here=$(cd "$(dirname "$0")" && pwd)
out=${OUT:-$(mktemp -d)}
cp "$here/make.py" "$here/sweep.toml" "$out"
cd "$out"
python3 make.py
"$leyden" trace info trace.csv
"$leyden" compare sweep.toml --vary device.ftl.over_provisioning=12%,20%,28% --csv sweep.csv --report sweep.html
echo "results: $out/sweep.csv $out/sweep.html"
