#!/bin/sh
# The second act of ./demo: a file system on a served drive, the power cut under it, and what survived.
#
#     campaigns/act.sh LEYDEN FOLDER
#
# Exits with 77, saying why, where a machine has no FUSE or loop devices, or this is not root.
set -eu
leyden=$1 folder=$2
skip() { echo "left out: $1"; exit 77; }
[ "$(id -u)" = 0 ] || skip "the second act mounts a file system, which takes root"
[ -c /dev/fuse ] || skip "there is no /dev/fuse"
for tool in losetup mkfs.ext4 blkid fusermount3; do
    command -v $tool >/dev/null || skip "$tool is not installed"
done
losetup -f >/dev/null 2>&1 || skip "there are no loop devices"

image=$folder/act.leyden disk=$folder/act
rm -f "$image"
mkdir -p "$disk"
server=
leave() {
    status=$?
    trap - EXIT INT TERM
    [ -z "$server" ] || { kill "$server" 2>/dev/null && wait "$server" 2>/dev/null || true; }
    umount -l "$disk" 2>/dev/null || true
    fusermount3 -u -z "$image.mnt" 2>/dev/null || true
    rm -f "$image"
    rmdir "$image.mnt" "$disk" 2>/dev/null || true
    exit $status
}
trap leave EXIT INT TERM
up() {
    "$leyden" mount "$image" "$disk" --fs ext4 2>"$folder/act.log" &
    server=$!
    tries=0
    until mountpoint -q "$disk"; do
        tries=$((tries + 1))
        [ $tries -lt 600 ] && kill -0 "$server" 2>/dev/null || { cat "$folder/act.log"; exit 1; }
        sleep 0.1
    done
}

echo "A drive with a volatile write buffer, and ext4 on it:"
"$leyden" image create "$image" --drive devices/hexa --set device.buffer.region=none \
    --set device.nand.blocks_per_plane=32 --set "device.ftl.over_provisioning=20 %"
up
number=1
while [ $number -le 10 ]; do
    echo "synced $number" >"$disk/synced$number" && sync "$disk/synced$number"
    head -c 100000 /dev/urandom >"$disk/hasty$number"
    number=$((number + 1))
done
echo "10 files were synced, 10 were not. The power goes:"
kill -KILL "$server"
wait "$server" 2>/dev/null || true
server=
umount -l "$disk"
up
sed -n '1,20p' "$folder/act.log"
synced=0 hasty=0 number=1
while [ $number -le 10 ]; do
    [ "$(cat "$disk/synced$number" 2>/dev/null)" != "synced $number" ] || synced=$((synced + 1))
    [ "$(stat -c %s "$disk/hasty$number" 2>/dev/null || echo 0)" != 100000 ] || hasty=$((hasty + 1))
    number=$((number + 1))
done
echo "Back after recovery: $synced of 10 synced files, $hasty of 10 unsynced ones."
[ $synced = 10 ]
