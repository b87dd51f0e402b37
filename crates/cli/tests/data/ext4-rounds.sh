#!/bin/sh
# ext4 on a served drive: rounds of synced files, a cut, a recovery, a kill, and another recovery.
#
#     ext4-rounds.sh LEYDEN IMAGE ROUNDS
#
# Exits with 77 if this machine cannot do it, and with 1 if anything that was synced is not there.
set -u
leyden=$1 image=$2 rounds=$3
folder=$(dirname "$image")/ext4
skip() { echo "$1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "loop devices need root"
[ -c /dev/fuse ] || skip "there is no /dev/fuse"
for tool in losetup mkfs.ext4 e2fsck fusermount3; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
losetup -f >/dev/null 2>&1 || skip "there are no loop devices"
mkdir -p "$folder/disk" "$folder/fs"
loop= server=

attach() {
    "$leyden" serve "$image" --fuse "$folder/disk" --latency off 2>"$folder/log" & server=$!
    tries=0
    until [ -f "$folder/disk/disk" ]; do
        tries=$((tries + 1)); [ $tries -lt 100 ] || { cat "$folder/log"; exit 1; }
        sleep 0.1
    done
    open_loop
}
open_loop() { loop=$(losetup --show -f --direct-io=on -b 4096 "$folder/disk/disk") || exit 1; }
detach() { # in this order: file system, loop device
    umount "$folder/fs" 2>/dev/null || umount -l "$folder/fs" 2>/dev/null
    [ -z "$loop" ] || losetup -d "$loop"
    loop=
}
leave() {
    status=$?
    trap - EXIT
    detach
    [ -z "$server" ] || kill -KILL "$server" 2>/dev/null
    umount -l "$folder/disk" 2>/dev/null
    exit $status
}
trap leave EXIT
repair() { # the journal is played back; nothing more may be to mend
    e2fsck -p "$loop" >"$folder/fsck" 2>&1
    [ $? -le 1 ] || { cat "$folder/fsck"; exit 1; }
    e2fsck -fn "$loop" >"$folder/fsck" 2>&1 || { cat "$folder/fsck"; exit 1; }
    mount "$loop" "$folder/fs" || exit 1
}
check() { # every file up to $1 is as it was synced
    number=1
    while [ $number -le "$1" ]; do
        [ "$(cat "$folder/fs/kept$number")" = "promise $number" ] || { echo "kept$number is lost"; exit 1; }
        number=$((number + 1))
    done
}
write() { # a synced file, and noise that is not synced
    echo "promise $1" >"$folder/fs/kept$1" && sync "$folder/fs/kept$1" || exit 1
    head -c 200000 /dev/urandom >"$folder/fs/noise$1"
}

attach
mkfs.ext4 -q "$loop" || exit 1
mount "$loop" "$folder/fs" || exit 1
kept=0 round=0
while [ $round -lt "$rounds" ]; do
    for _ in 1 2 3 4; do kept=$((kept + 1)); write $kept; done
    "$leyden" cut "$image" >/dev/null || exit 1
    detach
    "$leyden" restore "$image" >/dev/null || exit 1
    open_loop; repair; check $kept
    for _ in 1 2 3 4; do kept=$((kept + 1)); write $kept; done
    kill -KILL $server; wait $server 2>/dev/null
    detach
    umount -l "$folder/disk"
    attach; repair; check $kept
    round=$((round + 1))
done
detach
kill -TERM $server; wait $server || exit 1
server=
echo "$rounds rounds, $kept files"
