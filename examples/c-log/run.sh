#!/bin/sh
# A log on a zoned drive: records are appended, the process is killed (a power cut), and every acknowledged record is read back.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
root=$here/../..
# Where `cargo build -p leyden-capi` or a package has put the library.
library=${LEYDEN_LIBRARY_DIR:-$root/target/try}
[ -e "$library/libleyden.so" ] || { echo "skipped: no libleyden.so in $library (cargo build --profile try -p leyden-capi)"; exit 77; }
command -v cc >/dev/null || { echo "skipped: a C compiler is missing (Debian: gcc libc6-dev)"; exit 77; }
out=$(mktemp -d)
trap 'rm -rf "$out"' EXIT
cc -I"$root/crates/capi/include" "$here/log.c" -o "$out/log" -L"$library" -lleyden -Wl,-rpath,"$library"
"$out/log" create "$out/log.leyden"
"$out/log" append "$out/log.leyden" 1000000 >"$out/acknowledged" &
writer=$!
until [ "$(wc -l <"$out/acknowledged")" -gt 200 ]; do sleep 0.05; done
kill -KILL $writer
wait $writer 2>/dev/null || true
acknowledged=$(grep -c . "$out/acknowledged")
"$out/log" check "$out/log.leyden" | tee "$out/checked"
found=$(sed -n 's/[^0-9]*\([0-9]\{1,\}\).*/\1/p' "$out/checked" | head -n 1)
echo "acknowledged $acknowledged, found $found"
# The last line may be a torn one of the killed writer.
[ "$found" -ge $((acknowledged - 1)) ]
