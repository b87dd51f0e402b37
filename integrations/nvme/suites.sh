#!/bin/bash
# In the guest: a test suite of others against served drives. `campaigns/conformance.py` asks for it through `drives --suite`.
# $1 is the suite, $2 the subsystem's name, $3 the port; /host/suite is its checkout, built. What it prints is read there.
set -uo pipefail
NQN=$2 PORT=$3 ADDR=10.0.2.2
HOSTID=11111111-2222-3333-4444-555555555555 HOSTNQN=nqn.2014-08.org.nvmexpress:uuid:11111111-2222-3333-4444-555555555555
for m in nvme_tcp nvme_fabrics null_blk zonefs; do modprobe -q $m; done
cp -a /host/suite /tmp/suite && cd /tmp/suite || exit 1
mkdir -p /boot; cp "/lib/modules/$(uname -r)/config" "/boot/config-$(uname -r)"
connect() { # one: there is one namespace only
  nvme connect -t tcp -a $ADDR -s "$PORT" -n "$NQN" --reconnect-delay=1 > /dev/null || exit 1
  local d; for _ in $(seq 100); do for d in /sys/block/nvme*n*; do [ "$(cat "$d/hidden")" = 0 ] || continue
    case $(cat "$d/nsid" 2>/dev/null) in 1) N1=/dev/${d##*/};; 2) N2=/dev/${d##*/};; esac; done
    [ "${1:-}" = one ] && [ -n "${N1:-}" ] && return; [ -n "${N1:-}" ] && [ -n "${N2:-}" ] && [ "$(cat "/sys/block/${N2##*/}/size")" -gt 0 ] && return; sleep 0.1; done; echo "no namespaces"; exit 1; }
# The tests of blktests that make a target of their own are given this one; it is there before them, and stays.
control() {
  connect one; local uuid; uuid=$(sed 's/^eui\.\(.\{8\}\)\(.\{4\}\)\(.\{4\}\)\(.\{4\}\)/\1-\2-\3-\4-/' "/sys/block/${N1##*/}/wwid"); nvme disconnect -n "$NQN" > /dev/null
  cat > /tmp/control <<I
#!/bin/bash
[ "\$1" = config ] || exit 0
case \$2 in
  --show-blkdev-type) echo device;; --show-trtype) echo tcp;; --show-hostnqn) echo $HOSTNQN;; --show-hostid) echo $HOSTID;;
  --show-host-traddr) echo 10.0.2.15;; --show-traddr) echo $ADDR;; --show-trsvid) echo $PORT;; --show-subsys-uuid) echo $uuid;;
  --show-subsysnqn) echo $NQN;;
esac
I
  chmod +x /tmp/control
}
case $1 in
  blktests-devices) connect; echo "@zoned ${N2##*/}"; mkdir -p /dev/char; for d in /sys/class/nvme/nvme*; do ln -sf "/dev/${d##*/}" "/dev/char/$(cat "$d/dev")"; done # there is no udev
    printf 'TEST_DEVS=(%s %s)\nDEVICE_ONLY=1\nQUICK_RUN=1\nTIMEOUT=20\n' "$N1" "$N2" > config; ./check block nvme zbd 2>&1 | cat;;
  blktests-target) control
    # These configure the kernel's own target while they run: its keys, its namespaces, its port; or a disk beneath it.
    for t in 031 041 042 043 044 045 051 061 065; do OUT="${OUT:-} nvme/$t"; printf 'nvme/%s (left out) [not run]\n    configures the target of the kernel\n' $t; done
    printf 'NVME_TARGET_CONTROL=/tmp/control\nNVME_NUM_ITER=10\nQUICK_RUN=1\nTIMEOUT=20\nEXCLUDE=(%s)\n' "$OUT" > config; ./check nvme 2>&1 | cat;;
  nvme-cli) connect one; c=$(ls -d /sys/class/nvme/nvme* | head -1)
    # The suite speaks the words of nvme-cli 3; an older one knows them by one name each.
    cat > /tmp/nvme3 <<'I'
#!/bin/bash
case "${1:-} ${2:-}" in
  "id ctrl" | "id ns") set -- "$1-$2" "${@:3}";; "id ctrl-list" | "id ns-list") w=${2%-list}; set -- "list-$w" "${@:3}";;
  "ns get-id") set -- get-ns-id "${@:3}";; "id nvm-ns") set -- nvm-id-ns "${@:3}";; "log smart" | "log error" | "log fw" | "log lba-status") set -- "$2-log" "${@:3}";;
esac
exec nvme "$@"
I
    chmod +x /tmp/nvme3; printf '{"do_validate_pci_device": false, "log_dir": "/tmp/logs", "nvme_bin": "/tmp/nvme3"}' > /tmp/config
    tests/nvme-cli-e2e --controller "/dev/${c##*/}" --ns1 "$N1" --config /tmp/config --plugins none --json-report /tmp/report > /tmp/log 2>&1
    cat /tmp/log; cat /tmp/report; echo;;
  zonefs-tools) connect; cd tests && ./zonefs-tests.sh "$N2" | cat; cd logs/* && for t in $(grep -l '^FAILED' [0-9]*.log); do echo "-- $t"; tail -30 "$t"; done;;
  fio) connect; ln -s "$(command -v fio)" fio; cd t/zbd && ./test-zbd-support -r "$N2" | cat; for t in $(grep -l '^FAIL' ./*.log.* 2>/dev/null); do echo "-- $t"; tail -30 "$t"; done;;
  *) echo "no suite $1"; exit 2;;
esac
echo "@ended $?"
dmesg | grep -E 'WARNING|BUG' | head -5
