#!/bin/sh
# RocksDB on a drive that another process serves: mounted once at a time, its power cut while db_bench writes, and the
# server killed.
#
#   served.sh BUILD LIBRARY_DIR
set -eu
build=$1
libraries=$2
folder=$(mktemp -d)
server=
trap 'kill -9 $server 2>/dev/null || true; rm -rf "$folder"' EXIT
cd "$folder"
for program in db_bench ldb; do
  command -v $program >/dev/null || { echo "SKIPPED: $program is missing (Debian: rocksdb-tools)"; exit 77; }
done
PATH="$build:$libraries:$PATH"
LD_LIBRARY_PATH="$build:$libraries"
export PATH LD_LIBRARY_PATH
command -v leyden >/dev/null || { echo "SKIPPED: there is no leyden in $libraries"; exit 77; }
address=unix:$folder/drive.sock
database() {
  program=$1
  shift
  LD_PRELOAD=libleyden_rocksdb.so "$program" "--fs_uri=leyden:$address$options" --db=/bench "$@"
}
options=
serve() {
  leyden serve disk.leyden --programs "$address" --latency off >server 2>&1 &
  server=$!
  for _ in $(seq 300); do
    [ -S drive.sock ] && leyden status disk.leyden >status 2>&1 && return
    sleep 0.1
  done
  cat server
  exit 1
}
# failed WORD: the last command has ended by itself, with this word.
failed() {
  if [ "$code" -eq 0 ] || [ "$code" -ge 128 ] || ! grep -qi -- "$1" out; then
    echo "exit $code, wanted \"$1\":"
    cat out
    exit 1
  fi
}

leyden image create --drive devices/zns --set device.zoned.zrwa.count=4 disk.leyden
serve
leyden-fs mkfs "$address"
database db_bench --benchmarks=fillseq,readrandom --num=20000 >out 2>&1 || { cat out; exit 1; }
database ldb checkconsistency | grep -q OK

# A second mount is refused while there is one; a wrong option is told.
database db_bench --benchmarks=fillseq --num=200000 >bench 2>&1 &
bench=$!
sleep 1
code=0; leyden-fs ls "$address" >out 2>&1 || code=$?
failed claimed
options=?speed:1
code=0; database ldb scan >out 2>&1 || code=$?
failed "server"
options=

# The power fails meanwhile. What is there afterwards is whole, and takes more.
leyden cut disk.leyden >cut
wait $bench && { echo "db_bench noticed nothing"; cat bench; exit 1; }
leyden restore disk.leyden >restored
leyden-fs check "$address" | grep -q ': whole$'
database ldb checkconsistency | grep -q OK
database ldb put key value
database ldb get key | grep -q value

# The server is killed.
kill -9 $server
wait $server || true
code=0; database ldb scan >out 2>&1 || code=$?
failed "leyden serve"
rm -f disk.leyden.sock drive.sock
serve
database ldb get key | grep -q value
leyden-fs check "$address" | grep -q ': whole$'
