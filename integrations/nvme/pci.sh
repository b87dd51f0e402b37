#!/bin/bash
# In the guest: what stock Linux makes of a drive by vfio-user. `machine` runs it; $1 is what to do, $2 how often.
# /host is a folder of the machine below: a file `cut` or `restore` there asks for the switch, and is gone when it was thrown.
set -uo pipefail
export HOME=/
fails=0
say() { echo "== $*"; }
bad() { echo "FAILED: $*"; fails=$((fails + 1)); }
# Runs a command, and says so if it fails.
run() { local out; if ! out=$("$@" 2>&1); then bad "$*: $out"; return 1; fi; }
switch() { : > "/host/$1"; for _ in $(seq 600); do [ -e "/host/$1" ] || return 0; sleep 0.1; done; bad "the switch: $1"; }
modprobe -q nvme
# The function, and its disk: a file system's device, not the hidden path below it.
find_disk() { local d; N=; for _ in $(seq 200); do
  for d in /sys/block/nvme*n*; do [ -e "$d" ] && [ "$(cat "$d/hidden")" = 0 ] && [ "$(cat "$d/size")" -gt 0 ] && { N=/dev/${d##*/}; break 2; }; done; sleep 0.1; done
  [ -n "$N" ] || { bad "no disk: $(ls /sys/block) $(dmesg | grep nvme | tail -5)"; return 1; }; }
slot() { for d in /sys/bus/pci/devices/*; do [ "$(cat "$d/class")" = 0x010802 ] && basename "$d" && return; done; }

facts() {
  say "tools"; local c; c=/dev/$(basename "$(ls -d /sys/class/nvme/nvme* | head -1)"); dmesg | grep -i 'nvme' | head -5
  run nvme id-ctrl "$c"; run nvme id-ns "$N"; run nvme ns-descs "$N"; run nvme list-ns "$c"; run nvme smart-log "$c"; run nvme error-log "$c"
  run nvme effects-log "$c" --csi 0; run nvme fw-log "$c"; run nvme get-feature "$c" -f 7; run nvme get-feature "$c" -f 8; run nvme get-feature "$c" -f 9 --cdw11=1
  grep -q . "/sys/bus/pci/devices/$(slot)/msi_irqs/"* && grep nvme /proc/interrupts
  grep . "/sys/block/${N##*/}/queue/"{logical_block_size,write_cache,max_hw_sectors_kb,discard_granularity,write_zeroes_max_bytes}
  local fs; for fs in ext4 xfs btrfs; do
    say "$fs"; modprobe -q $fs; wipefs -qa "$N"; case $fs in ext4) run mkfs.ext4 -q "$N";; *) run mkfs.$fs -q -f "$N";; esac
    run mount "$N" /mnt || continue
    run fio --name=v --directory=/mnt --size=12m --rw=randwrite --bs=4k-64k --ioengine=libaio --iodepth=16 --direct=1 --verify=crc32c --fsync=32 --output=/tmp/fio
    rm -f /mnt/v*; run fstrim /mnt; run umount /mnt
    case $fs in ext4) run e2fsck -fn "$N";; xfs) run xfs_repair -n "$N";; btrfs) run btrfs check "$N";; esac
  done
  say "raw"; run fio --name=raw --filename="$N" --size=24m --rw=randwrite --bs=512k --ioengine=libaio --iodepth=32 --direct=1 --verify=crc32c --output=/tmp/fio
  run fio --name=small --filename="$N" --size=24m --rw=randrw --bs=512-12k --bs_unaligned --ioengine=libaio --iodepth=64 --direct=0 --verify=crc32c --output=/tmp/fio
  run blkdiscard "$N"; run blkdiscard -z "$N"
  say "reset"; run nvme reset "$c"; find_disk && run dd if="$N" of=/dev/null bs=1M count=4 iflag=direct status=none
  say "remove and rescan"; again && run dd if="$N" of=/dev/null bs=1M count=4 iflag=direct status=none
}

# The function is found anew.
again() { echo 1 > "/sys/bus/pci/devices/$(slot)/remove"; sleep 0.2; echo 1 > /sys/bus/pci/rescan; find_disk; }

# $1 rounds of synced files, a cut, and a look: each file whose fsync has returned must be there, and fsck clean.
cuts() {
  local rounds=$1 i n=0 kept=0 writer began; say "$rounds cuts under a living machine"; : > /host/promised
  wipefs -qa "$N"; run mkfs.ext4 -q "$N"
  for i in $(seq "$rounds"); do
    run mount "$N" /mnt || return
    ( while n=$((n + 1)); do k=$i.$n; dd if=/dev/urandom of=/tmp/f bs=4k count=$((RANDOM % 16 + 1)) status=none; s=$(md5sum < /tmp/f)
      cp /tmp/f /mnt/$k 2>/dev/null && sync /mnt/$k 2>/dev/null && sync /mnt 2>/dev/null && echo "$k $s" >> /host/promised || break
      [ $n -gt 12 ] && rm -f "/mnt/$i.$((n - 12))" && sed -i "/^$i\.$((n - 12)) /d" /host/promised; done ) & writer=$!
    sleep "$((RANDOM % 3)).$((RANDOM % 10))"; switch cut; began=$SECONDS
    wait $writer; umount /mnt 2>/dev/null || umount -l /mnt
    [ $((SECONDS - began)) -lt 30 ] || bad "round $i: errors took $((SECONDS - began)) s"
    switch restore; again || return
    e2fsck -p "$N" > /tmp/fsck 2>&1; [ $? -le 1 ] || bad "round $i: $(cat /tmp/fsck)"
    run e2fsck -fn "$N"; run mount "$N" /mnt || { bad "mount after cut $i"; return; }
    n=$(wc -l < /host/promised); kept=$((kept + n))
    while read -r k s; do [ "$(md5sum < "/mnt/$k" 2>/dev/null)" = "$s" ] || bad "round $i: $k"; done < /host/promised
    rm -f /mnt/[0-9]*; : > /host/promised; run umount /mnt
    echo "cut $i: $n promises; $(nvme smart-log "$N" | sed -n 's/^unsafe_shutdowns[^:]*: */unsafe shutdowns /p')"
  done
  [ "$kept" -gt "$rounds" ] || bad "only $kept promises in $rounds rounds: nothing was tested"
}

# With / on the drive: installs packages for ever, as dpkg does: each file beside its place, synced, renamed.
install() {
  local n=0 f p; mkdir -p /pkg; rm -rf /pkg/*; : > /host/promised; sync; : > /host/begun
  while n=$((n + 1)); do p=/pkg/$1.$n; mkdir "$p" || exit 1
    for f in $(find /usr/bin /usr/lib/x86_64-linux-gnu -maxdepth 1 -type f -size -300k | shuf -n 6); do
      cp "$f" "$p/${f##*/}.dpkg-new" && sync "$p/${f##*/}.dpkg-new" && mv "$p/${f##*/}.dpkg-new" "$p/${f##*/}" || exit 1; done
    sync "$p" /pkg && for f in "$p"/*; do echo "$f $(md5sum < "$f")"; done >> /host/promised
    [ $n -gt 8 ] && { sed -i "/^.pkg.$1\.$((n - 8))\//d" /host/promised; rm -rf "/pkg/$1.$((n - 8))"; }
  done
}

# Without / on it: the drive that a machine had its / on, or that part of it, after a cut of both.
check() {
  local f s; e2fsck -p "$N" > /tmp/fsck 2>&1; [ $? -le 1 ] || bad "$(cat /tmp/fsck)"
  run e2fsck -fn "$N"; run mount "$N" /mnt || return
  while read -r f s; do [ "$(md5sum < "/mnt$f" 2>/dev/null)" = "$s" ] || bad "$f"; done < /host/promised
  run umount /mnt
}

case $1 in
  install) install "$2"; exit 1;;
  facts) find_disk && facts;;
  cuts) find_disk && cuts "$2";;
  check) find_disk && N=$N${2:-} && check;;
  sh) find_disk; eval "$2";;
esac
dmesg | grep -E 'WARNING|BUG|nvme.*(bad|unexpected|mismatch)' | head -5
[ "$fails" = 0 ] && [ "$1" != check ] && echo "all well"
[ "$fails" = 0 ] || echo "$fails failed"
exit $((fails > 0))
