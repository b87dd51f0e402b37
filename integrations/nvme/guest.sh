#!/bin/bash
# A guest with a stock Debian kernel under QEMU's software emulation: a real Linux as an NVMe/TCP host of a server on
# this machine's loopback, which is 10.0.2.2 inside, or with a drive of a vfio-user server. Nothing is installed here; no
# KVM and no kernel module is needed.
#
#   guest.sh build              QEMU, kernel, initrd.img and root.img in $GUEST_DIR: 1 GB, some minutes
#   guest.sh run [opts] -- CMD  boot, run CMD (bash -c) as root in the guest
#        -m MIB      memory (1024)           -c N     virtual CPUs (1)
#        -t SECONDS  give up after (300)     -s DIR   host directory, rw, at /host (9p)
#        -v          kernel console to stderr as well
#        -U SOCKET   a vfio-user server's PCI device    -R DEV   / is this device, and not a throw-away root.img
#        -p FILE     QEMU's process number goes there
#        -B          UEFI's firmware boots what `disk` has put on the device, and runs CMD of that
#     stdout: what CMD printed. Exit code: CMD's; 124: time ran out; 125: the guest ended without reporting
#     (see $GUEST_DIR/console.*.log).
#   guest.sh root FILE             FILE is / for a drive
#   guest.sh disk FILE -- CMD      FILE is a disk that boots by itself and runs CMD: GPT of 4 KiB blocks, GRUB, kernel, /
#
# Environment: GUEST_DIR (~/.cache/leyden-guest)  GUEST_ACCEL (tcg,thread=multi)  GUEST_MIRROR (the Debian mirror of this machine's apt)  GUEST_APPEND (kernel arguments)
# Packages on the host: mmdebstrap busybox-static cpio kmod xz-utils e2fsprogs; `disk` and -B: ovmf grub-efi-amd64-bin mtools dosfstools fdisk
set -euo pipefail
DIR=${GUEST_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/leyden-guest}
KPKG=linux-image-amd64
SUITE=trixie
PKGS="$KPKG busybox-static kmod bash coreutils util-linux util-linux-extra mount grep sed gawk findutils procps iproute2 jq bc
 e2fsprogs xfsprogs f2fs-tools btrfs-progs dmsetup nvme-cli zbd-utils fio strace dm-zoned-tools zonefs-tools python3 uuid-runtime libc-bin bsdextrautils ncurses-bin pciutils gzip sg3-utils"
# modules that a test may want; what they depend on comes along; a missing one is only noted
QEMU=$DIR/qemu-system-x86_64

sources() {
  local mirror=${GUEST_MIRROR:-$(apt-get indextargets --format '$(REPO_URI)' | awk '!/security/{sub("/$","");print;exit}')}
  printf 'deb %s trixie main\ndeb %s trixie-backports main\n' "$mirror" "$mirror" > "$DIR/sources.list"
}

# QEMU is unpacked, and started through its own dynamic loader.
qemu() {
  rm -rf "$DIR/qemu"
  mmdebstrap --quiet --variant=extract --aptopt='APT::Default-Release "trixie-backports"' \
    --include=qemu-system-x86,seabios trixie "$DIR/qemu" "$DIR/sources.list"
  rm -rf "$DIR"/qemu/usr/share/{doc,man,locale,icons} "$DIR"/qemu/var/{cache,lib/apt}
  cat > "$QEMU" <<'I'
#!/bin/sh
Q=$(dirname "$(readlink -f "$0")")/qemu; L=$Q/usr/lib/x86_64-linux-gnu
export QEMU_MODULE_DIR=$L/qemu
exec "$L/ld-linux-x86-64.so.2" --library-path "$L" --argv0 qemu-system-x86_64 "$Q/usr/bin/qemu-system-x86_64" \
  -L "$Q/usr/share/qemu" -L "$Q/usr/share/seabios" "$@"
I
  chmod +x "$QEMU"
}

MODULES="virtio_pci virtio_mmio virtio_blk virtio_net virtio_rng e1000 9p 9pnet_virtio
 nvme_tcp nvme_fabrics nvme nvmet nvmet_tcp nvme_loop null_blk nbd ublk_drv loop brd scsi_debug
 dm_mod dm_zoned dm_log_writes dm_flakey dm_delay dm_snapshot dm_crypt zonefs ext4 xfs f2fs btrfs crc32_generic crc32c_generic crc32c_intel
 libcrc32c configfs bfq kyber_iosched mq_deadline fuse nvme_auth dh_generic hmac sha256 sha512 sha256_generic sha512_generic"

build() {
  mkdir -p "$DIR"; sources; qemu; local R=$DIR/rootfs T; rm -rf "$R" "$DIR/root.img" "$DIR/initrd.img"
  # 'extract' unpacks the packages and their dependencies, and runs none of their scripts
  mmdebstrap --quiet --variant=extract --aptopt='APT::Default-Release "trixie-backports"' \
    --include="$(echo $PKGS | tr ' ' ,)" "$SUITE" "$R" "$DIR/sources.list"
  local KV; KV=$(ls "$R/lib/modules" | tail -1); echo "$KV" > "$DIR/kver"
  if [ -e "$R/boot/vmlinuz-$KV" ]; then cp "$R/boot/vmlinuz-$KV" "$DIR/vmlinuz"; else cp "$R/lib/modules/$KV/vmlinuz" "$DIR/vmlinuz"; fi # since 7.x beside the modules
  # merge /usr as an installed Debian has it
  for d in bin sbin lib lib64; do if [ -d "$R/$d" ] && [ ! -L "$R/$d" ]; then mkdir -p "$R/usr/$d"; cp -a "$R/$d/." "$R/usr/$d/"; rm -rf "${R:?}/$d"; ln -s "usr/$d" "$R/$d"; fi; done
  # keep only the modules named above
  depmod -b "$R" "$KV"
  T=$(mktemp -d)
  for m in $MODULES; do
    modprobe -d "$R" -S "$KV" --ignore-install --show-depends "$m" 2>/dev/null | awk '$1=="insmod"{print $2}' \
      || echo "no module: $m" >&2
  done | awk '!s[$0]++' > "$DIR/modules.list"
  while read -r f; do f=$(readlink -f "$f"); mkdir -p "$T/$(dirname "${f#"$(readlink -f "$R")"/}")"; cp "$f" "$T/${f#"$(readlink -f "$R")"/}"; done < "$DIR/modules.list"
  # tests of kernel features ask which ones it has
  cp "$(find "$R/boot" "$R/usr/lib/modules/$KV" -maxdepth 1 -name 'config*' | head -1)" "$T/usr/lib/modules/$KV/config"
  cp "$R/usr/lib/modules/$KV"/modules.{order,builtin,builtin.modinfo} "$T/usr/lib/modules/$KV/"
  # as plain files: no decompression in the guest, and busybox can load them
  find "$T" -name '*.ko.xz' -exec xz -d -q {} +
  rm -rf "$R/usr/lib/modules"; cp -a "$T/usr/lib/modules" "$R/usr/lib/"; rm -rf "$T"
  depmod -b "$R" "$KV"
  rm -rf "$R"/boot "$R"/usr/share/{doc,man,locale,info,lintian,bash-completion} "$R"/var/{lib/apt,cache,lib/dpkg}
  mkdir -p "$R"/{proc,sys,dev,run,tmp,mnt,host}; : > "$R/etc/fstab"; ln -sf /proc/mounts "$R/etc/mtab"
  printf 'root:x:0:0:root:/:/bin/bash\n' > "$R/etc/passwd"; printf 'root:x:0:\n' > "$R/etc/group"
  echo '127.0.0.1 localhost guest' > "$R/etc/hosts"; echo guest > "$R/etc/hostname"
  mkdir -p "$R/etc/nvme"; echo nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555 > "$R/etc/nvme/hostnqn"
  echo 11111111-2222-3333-4444-555555555555 > "$R/etc/nvme/hostid"
  [ -e "$R/bin/sh" ] || ln -s bash "$R/bin/sh"
  # busybox stands in for what the packages' own scripts would have linked (awk, vi, …)
  mkdir -p "$R/usr/lib/busybox-applets"; local a; for a in $(busybox --list); do ln -sf /bin/busybox "$R/usr/lib/busybox-applets/$a"; done
  cat > "$R/sbin/guest-init" <<'I'
#!/bin/bash
# second stage: PID 1 of the guest
export PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin:/usr/lib/busybox-applets HOME=/ LC_ALL=C
mount -t proc proc /proc; mount -t sysfs sysfs /sys; mount -t tmpfs tmpfs /run; mount -t tmpfs tmpfs /tmp; mkdir -p /run/lock
mount -t debugfs debugfs /sys/kernel/debug; modprobe -q configfs; mount -t configfs configfs /sys/kernel/config 2>/dev/null
ln -sf /proc/self/fd /dev/fd; ln -sf fd/0 /dev/stdin; ln -sf fd/1 /dev/stdout; ln -sf fd/2 /dev/stderr; mkdir -p /dev/shm; mount -t tmpfs tmpfs /dev/shm
ip link set lo up
modprobe -q virtio_net
for i in /sys/class/net/*; do n=${i##*/}; [ "$n" = lo ] || { mtu=$(sed -n 's/.*guest.mtu=\([0-9]*\).*/\1/p' /proc/cmdline); ip link set "$n" mtu "${mtu:-1500}" up; ip addr add 10.0.2.15/24 dev "$n"; ip route add default via 10.0.2.2; break; }; done
echo guest > /proc/sys/kernel/hostname
grep -q guest.share=1 /proc/cmdline && { modprobe 9pnet_virtio; modprobe 9p; mount -t 9p -o trans=virtio,version=9p2000.L,msize=262144 host /host; }
exec 3>/dev/ttyS1
stty -F /dev/ttyS1 raw -echo 2>/dev/null || busybox stty -F /dev/ttyS1 raw -echo
read -r up _ < /proc/uptime
cd /; echo "guest: ready at $up s of guest time" > /dev/ttyS0
bash /run-this/cmd >&3 2>&1 </dev/null; rc=$?
printf '\n@@GUEST-EXIT %s %d@@\n' "$(cat /run-this/nonce)" $rc >&3
sync; echo o > /proc/sysrq-trigger; sleep 60
I
  chmod +x "$R/sbin/guest-init"
  # initrd: busybox, what the root image needs, nothing else
  T=$(mktemp -d); mkdir -p "$T"/{bin,dev,proc,sys,newroot,m}; cp "$(command -v busybox)" "$T/bin/busybox"
  local n=0 m f
  for m in virtio_pci virtio_blk ext4 crc32c_generic; do
    modprobe -d "$R" -S "$KV" --show-depends "$m" 2>/dev/null | awk '$1=="insmod"{print $2}' || true
  done | awk '!s[$0]++' > "$T/m/src"
  while read -r f; do n=$((n+1)); cp "$f" "$T/m/$(printf %02d $n).ko"; done < "$T/m/src"; rm "$T/m/src"
  # for a root on a PCI drive only: elsewhere modprobe loads them, with the parameters of the command line
  mkdir "$T/m/nvme"; for f in $(modprobe -d "$R" -S "$KV" --show-depends nvme | awk '$1=="insmod"{print $2}'); do n=$((n+1)); cp "$f" "$T/m/nvme/$(printf %02d $n).ko"; done
  cat > "$T/init" <<'I'
#!/bin/busybox sh
/bin/busybox mount -t devtmpfs dev /dev; /bin/busybox mount -t proc proc /proc
for k in /m/*.ko; do /bin/busybox insmod $k; done
root=/dev/vda; how=norecovery,ro; for word in $(/bin/busybox cat /proc/cmdline); do case $word in guest.root=*) root=${word#*=}; how=rw; for k in /m/nvme/*.ko; do /bin/busybox insmod $k; done;; esac; done
i=0; while [ ! -b $root ] && [ $i -lt 200 ]; do /bin/busybox usleep 50000; i=$((i+1)); done
/bin/busybox mount -t ext4 -o noatime,$how $root /newroot || /bin/busybox sh
[ $how = rw ] || /bin/busybox mount -o remount,rw /newroot 2>/dev/null
/bin/busybox mkdir -p /newroot/run-this; /bin/busybox cp /cmd /nonce /newroot/run-this/
/bin/busybox mount --move /dev /newroot/dev; /bin/busybox umount /proc
exec /bin/busybox switch_root /newroot /sbin/guest-init
I
  chmod +x "$T/init"
  (cd "$T" && find . | cpio --quiet -o -H newc -R 0:0) | gzip -1 > "$DIR/initrd.img"; rm -rf "$T"
  truncate -s %4 "$DIR/initrd.img"   # a following archive must start on a 4-byte boundary
  # one image file for the guest's /; guests run on throw-away snapshots of it
  local kb; kb=$(( $(du -sk "$R" | cut -f1) * 11 / 10 + 65536 ))
  mkfs.ext4 -q -F -b 4096 -O ^has_journal -m 0 -N $(( $(find "$R" | wc -l) + 4096 )) -d "$R" "$DIR/root.img" "${kb}k"
  rm -rf "$R"; ls -l "$DIR"
}

KERNEL_ARGS="console=ttyS0 quiet panic=-1 mitigations=off nokaslr random.trust_cpu=on no_timer_check audit=0 tsc=reliable nowatchdog rcupdate.rcu_expedited=1 ${GUEST_APPEND:-}"

# initrd INTO NONCE CMD: the kernel takes several cpio archives one after the other; ours has the command
initrd() {
  local T; T=$(mktemp -d); printf '%s\n' "$3" > "$T/cmd"; echo "$2" > "$T/nonce"
  (cd "$T" && find . -type f | cpio --quiet -o -H newc -R 0:0) | cat "$DIR/initrd.img" - > "$1"; rm -rf "$T"
}

# root FILE: / as a file system with a journal and some room
root() {
  cp "$DIR/root.img" "$1"; truncate -s 768M "$1"; e2fsck -fy "$1" > /dev/null 2>&1 || [ $? = 1 ]
  resize2fs "$1" > /dev/null 2>&1; tune2fs -O has_journal "$1" > /dev/null
}

disk() {
  local out=$1 W esp=96 blocks; shift; [ "${1:-}" = -- ] && shift
  W=$(mktemp -d "$DIR/disk.XXXXXX"); initrd "$W/initrd.img" firmware "$*"
  printf '%s\n' 'search --no-floppy --file /vmlinuz --set=root' "linux /vmlinuz $KERNEL_ARGS guest.share=1 guest.root=/dev/nvme0n1p2" 'initrd /initrd.img' boot > "$W/grub.cfg"
  grub-mkstandalone -O x86_64-efi -o "$W/boot.efi" --modules "part_gpt fat linux search" "boot/grub/grub.cfg=$W/grub.cfg"
  # 4 KiB blocks as the drive has them: in the table, and in the file system that the firmware reads
  truncate -s "${esp}M" "$W/esp"; mkfs.vfat -S 4096 -s 1 "$W/esp" > /dev/null
  export MTOOLS_SKIP_CHECK=1; mmd -i "$W/esp" ::/EFI ::/EFI/BOOT
  mcopy -i "$W/esp" "$W/boot.efi" ::/EFI/BOOT/BOOTX64.EFI; mcopy -i "$W/esp" "$DIR/vmlinuz" "$W/initrd.img" ::/
  root "$W/root"
  blocks=$(( $(stat -c %s "$W/root") / 4096 )); truncate -s "$(( (esp + 2) * 1048576 + blocks * 4096 ))" "$out"
  printf '%s\n' g n 1 256 "+${esp}M" t 1 n 2 '' "+$((blocks - 1))" w | fdisk -b 4096 "$out" > "$W/fdisk" 2>&1 || { cat "$W/fdisk" >&2; exit 1; }
  dd if="$W/esp" of="$out" bs=1M seek=1 conv=notrunc status=none
  dd if="$W/root" of="$out" bs=1M seek="$((esp + 1))" conv=notrunc status=none; rm -rf "$W"
}

run() {
  local mem=1024 cpus=1 tmo=300 share= verbose= pci= root= number= firmware=
  while getopts m:c:t:s:U:R:p:vB o; do case $o in m) mem=$OPTARG;; c) cpus=$OPTARG;; t) tmo=$OPTARG;; s) share=$(readlink -f "$OPTARG");;
    U) pci=$OPTARG;; R) root=$OPTARG;; p) number=$OPTARG;; v) verbose=1;; B) firmware=1;; *) exit 2;; esac; done
  shift $((OPTIND-1)); [ "${1:-}" = -- ] && shift
  local W args app nonce; W=$(mktemp -d "$DIR/run.XXXXXX"); nonce=$(basename "$W")
  app=$KERNEL_ARGS
  args=(-accel "${GUEST_ACCEL:-tcg,thread=multi}" -cpu max,la57=off -M q35 -smp "$cpus" -m "$mem" -nodefaults -no-user-config
    -display none -no-reboot
    -serial "file:$W/console" -serial "file:$W/out"
    -netdev "user,id=n0" -device virtio-net-pci,netdev=n0,romfile= -device virtio-rng-pci)
  if [ -n "$root" ]; then app="$app guest.root=$root"; elif [ -z "$firmware" ]; then
    args+=(-drive "file=$DIR/root.img,format=raw,if=none,id=root,snapshot=on,cache=unsafe" -device virtio-blk-pci,drive=root); fi
  # The server reads and writes the guest's memory: it is a file that both have.
  [ -n "$pci" ] && args+=(-object "memory-backend-memfd,id=shared,size=${mem}M,share=on" -machine memory-backend=shared
    -device "{\"driver\":\"vfio-user-pci\",\"socket\":{\"path\":\"$pci\",\"type\":\"unix\"}}")
  [ -n "$share" ] && { args+=(-virtfs "local,path=$share,mount_tag=host,security_model=none"); app="$app guest.share=1"; }
  if [ -n "$firmware" ]; then
    nonce=firmware; cp /usr/share/OVMF/OVMF_VARS_4M.fd "$W/vars"
    args+=(-drive "if=pflash,format=raw,readonly=on,file=/usr/share/OVMF/OVMF_CODE_4M.fd" -drive "if=pflash,format=raw,file=$W/vars")
  else initrd "$W/initrd" "$nonce" "$*"; args+=(-kernel "$DIR/vmlinuz" -initrd "$W/initrd" -append "$app"); fi
  "$QEMU" "${args[@]}" > "$W/qemu.log" 2>&1 & local pid=$! t0=$SECONDS rc=125 killed=
  [ -n "$number" ] && echo "$pid" > "$number"
  trap 'kill -9 '"$pid"' 2>/dev/null || true' EXIT
  while kill -0 $pid 2>/dev/null; do
    if grep -qs "@@GUEST-EXIT $nonce " "$W/out"; then sleep 0.3; kill "$pid" 2>/dev/null || true; break; fi
    [ $((SECONDS-t0)) -ge "$tmo" ] && { kill -9 "$pid" || true; killed=1; break; }
    sleep 0.1
  done
  wait $pid 2>/dev/null || true
  [ -n "$verbose" ] && cat "$W/console" >&2
  cp "$W/console" "$DIR/console.last.log" 2>/dev/null || true; grep -v 'terminating on signal 15\|Could not enable error recovery\|invalid PCI interrupt pin 255' "$W/qemu.log" >&2 || true
  if grep -qs "@@GUEST-EXIT $nonce " "$W/out"; then
    rc=$(sed -n "s/.*@@GUEST-EXIT $nonce \([0-9]*\)@@.*/\1/p" "$W/out")
    sed "/@@GUEST-EXIT $nonce /d" "$W/out" | sed '$ { /^$/d }'
  else cat "$W/out" 2>/dev/null || true; [ -n "$killed" ] && rc=124; cp "$W/console" "$DIR/console.failed.log" 2>/dev/null || true; fi
  rm -rf "$W"; return "$rc"
}
case ${1:-} in build) build;; root) root "$2";; disk) shift; disk "$@";; run) shift; run "$@";; *) sed -n '2,19p' "$0"; exit 2;; esac
