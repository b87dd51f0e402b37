#!/bin/sh
# Images and URIs that cannot be used: a program with the plugin, and the tool, say which file it is and what to do, and
# end by themselves.
#
#   bad_images.sh BUILD LIBRARY_DIR
set -eu
build=$1
libraries=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
command -v ldb >/dev/null || { echo "SKIPPED: ldb is missing (Debian: rocksdb-tools)"; exit 77; }
PATH="$build:$libraries:$PATH"
LD_LIBRARY_PATH="$build:$libraries"
export PATH LD_LIBRARY_PATH
command -v leyden >/dev/null || { echo "SKIPPED: there is no leyden in $libraries"; exit 77; }

# refused WORD COMMAND...: it fails without a signal, and says WORD and the image's name.
refused() {
  word=$1
  shift
  code=0
  "$@" >out 2>&1 </dev/null || code=$?
  if [ $code -eq 0 ] || [ $code -ge 128 ] || ! grep -q "bad" out || ! grep -qi -- "$word" out; then
    echo "$*: exit $code, wanted \"$word\":"
    cat out
    exit 1
  fi
}
database() { LD_PRELOAD=libleyden_rocksdb.so ldb "--fs_uri=leyden:$1" --db=/bench scan; }
both() {
  refused "$1" leyden-fs info "$2"
  refused "$1" database "$2"
}
# Every bit of a byte, so that it is never what it was.
flip() { byte "$1" "$2" "\\$(printf %03o $((255 - $(od -An -tu1 -j "$2" -N 1 "$1"))))"; }
byte() { printf "$3" | dd of="$1" bs=1 seek="$2" conv=notrunc status=none; }

# Zones of 2 MiB, so that files are small.
leyden image create --drive devices/zns --set device.nand.blocks_per_plane=64 --set device.zoned.zrwa.count=4 \
  good.leyden >/dev/null
leyden-fs mkfs good.leyden
LD_PRELOAD=libleyden_rocksdb.so ldb --fs_uri=leyden:good.leyden --db=/bench --create_if_missing put key value >/dev/null
size=$(stat -c %s good.leyden)

both "make it" bad-missing.leyden
echo "a text, and no image" >bad-foreign.leyden
both "this version" bad-foreign.leyden
cp --sparse=always good.leyden bad-newer.leyden
byte bad-newer.leyden 8 '\377'
both "this version" bad-newer.leyden
# Of head, roots, the word of the clock, both of its places (one holds, and which one is a matter of time), and the
# configuration.
for places in 9 4100 8196 12290 "12360 12424" 16400; do
  cp --sparse=always good.leyden bad-flipped.leyden
  for place in $places; do flip bad-flipped.leyden "$place"; done
  both "copy\|version" bad-flipped.leyden
done
for length in 0 40 4096 12288 16390 1048576 1100000; do
  cp --sparse=always good.leyden bad-short.leyden
  truncate -s $length bad-short.leyden
  both "copy\|version\|image" bad-short.leyden
done
# What lies behind the checkpoint is content: gone, it is found when it is read.
cp --sparse=always good.leyden bad-tail.leyden
truncate -s $((size - 65536)) bad-tail.leyden
refused "check\|copy" leyden-fs check bad-tail.leyden
leyden image create --drive devices/hexa bad-conventional.leyden >/dev/null
both "zoned drive" bad-conventional.leyden
leyden image create --drive devices/zns bad-empty.leyden >/dev/null
both "mkfs" bad-empty.leyden
leyden image create --drive devices/zns --set device.buffer.region=none bad-none.leyden >/dev/null
refused "device.buffer.region=selective" leyden-fs info "leyden:bad-none.leyden?mode:selective"
refused "device.buffer.region=selective" database "bad-none.leyden?mode:selective"
refused "is no option" database "bad-none.leyden?mod:selective"
refused "mkfs\|max_active\|metadata" leyden-fs info bad-none.leyden

# One opener at a time. The kernel says when the first has it; asking the image would be another opener.
mv good.leyden bad-busy.leyden
mkfifo hold
leyden-fs import bad-busy.leyden hold /held >/dev/null 2>&1 &
holder=$!
exec 3>hold
inode=$(stat -c %i bad-busy.leyden)
tries=0
until grep -q ":$inode " /proc/locks; do
  tries=$((tries + 1))
  [ $tries -lt 100 ] || { echo "nobody opens bad-busy.leyden"; exit 1; }
  sleep 0.2
done
both "close the other program" bad-busy.leyden
exec 3>&-
wait $holder
leyden-fs check bad-busy.leyden | grep -q ': whole$'
