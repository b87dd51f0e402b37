#!/bin/sh
# Runs what docs/rocksdb.md tells its reader to type, in an empty folder.
#
#   session.sh PAGE BUILD LIBRARY_DIR
set -eu
page=$1
build=$2
libraries=$3
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
cd "$folder"
for program in db_bench ldb sst_dump; do
  command -v $program >/dev/null || { echo "SKIPPED: $program is missing (Debian: rocksdb-tools)"; exit 77; }
done
PATH="$build:$libraries:$PATH"
LD_LIBRARY_PATH="$build:$libraries"
export PATH LD_LIBRARY_PATH
command -v leyden >/dev/null || { echo "SKIPPED: there is no leyden in $libraries"; exit 77; }
sed -n '/^```sh$/,/^```$/p' "$page" | grep -v '^```' >session
[ -s session ]
# Line by line, so that the first failure is the one that is shown.
while IFS= read -r line; do
  echo "+ $line"
  sh -c "$line" >out 2>&1 </dev/null || { cat out; exit 1; }
  if grep -q 'Corruption\|IO error' out; then cat out; exit 1; fi
done <session
test -s bench/CURRENT
leyden-fs check rocks.leyden | grep -q ': whole$'
