#!/bin/bash
# RocksDB in a guest, on the zoned drive of a vfio-user server: its writes are NVMe passthrough commands, and those of logs carry
# Selective-PLP's bit. Keys that are in the log alone, and acknowledged, are there after a power cut; without the bit they are not.
#
#   integrations/rocksdb/tests/passthrough.sh --leyden target/try/leyden build
#
# `build` has libleyden_rocksdb_nvme.so. GUEST_DIR (~/.cache/leyden-guest) has the guest, which `integrations/nvme/guest.sh build`
# makes once. Exit code 77: something is missing.
set -euo pipefail
H=$(dirname "$(readlink -f "$0")")/../../nvme
[ "${1:-}" = --leyden ] && [ $# = 3 ] || { sed -n '2,8p' "$0"; exit 2; }
LEYDEN=$2 BUILD=$3 KEYS=3000
export GUEST_DIR=${GUEST_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/leyden-guest}
[ -e "$GUEST_DIR/root.img" ] || { echo "LEFT OUT: no guest in $GUEST_DIR: $H/guest.sh build makes one" >&2; exit 77; }
for program in db_bench ldb; do command -v $program > /dev/null || { echo "LEFT OUT: no $program (Debian: rocksdb-tools)" >&2; exit 77; }; done
W=$(mktemp -d); server= thrower=
end() { [ -z "$thrower" ] || kill "$thrower" 2>/dev/null; [ -z "$server" ] || { kill "$server" 2>/dev/null; wait "$server" 2>/dev/null; }; rm -rf "$W"; }
trap end EXIT
mkdir -p "$W/host/lib"; cp "$BUILD/libleyden_rocksdb_nvme.so" "$H/pci.sh" "$W/host/"
# The programs with their libraries, but for the C library, which the guest has newer.
for program in db_bench ldb; do cp "$(command -v $program)" "$W/host/"
  ldd "$(command -v $program)" | awk '$3 ~ /^\// && $1 !~ /^lib(c|m|pthread|dl|rt)\.so/ {print $3}' | xargs -I{} cp -L -u {} "$W/host/lib/"; done
cat > "$W/host/rocks.sh" <<'I'
# $1: plp:on or off; $2: keys
rocks() {
  local plp=$1 keys=$2 found; local ng=/dev/ng${N#/dev/nvme}
  database() { local program=$1; shift; LD_LIBRARY_PATH=/host/lib LD_PRELOAD=/host/libleyden_rocksdb_nvme.so "/host/$program" "--fs_uri=leyden:$ng?format:empty,mode:selective,plp:$plp" --db=/bench "$@"; }
  say "plp:$plp"; run nvme zns reset-zone "$N" --select-all
  # It is killed behind its last key, so that nobody closes the database or flushes the drive.
  database db_bench --benchmarks=fillseq,readrandom --num="$keys" --reads=100000000 --value_size=100 > /tmp/bench 2>&1 &
  for _ in $(seq 1200); do grep -q '^fillseq' /tmp/bench && break; kill -0 $! 2>/dev/null || break; sleep 0.1; done
  grep -q '^fillseq' /tmp/bench || { bad "$(tail -5 /tmp/bench)"; return; }
  kill -9 $!; wait $! 2>/dev/null; switch cut; switch restore; again || return
  ng=/dev/ng${N#/dev/nvme}
  found=$(database ldb --hex scan --no_value 2> /tmp/ldb | grep -c '^0x') || true; echo "$found of $keys keys"; [ "$found" = "$keys" ] || tail -3 /tmp/ldb
  case $plp in
    on) [ "$found" = "$keys" ] || bad "keys are lost: $(tail -3 /tmp/ldb)";;
    off) [ "$found" -lt "$keys" ] || bad "nothing is lost without the bit: this tests nothing";;
  esac
}
I
"$LEYDEN" image create "$W/drive.leyden" --drive devices/zns --set "device.zoned.zone_size=4 MiB" --set device.zoned.zrwa.count=2 \
  --set device.nand.channels=2 --set device.nand.dies_per_channel=2 --set device.nand.blocks_per_plane=64 --set device.zoned.max_open=8 --set device.zoned.max_active=12 > /dev/null
"$LEYDEN" serve "$W/drive.leyden" --nvme "vfio-user:$W/vfio.sock" --nvme-cut dead --latency off --log-level warn 2> "$W/said" & server=$!
for _ in $(seq 200); do grep -q 'control at' "$W/said" && break; sleep 0.1; done
throw() { while sleep 0.1; do for what in cut restore; do [ -e "$W/host/$what" ] || continue
  "$LEYDEN" $what "$W/drive.leyden" > /dev/null 2>> "$W/said" || true; rm -f "$W/host/$what"; done; done; }
throw & thrower=$!
code=0; GUEST_APPEND="nvme_core.io_timeout=2 nvme_core.multipath=N" "$H/guest.sh" run -m 1024 -t 600 -U "$W/vfio.sock" -s "$W/host" -- \
  "bash /host/pci.sh sh '. /host/rocks.sh; rocks on $KEYS; rocks off $KEYS'" || code=$?
kill $thrower; thrower=; grep -v '^NVMe at\|^control at' "$W/said" >&2 || true
exit $code
