#!/bin/bash
# A stock Debian kernel in QEMU, without a root image on the host: the campaigns' guest.
#
#   guest.sh build DIR              makes DIR/vmlinuz, DIR/initrd.img and DIR/root.img
#   guest.sh run DIR FOLDER SECONDS MIB CMD   runs CMD (bash -c) as root; FOLDER is at /host there, with what it writes
#
# run prints what CMD printed. Exit code: CMD's; 124 if time ran out; 125 if the guest ended without a word (see
# DIR/console.log). The processor is the host's (KVM) where that can do it, else QEMU's own, 10 to 20 times slower.
# Wants mmdebstrap qemu-system-x86 busybox-static cpio kmod e2fsprogs, and root to build; else it exits with 77.
set -euo pipefail
PACKAGES="linux-image-amd64 busybox-static kmod bash coreutils util-linux mount grep sed dmsetup python3-minimal
 libpython3-stdlib e2fsprogs fio"
# Modules that a campaign wants; what they depend on comes along.
MODULES="virtio_pci virtio_blk 9p 9pnet_virtio null_blk dm_mod dm_zoned ext4 crc32c_generic mq_deadline"

lacks() { echo "SKIPPED: $1"; exit 77; }
need() { for p in "$@"; do command -v "$p" > /dev/null || lacks "$p is not installed"; done; }

modules_of() { # root version names...: files of modules, those depended on first
    local root=$1 version=$2; shift 2
    for name in "$@"; do
        modprobe -d "$root" -S "$version" --ignore-install --show-depends "$name" 2>/dev/null | awk '$1=="insmod"{print $2}' || true
    done | awk '!seen[$0]++'
}

build() {
    need mmdebstrap busybox cpio modprobe depmod mkfs.ext4
    [ "$(id -u)" = 0 ] || lacks "building a guest needs root"
    local dir=$1 root=$1/rootfs; mkdir -p "$dir"; rm -rf "$root"
    # 'extract' unpacks packages with what they depend on, and runs none of their scripts.
    mmdebstrap --quiet --variant=extract --include="$(echo $PACKAGES | tr ' ' ,)" "${GUEST_SUITE:-bookworm}" "$root"
    local version; version=$(basename "$root"/boot/vmlinuz-* | sed s/vmlinuz-//)
    cp "$root/boot/vmlinuz-$version" "$dir/vmlinuz"
    for d in bin sbin lib lib64; do # /usr is merged as in an installed Debian
        if [ -d "$root/$d" ] && [ ! -L "$root/$d" ]; then
            mkdir -p "$root/usr/$d"; cp -a "$root/$d/." "$root/usr/$d/"; rm -rf "${root:?}/$d"; ln -s "usr/$d" "$root/$d"
        fi
    done
    depmod -b "$root" "$version"
    local kept; kept=$(mktemp -d)
    modules_of "$root" "$version" $MODULES | while read -r file; do
        file=$(readlink -f "$file"); file=${file#"$(readlink -f "$root")"/}
        mkdir -p "$kept/$(dirname "$file")"; cp "$root/$file" "$kept/$file"
    done
    cp "$root/usr/lib/modules/$version"/modules.{order,builtin,builtin.modinfo} "$kept/usr/lib/modules/$version/"
    rm -rf "$root/usr/lib/modules"; cp -a "$kept/usr/lib/modules" "$root/usr/lib/"; rm -rf "$kept"
    depmod -b "$root" "$version"
    rm -rf "$root"/boot "$root"/usr/share/{doc,man,locale,info} "$root"/var/{lib/apt,cache,lib/dpkg}
    mkdir -p "$root"/{proc,sys,dev,run,tmp,mnt,host,run-this}
    cat > "$root/sbin/guest-init" <<'I'
#!/bin/bash
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin HOME=/ LC_ALL=C
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /tmp
mount -t debugfs debugfs /sys/kernel/debug; mount -t tracefs tracefs /sys/kernel/tracing
[ -e /usr/bin/python3 ] || ln -s "$(ls /usr/bin/python3.* | head -1)" /usr/bin/python3
modprobe 9pnet_virtio; modprobe 9p; mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 host /host
stty -F /dev/ttyS1 raw -echo
bash /run-this/cmd > /dev/ttyS1 2>&1 < /dev/null; code=$?
printf '\n@@GUEST-EXIT %d@@\n' $code > /dev/ttyS1
sync; echo o > /proc/sysrq-trigger; sleep 60
I
    chmod +x "$root/sbin/guest-init"
    local early; early=$(mktemp -d); mkdir -p "$early"/{bin,dev,proc,newroot,m}; cp "$(command -v busybox)" "$early/bin/busybox"
    local n=10; modules_of "$root" "$version" virtio_pci virtio_blk ext4 crc32c_generic | while read -r file; do
        cp "$file" "$early/m/$n.ko"; n=$((n + 1))
    done
    cat > "$early/init" <<'I'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev; /bin/busybox mount -t proc proc /proc
for k in /m/*.ko; do /bin/busybox insmod $k; done
i=0; while [ ! -b /dev/vda ] && [ $i -lt 100 ]; do /bin/busybox usleep 50000; i=$((i+1)); done
/bin/busybox mount -t ext4 -o noatime /dev/vda /newroot || /bin/busybox sh
/bin/busybox cp /cmd /newroot/run-this/
/bin/busybox mount --move /dev /newroot/dev; /bin/busybox umount /proc
exec /bin/busybox switch_root /newroot /sbin/guest-init
I
    chmod +x "$early/init"
    (cd "$early" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 > "$dir/initrd.img"; rm -rf "$early"
    truncate -s %4 "$dir/initrd.img" # another archive follows, on a boundary of 4 bytes
    local kib; kib=$(($(du -sk "$root" | cut -f1) * 11 / 10 + 65536))
    mkfs.ext4 -q -F -O ^has_journal -m 0 -N $(($(find "$root" | wc -l) + 4096)) -d "$root" "$dir/root.img" "${kib}k"
    rm -rf "$root"
}

run() {
    need qemu-system-x86_64 cpio
    local dir=$1 folder=$2 most=$3 mib=$4 command=$5 work accel="tcg,thread=multi" cpu="max,la57=off" code=125
    work=$(mktemp -d); mkdir "$work/o"; printf '%s\n' "$command" > "$work/o/cmd"
    (cd "$work/o" && echo cmd | cpio --quiet -o -H newc -R 0:0) > "$work/o.cpio"
    cat "$dir/initrd.img" "$work/o.cpio" > "$work/initrd"
    # There is a /dev/kvm on machines whose processor lends nobody its virtualisation.
    if [ -w /dev/kvm ] && grep -qwE 'vmx|svm' /proc/cpuinfo; then accel=kvm cpu=host; fi
    qemu-system-x86_64 -accel "$accel" -cpu "$cpu" -M q35 -smp 2 -m "$mib" -nodefaults -no-user-config -display none \
        -no-reboot -kernel "$dir/vmlinuz" -initrd "$work/initrd" -serial "file:$dir/console.log" -serial "file:$work/out" \
        -drive "file=$dir/root.img,format=raw,if=none,id=root,snapshot=on,cache=unsafe" -device virtio-blk-pci,drive=root \
        -virtfs "local,path=$(readlink -f "$folder"),mount_tag=host,security_model=none" \
        -append "console=ttyS0 quiet panic=-1 mitigations=off nokaslr no_timer_check audit=0 log_buf_len=256M" \
        > "$work/qemu.log" 2>&1 &
    local qemu=$! since=$SECONDS
    trap 'kill -9 '"$qemu"' 2>/dev/null || true' EXIT
    while kill -0 $qemu 2>/dev/null; do
        grep -qs "@@GUEST-EXIT " "$work/out" && break
        if [ $((SECONDS - since)) -ge "$most" ]; then code=124; break; fi
        sleep 0.5
    done
    kill -9 $qemu 2>/dev/null || true; wait $qemu 2>/dev/null || true
    cat "$work/qemu.log" >&2
    if grep -qs "@@GUEST-EXIT " "$work/out"; then code=$(sed -n 's/.*@@GUEST-EXIT \([0-9]*\)@@.*/\1/p' "$work/out"); fi
    sed '/@@GUEST-EXIT /d' "$work/out" 2>/dev/null || true
    rm -rf "$work"; return "$code"
}

case ${1:-} in
    build) build "$2" ;;
    run) shift; run "$@" ;;
    *) sed -n '2,10p' "$0"; exit 2 ;;
esac
