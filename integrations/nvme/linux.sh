#!/bin/bash
# In the guest: what stock Linux makes of served drives. `drives` runs it; $1 is what to do, $2 the subsystem's name, $3 the port.
# /host is a folder of the machine below: a file `cut` or `restore` there asks for the switch, and is gone when it was thrown.
set -uo pipefail
export HOME=/
NQN=$2 PORT=$3 ADDR=10.0.2.2
fails=0
say() { echo "== $*"; }
bad() { echo "FAILED: $*"; fails=$((fails + 1)); }
# Runs a command, and says so if it fails.
run() { local out; if ! out=$("$@" 2>&1); then bad "$*: $out"; return 1; fi; }
switch() { : > "/host/$1"; for _ in $(seq 600); do [ -e "/host/$1" ] || return 0; sleep 0.1; done; bad "the switch: $1"; }
connect() { nvme connect -t tcp -a $ADDR -s "$PORT" -n "$NQN" --reconnect-delay=1 "$@"; }
# The disk of namespace $1.
disk() { local d; for _ in $(seq 100); do
  for d in /sys/block/nvme*n*; do [ "$(cat "$d/hidden")" = 0 ] && [ "$(cat "$d/nsid" 2>/dev/null)" = "$1" ] && [ "$(cat "$d/size")" -gt 0 ] && { echo "/dev/${d##*/}"; return; }; done; sleep 0.1; done; }
# f2fs keeps the names of its disks, and those of namespaces change when a host connects again: these do not.
wait_disks() { N1=$(disk 1); N2=$(disk 2); ln -sfn "$N1" /dev/plain; ln -sfn "$N2" /dev/zoned; [ -n "$N1" ] && [ -n "$N2" ] || bad "namespaces: $(ls /sys/block) $(dmesg | grep nvme | tail -5)"; }
for m in nvme_tcp ext4 xfs btrfs f2fs zonefs dm_zoned; do modprobe -q $m || bad "no module $m"; done
echo 15 > /sys/module/nvme_core/parameters/io_timeout 2>/dev/null

facts() {
  say discover; nvme discover -t tcp -a $ADDR -s "$PORT" > /tmp/found || bad "discover: $(cat /tmp/found)"
  grep -q "$NQN" /tmp/found || bad "discovery does not name $NQN: $(cat /tmp/found)"
  local digests; for digests in "" --hdr-digest "--hdr-digest --data-digest"; do
    say "connect $digests"; connect $digests || { bad "connect $digests: $(dmesg | tail -5)"; return; }; wait_disks
    dd if="$N1" of=/dev/null bs=1M count=4 iflag=direct status=none || bad "read $digests"
    dd if=/dev/urandom of=/tmp/data bs=64k count=16 status=none
    dd if=/tmp/data of="$N1" bs=1M oflag=direct status=none && dd if="$N1" bs=1M count=1 iflag=direct status=none | cmp - /tmp/data || bad "what was written $digests"
    run nvme disconnect -n "$NQN"
  done
  connect || bad "connect"; wait_disks
  say "tools"; local c; c=/dev/$(basename "$(ls -d /sys/class/nvme/nvme* | head -1)")
  run nvme id-ctrl "$c"; run nvme id-ns "$N1"; run nvme ns-descs "$N1"; run nvme list-ns "$c"; run nvme list; run nvme smart-log "$c"
  run nvme error-log "$c"; run nvme effects-log "$c"; run nvme fw-log "$c"; run nvme get-feature "$c" -f 7; run nvme get-feature "$c" -f 0xb
  run nvme show-regs "$c"; run nvme zns id-ctrl "$c"; run nvme zns id-ns "$N2"; run nvme zns report-zones "$N2" -d 4; run nvme changed-ns-list-log "$c"
  nvme smart-log "$c" | grep -E 'unsafe_shutdowns|percentage_used|available_spare'
  nvme supported-log-pages "$c" > /tmp/pages 2>&1 || bad "supported-log-pages: $(tail -1 /tmp/pages)"
  grep . "/sys/block/${N2##*/}/queue/zoned" "/sys/block/${N2##*/}/queue/"{nr_zones,max_open_zones,max_active_zones,chunk_sectors,zone_append_max_bytes}
  grep . "/sys/block/${N1##*/}/queue/"{logical_block_size,write_cache,max_hw_sectors_kb,discard_granularity,write_zeroes_max_bytes}
  [ "$(blkzone report "$N2" | wc -l)" = "$(cat "/sys/block/${N2##*/}/queue/nr_zones")" ] || bad "blkzone counts other zones"
}

conventional() {
  local fs; for fs in ext4 xfs btrfs; do
    say "$fs"; wipefs -qa "$N1"; case $fs in ext4) run mkfs.ext4 -q "$N1";; *) run mkfs.$fs -q -f "$N1";; esac
    run mount "$N1" /mnt || continue
    run fio --name=v --directory=/mnt --size=12m --rw=randwrite --bs=4k-64k --ioengine=libaio --iodepth=16 --direct=1 --verify=crc32c --fsync=32 --output=/tmp/fio
    rm -f /mnt/v*; run fstrim /mnt; run umount /mnt
    case $fs in ext4) run e2fsck -fn "$N1";; xfs) run xfs_repair -n "$N1";; btrfs) run btrfs check "$N1";; esac
  done
  say "raw"; run fio --name=raw --filename="$N1" --size=24m --rw=randwrite --bs=512k --ioengine=libaio --iodepth=32 --direct=1 --verify=crc32c --output=/tmp/fio
  run blkdiscard "$N1"; run blkdiscard -z "$N1"
}

zoned() {
  say "zones"; run blkzone reset "$N2"; run blkzone open -c 1 "$N2"; blkzone report -c 1 "$N2" | grep -q 'oi\|oe' || bad "open: $(blkzone report -c 1 "$N2")"
  run blkzone close -c 1 "$N2"; run blkzone finish -c 1 "$N2"; blkzone report -c 1 "$N2" | grep -q fu || bad "finish"; run blkzone reset "$N2"
  run fio --name=z --filename="$N2" --zonemode=zbd --rw=write --bs=64k --size=32m --ioengine=libaio --iodepth=1 --direct=1 --verify=crc32c --output=/tmp/fio
  run fio --name=zr --filename="$N2" --zonemode=zbd --rw=randwrite --bs=16k --size=32m --io_size=16m --max_open_zones=4 --ioengine=libaio --iodepth=8 --direct=1 --output=/tmp/fio
  run nvme zns open-zone "$N2" -s 0 --select-all; run nvme zns reset-zone "$N2" --select-all
  say "zonefs"; create zonefs && up zonefs && { f=/mnt/seq/0; run dd if=/dev/urandom of=/tmp/z bs=4k count=64 status=none
    run dd if=/tmp/z of=$f bs=64k oflag=direct conv=notrunc status=none; [ "$(stat -c %s $f)" = 262144 ] || bad "zonefs: size"; dd if=$f bs=64k iflag=direct status=none | cmp - /tmp/z || bad "zonefs: data"
    run truncate -s 0 $f; down zonefs; }
  say "f2fs"; create f2fs && up f2fs && { run fio --name=v --directory=/mnt --size=8m --rw=randwrite --bs=4k --fsync=64 --verify=crc32c --output=/tmp/fio; down f2fs; }
  say "btrfs on zones"; create btrfs && up btrfs && {
    dd if=/dev/urandom of=/tmp/b bs=1M count=8 status=none; run cp /tmp/b /mnt/b; sync; cmp /tmp/b /mnt/b || bad "btrfs: data"; down btrfs; }
  say "dm-zoned"; create dm-zoned && up dm-zoned && { run cp /tmp/b /mnt/b; down dm-zoned; }
}

# A file system $1 on the conventional disk (ext4, xfs), on the zoned one (zonefs, btrfs) or on both (f2fs; dm-zoned and dm-zoned-once,
# with ext4). Linux 7.3's dm-zoned loses what the last fsync promised; dm-zoned flushes once more, and dm-zoned-once does not.
create() {
  wipefs -qa "$N1"; run blkzone reset "$N2"
  case $1 in
    ext4) run mkfs.ext4 -q "$N1";; xfs) run mkfs.xfs -q -f "$N1";; zonefs) run mkzonefs -f "$N2";; f2fs) run mkfs.f2fs -q -f -m -c /dev/zoned /dev/plain;;
    btrfs) run mkfs.btrfs -q -f -d single -m single -O zoned "$N2";;
    dm-zoned*) run dmzadm --format "$N1" "$N2" --force && run dmzadm --start "$N1" "$N2" && { dmsetup mknodes; run mkfs.ext4 -q "$(mapped)"; run dmzadm --stop "$N1" "$N2"; };;
  esac
}
mapped() { echo "/dev/mapper/$(dmsetup ls | awk '{print $1; exit}')"; }
up() { case $1 in ext4 | xfs) run mount "$N1" /mnt;; f2fs) run mount -t f2fs /dev/plain /mnt;; zonefs) run mount -t zonefs "$N2" /mnt;; btrfs) run mount "$N2" /mnt;;
  dm-zoned*) run dmzadm --start "$N1" "$N2" && dmsetup mknodes && run mount "$(mapped)" /mnt;; esac; }
# Unmounted, whole and checked.
down() {
  run umount /mnt; case $1 in ext4) run e2fsck -fn "$N1";; xfs) run xfs_repair -n "$N1";; f2fs) run fsck.f2fs -f /dev/plain;; btrfs) run btrfs check "$N2";;
    dm-zoned*) run e2fsck -fn "$(mapped)"; run dmzadm --stop "$N1" "$N2"; run dmzadm --check "$N1" "$N2";; esac
}
# Its disks are gone. Unmounting may then never end (seen with f2fs and zonefs of Linux 7.3): nobody waits for it.
lost() { umount -l /mnt & sleep 1; [[ $1 != dm-zoned* ]] || dmsetup remove --force --retry "$(mapped)" > /dev/null 2>&1; }
# A promise $2 of round $1 on a file system $3, or an end: a file whose fsync has returned; of zonefs, a zone that is written on.
promise() {
  local k=$1.$2 f=/mnt/$1.$2 s
  dd if=/dev/urandom of=/tmp/f bs=4k count=$((RANDOM % 16 + 1)) status=none
  if [ -d /mnt/seq ]; then f=/mnt/seq/$(($2 % 8)); [ "$2" -gt 8 ] || : > "/tmp/z$(($2 % 8))"
    [ "$2" -gt 8 ] || truncate -s 0 "$f" || return 1
    cat /tmp/f >> "/tmp/z$(($2 % 8))"; dd if=/tmp/f of="$f" bs=4k oflag=append,direct conv=notrunc,fsync status=none 2>/dev/null || return 1
    s=$(md5sum < "/tmp/z$(($2 % 8))"); sed -i "\|^$f |d" /host/promised; echo "$f $(stat -c %s "/tmp/z$(($2 % 8))") $s" >> /host/promised; return
  fi
  s=$(md5sum < /tmp/f); cp /tmp/f "$f" 2>/dev/null && sync "$f" 2>/dev/null && sync /mnt 2>/dev/null && { [ "$3" != dm-zoned ] || sync "$(mapped)"; } && echo "$f $(stat -c %s /tmp/f) $s" >> /host/promised || return 1
  [ "$2" -le 12 ] || { sed -i "\|^/mnt/$1\.$(($2 - 12)) |d" /host/promised && rm -f "/mnt/$1.$(($2 - 12))"; }
}

# Synced files of round $2 on a file system $1, until there is an end to it.
promises() { local n=0; while n=$((n + 1)); do promise "$2" "$n" "$1" || break; done; }
# After cut $2 of a file system $1: each promise must be there, and fsck clean.
look() {
  local f b s; up "$1" || { bad "mount after cut $2"; return 1; }
  echo "cut $2: $(wc -l < /host/promised) promises; $(nvme smart-log "$N1" | sed -n 's/^unsafe_shutdowns[^:]*: */unsafe shutdowns /p')"
  while read -r f b s; do [ "$(head -c "$b" "$f" 2>/dev/null | md5sum)" = "$s" ] || bad "round $2: $f"; done < /host/promised
  [ "$1" = zonefs ] || rm -f /mnt/[0-9]*; : > /host/promised
  down "$1"
}

# $2 rounds on a file system $1: synced files, a cut of the drives under a living machine, and a look.
cuts() {
  local fs=$1 rounds=$2 i kept=0 writer; say "$rounds cuts of $fs"; : > /host/promised; create "$fs"
  for i in $(seq "$rounds"); do
    up "$fs" || return
    promises "$fs" "$i" & writer=$!
    sleep "$((RANDOM % 3)).$((RANDOM % 10))"; switch cut
    nvme disconnect -n "$NQN" > /dev/null; for _ in $(seq 100); do kill -0 $writer 2>/dev/null || break; sleep 0.1; done; lost "$fs"
    switch restore; connect || { bad "connect after cut $i: $(dmesg | tail -3)"; return; }; wait_disks
    kept=$((kept + $(wc -l < /host/promised))); look "$fs" "$i" || return
  done
  [ "$kept" -gt "$rounds" ] || bad "only $kept promises in $rounds rounds: nothing was tested"
}

# Round $2 on a file system $1 of a machine that goes with its drives: a look at what the round before has promised, and synced files until the end.
together() {
  if [ "$2" = 1 ]; then create "$1"; else look "$1" $(($2 - 1)); fi
  [ "$3" = "$2" ] || [ "$fails" != 0 ] || { up "$1" && : > /host/begun && promises "$1" "$2"; }
}

# Atomic writes of up to $1 bytes, without a boundary: the limits in sysfs, RWF_ATOMIC at and above them, and $2 cuts amid pages of that size.
atomic() {
  local most=$1 rounds=$2 q="/sys/block/${N1##*/}/queue" i n=0 writer torn; say "atomic writes"; grep . "$q"/atomic_write_*
  [ "$(cat "$q/atomic_write_unit_max_bytes")" = "$most" ] || bad "atomic_write_unit_max_bytes is not $most"
  [ "$(cat "$q/atomic_write_max_bytes")" = "$most" ] || bad "atomic_write_max_bytes is not $most"
  [ "$(cat "$q/atomic_write_unit_min_bytes")" = "$(cat "$q/logical_block_size")" ] || bad "atomic_write_unit_min_bytes is no block"
  [ "$(cat "$q/atomic_write_boundary_bytes")" = 0 ] || bad "a boundary"
  try() { fio --name=a --filename="$N1" --rw=randwrite --bs="$1" --size=1536k --direct=1 --ioengine=pvsync2 --atomic=1 --verify=crc32c --output=/tmp/fio > /tmp/fio.err 2>&1; }
  for n in 4096 $((most / 2)) "$most"; do try "$n" && echo "RWF_ATOMIC $n: written" || bad "RWF_ATOMIC of $n bytes: $(tail -3 /tmp/fio /tmp/fio.err)"; done
  for n in $((2 * most)) $((most - 4096)); do
    if try "$n"; then bad "RWF_ATOMIC of $n bytes is written"; else grep -hq 'Invalid argument' /tmp/fio /tmp/fio.err && echo "RWF_ATOMIC $n: EINVAL" || bad "RWF_ATOMIC of $n bytes: $(cat /tmp/fio /tmp/fio.err)"; fi; done
  # Pages of one letter each, amid single blocks, so that atomic writes do not begin where flash pages do; more of them than the drive buffers.
  local pages=512 units=$((most / 4096)) letter; torn=0
  head -c $((pages * most)) /dev/zero | tr '\0' z > /tmp/pages; dd if=/tmp/pages of="$N1" bs=1M oflag=direct conv=fsync status=none
  for i in $(seq "$rounds"); do
    ( while :; do for letter in 1 2 3 4 5 6 7 8; do [ -b "$N1" ] || exit; fio --eta=never --allow_file_create=0 --direct=1 --ioengine=libaio --time_based --runtime=500ms --filename="$N1" --rw=randwrite --buffer_pattern="0x6$letter" --output=/dev/null \
      --name=pages --iodepth=4 --bs="$most" --size=$((pages * most)) --name=blocks --bs=4k --offset=64m --size=1m --thinktime=100 2> /dev/null || exit; done; done ) & writer=$!
    sleep "1.$((RANDOM % 10))"; switch cut; nvme disconnect -n "$NQN" > /dev/null; wait $writer
    switch restore; connect || { bad "connect after cut $i: $(dmesg | tail -3)"; return; }; wait_disks
    dd if="$N1" bs=1M count=$((pages * most >> 20)) iflag=direct status=none | tr "\\0" 0 > /tmp/pages; [ "$(fold -w 4096 /tmp/pages | wc -l)" -ge $((pages * units - 1)) ] || bad "round $i: the pages cannot be read"
    n=$(fold -w 4096 /tmp/pages | cut -c1 | xargs -n "$units" | tr -d " " | grep -cvE '^(.)\1*$'); torn=$((torn + n))
    echo "cut $i: $n pages torn, $(fold -w 4096 /tmp/pages | cut -c1 | sort | uniq -c | tr -s ' \n' ' ')"
  done
  [ "$torn" = 0 ] || bad "$torn pages are torn"; echo "$rounds cuts: $torn torn pages"
}

# Secrets: $1 is the host's, $2 the controller's. Who does not know them gets in nowhere; a host finds out who the controller is.
auth() {
  local wrong=DHHC-1:00:ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoOeXryU: n q; say authentication
  refused() { if connect "$@" 2> /tmp/refused; then bad "connected with $*"; nvme disconnect -n "$NQN" > /dev/null; else sed 's/^/refused: /' /tmp/refused; fi; }
  refused; refused -S "$wrong"; refused -S "$1" -C "$wrong"
  for n in "-S $1" "-S $1 -C $2"; do
    connect $n || { bad "connect $n: $(dmesg | tail -5)"; continue; }; wait_disks; dmesg | grep -o 'authenticated with hash.*' | tail -1
    dd if=/dev/urandom of=/tmp/data bs=64k count=16 status=none; dd if=/tmp/data of="$N1" bs=64k oflag=direct status=none
    dd if="$N1" bs=1M count=1 iflag=direct status=none | cmp - /tmp/data || bad "data with $n"
    switch cut; switch restore; sleep 3; for q in $(seq 100); do grep -q live /sys/class/nvme/nvme*/state && break; sleep 0.2; done
    wait_disks; dd if="$N1" of=/dev/null bs=64k count=1 iflag=direct status=none || bad "read after a reconnection with $n: $(dmesg | tail -5)"
    run nvme disconnect -n "$NQN"
  done
}

# $1 hosts at once, with queues of 16 to 1,024 entries (Linux makes no smaller ones) and all digests: each reads what another has written; half of them go and
# come again amid the others' commands.
hosts() {
  local hosts=$1 i c; say "$hosts hosts"
  id() { printf '22222222-2222-3333-4444-%012d' "$1"; }
  come() { local digests=("" --hdr-digest --data-digest "--hdr-digest --data-digest")
    nvme connect -t tcp -a $ADDR -s "$PORT" -n "$NQN" -q "nqn.2014-08.org.nvmexpress:uuid:$(id "$1")" -I "$(id "$1")" --nr-io-queues=1 --queue-size=$((16 << $1 % 7)) \
      --reconnect-delay=1 ${digests[$1 % 4]} > /tmp/come$1 2>&1 || bad "host $1: $(cat /tmp/come$1) $(dmesg | tail -3)"; }
  # The disk of host $1, and its controller.
  of() { for c in /sys/class/nvme/nvme*; do [ "$(cat "$c/hostid")" = "$(id "$1")" ] && break; done
    for _ in $(seq 100); do for d in "$c"/nvme*n*; do [ "$(cat "$d/nsid" 2>/dev/null)" = 1 ] && { echo "/dev/${d##*/}"; return; }; done; sleep 0.1; done; }
  all() { local i pids=(); for i in "$@"; do come "$i" & pids+=($!); done; wait "${pids[@]}"; }
  all $(seq 0 $((hosts - 1))); [ "$(ls /sys/class/nvme | wc -l)" = "$hosts" ] || bad "$(ls /sys/class/nvme | wc -l) controllers"
  for i in $(seq 0 $((hosts - 1))); do dd if=/dev/urandom of=/tmp/h$i bs=64k count=4 status=none; dd if=/tmp/h$i of="$(of "$i")" bs=64k seek=$((i * 4)) oflag=direct status=none || bad "write of host $i"; done
  for i in $(seq 0 $((hosts - 1))); do dd if="$(of $(((i + 1) % hosts)))" bs=64k skip=$((i * 4)) count=4 iflag=direct status=none | cmp - /tmp/h$i || bad "what host $i wrote"; done
  local busy=(); for i in $(seq 1 2 $((hosts - 1))); do fio --eta=never --name=h --filename="$(of "$i")" --offset=$((32 + i * 2))m --size=1m --rw=randrw --bs=4k --ioengine=libaio --iodepth=16 --direct=1 --time_based --runtime=60 \
    --verify=crc32c --verify_backlog=64 --output=/tmp/fio$i & busy+=($!); done
  local turns=0 until=$((SECONDS + 50)); while [ $SECONDS -lt $until ]; do
    for i in $(seq 0 2 $((hosts - 1))); do for c in /sys/class/nvme/nvme*; do [ "$(cat "$c/hostid" 2>/dev/null)" = "$(id "$i")" ] && echo 1 > "$c/delete_controller"; done; done
    all $(seq 0 2 $((hosts - 1))); turns=$((turns + 1)); done
  for i in "${!busy[@]}"; do wait "${busy[$i]}" || bad "fio of host $((i * 2 + 1)): $(tail -3 /tmp/fio$((i * 2 + 1)))"; done
  echo "$((hosts / 2)) hosts went and came $turns times amid the others' commands"
  for i in $(seq 0 $((hosts - 1))); do dd if="$(of "$i")" bs=64k skip=$((i * 4)) count=4 iflag=direct status=none | cmp - /tmp/h$i || bad "what host $i reads in the end"; done
  nvme disconnect-all; sleep 1; [ -z "$(ls /sys/class/nvme)" ] || bad "left: $(ls /sys/class/nvme)"
}

# The power of a drive fails and returns while a host waits for it: it reconnects by itself, and goes on.
returns() {
  say "a cut while the host waits"; wipefs -qa "$N1"
  fio --name=w --filename="$N1" --size=16m --rw=randwrite --bs=16k --ioengine=libaio --iodepth=8 --direct=1 --time_based --runtime=12 --output=/tmp/fio & local f=$!
  sleep 3; switch cut; sleep 3; grep -h . /sys/class/nvme/nvme*/state; switch restore
  wait $f || bad "fio across a cut: $(tail -3 /tmp/fio)"; grep -h . /sys/class/nvme/nvme*/state
}

case $1 in
  facts) facts;;
  all) facts; conventional; zoned;;
  cuts) connect || bad connect; wait_disks; cuts "$4" "$5";;
  together) connect || bad connect; wait_disks; together "$4" "$5" "$6";;
  atomic) connect || bad connect; wait_disks; atomic "${4:-16384}" "${5:-5}";;
  auth) auth "$4" "$5";;
  hosts) hosts "${4:-24}";;
  returns) connect || bad connect; wait_disks; returns;;
  sh) connect; wait_disks; eval "$4";;
esac
nvme disconnect -n "$NQN" > /dev/null
dmesg | grep -E 'WARNING|BUG|nvme.*(bad|unexpected|mismatch|error recovery)' | grep -v 'error recovery' | head -5
[ "$fails" = 0 ] && echo "all well" || echo "$fails failed"
exit $((fails > 0))
