#!/bin/sh
# Plants bugs in a copy of the plugin, one at a time: crash_test must find each.
#
#     tests/planted.sh [FOLDER]     the folder is for the copy; a temporary one otherwise
set -eu
cd "$(dirname "$0")/.."
folder=${1:-}
if [ -z "$folder" ]; then
    folder=$(mktemp -d)
    trap 'rm -rf "$folder"' EXIT
fi
missed=0

# plant NAME SETUPS FILE SED-SCRIPT: setups with SETUPS in their name must find it.
plant() {
    rm -rf "$folder/copy"
    mkdir -p "$folder/copy"
    cp -r CMakeLists.txt src tests tool "$folder/copy/"
    sed -i "$4" "$folder/copy/src/$3"
    if cmp -s "src/$3" "$folder/copy/src/$3"; then
        echo "$1: its lines are not in src/$3 any more" >&2
        missed=$((missed + 1))
        return
    fi
    cmake -S "$folder/copy" -B "$folder/build" -DLEYDEN_INCLUDE_DIR="$PWD/../../crates/capi/include" >"$folder/log"
    cmake --build "$folder/build" --target crash_test >>"$folder/log" 2>&1 || {
        cat "$folder/log" >&2
        exit 1
    }
    if "$folder/build/crash_test" "$2" >"$folder/out"; then
        echo "$1: NOT FOUND" >&2
        missed=$((missed + 1))
    else
        echo "$1: found: $(grep -m 1 ', cut ' "$folder/out" || grep -m 1 -E 'WRONG|NOT REACHED|: ' "$folder/out")"
    fi
}

plant "a reclaim does not flush its copies" small volume_reclaim.cc \
    's/  if (s.ok()) s = device_->Flush();//'
plant "a reclaim of logs does not wait for its copies" small volume_reclaim.cc \
    's/  IOStatus s = log_stream_.Sync();/  IOStatus s;/; s/  if (s.ok()) s = state_stream_.Sync();//'
plant "a reclaimed file keeps its old extents in the metadata" small volume_reclaim.cc \
    's/    if (f->recorded_size > 0) entries += entry::Extents.*//'
plant "a metadata log that rolls over leaves out its last piece" none metadata_log.cc \
    's/  for (size_t i = 0; s.ok() \&\& i < pieces.size(); i++) {/  for (size_t i = 0; s.ok() \&\& i + 1 < pieces.size(); i++) {/'
[ "$missed" -eq 0 ]
