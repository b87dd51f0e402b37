#!/bin/sh
# leyden-fs import and export: what comes out is what went in, and nothing that stands at the target is followed or
# replaced.
#
#   export.sh BUILD LIBRARY_DIR
set -eu
build=$1
libraries=$2
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
PATH="$build:$libraries:$PATH"
LD_LIBRARY_PATH="$build:$libraries"
export PATH LD_LIBRARY_PATH
command -v leyden >/dev/null || { echo "SKIPPED: there is no leyden in $libraries"; exit 77; }

# refused WORD COMMAND...: it fails without a signal, and says WORD.
refused() {
  word=$1
  shift
  code=0
  "$@" >said 2>&1 </dev/null || code=$?
  if [ $code -eq 0 ] || [ $code -ge 128 ] || ! grep -qi -- "$word" said; then
    echo "$*: exit $code, wanted \"$word\":"
    cat said
    exit 1
  fi
}

leyden image create --drive devices/zns --set device.nand.blocks_per_plane=64 --set device.zoned.zrwa.count=4 \
  f.leyden >/dev/null
leyden-fs mkfs f.leyden
# Not of whole blocks, of part of a block, and of nothing.
head -c 5000001 /dev/urandom >large
echo text >small
: >empty
leyden-fs import f.leyden large /one/deep/large
leyden-fs import f.leyden small /one/small
leyden-fs import f.leyden empty /one/empty

umask 022
leyden-fs export f.leyden /one/small out
cmp small out
# A database's content is its owner's.
[ "$(stat -c %a out)" = 600 ]
leyden-fs export f.leyden /one tree
cmp large tree/deep/large
cmp small tree/small
cmp empty tree/empty
[ "$(find tree | wc -l)" -eq 5 ]
leyden-fs export f.leyden / all
cmp large all/one/deep/large

# What stands there already stays what it is: a file, a link to one, a link to nothing, and folders likewise.
echo mine >kept
ln -s kept link
ln -s victim dangling
for target in kept link dangling; do refused "exists already" leyden-fs export f.leyden /one/small $target; done
grep -q mine kept
[ ! -e victim ]
mkdir inside
ln -s inside folder
refused "exist" leyden-fs export f.leyden /one folder
refused "exist" leyden-fs export f.leyden /one inside
[ -z "$(ls inside)" ]
refused "/one/none" leyden-fs export f.leyden /one/none nothing
[ ! -e nothing ]
refused "no-such-folder" leyden-fs export f.leyden /one/small no-such-folder/out

# A copy that ends early leaves no file.
mkdir full
ulimit -f 1000 # of 512 bytes
trap '' XFSZ
refused "cannot be written" leyden-fs export f.leyden /one/deep/large full/large
[ -z "$(ls full)" ]
