#!/usr/bin/env python3
"""What does fsync of a folder return after the power has failed, and is what it promised there?

    promise.py --leyden target/release/leyden

In each set-up a file is changed and another one is renamed, in one transaction of the file system; then no write reaches the
disk any more. In the order `folder` only the folder is synced. In `written` the changed file is synced before it, which has new
data: that is written, and fails, before the transaction. In `changed` only its mode is new: the transaction fails. In `late`
the disk fails after both.

Printed: what each fsync returned, the requests that the folder's sent to the block device, and whether the rename is there once
the disk is back. Two of the set-ups have no Leyden below them.

Exits with 1 if a rename is gone though an fsync that the disk has answered promised it; with 77 if no set-up can be made here.
"""

import argparse
import contextlib
import errno
import os
import shutil
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import stack
from stack import Stack, said

ORDERS = ("late", "folder", "written", "changed")


class CannotBeMade(Exception):
    """This machine lacks what a set-up takes."""


@dataclass
class Disk:
    """A mounted file system, whose disk fails at a call and comes back at another."""

    mount: str
    device: str
    fail: Callable[[], object]
    bring_back: Callable[[], object]


@contextlib.contextmanager
def served(leyden: str, folder: str, fs: str, options: str) -> Iterator[Disk]:
    """A served drive without a protected buffer, whose power is cut."""
    if os.getuid() != 0 or not os.path.exists("/dev/fuse"):
        raise CannotBeMade("root and /dev/fuse are needed")
    for program in ("losetup", "fusermount3", stack.MAKE[fs][0]):
        if not shutil.which(program):
            raise CannotBeMade(f"{program} is not installed")
    stack.OPTIONS[fs] = options
    sets = ["device.nand.blocks_per_plane=32", "device.ftl.over_provisioning=20 %"]
    drive = Stack(leyden, folder, fs, sets=sets)
    try:
        drive.up()
        yield Disk(drive.mount, drive.loop, drive.cut, drive.restore)
        drive.down()
    finally:
        drive.abandon()


def mount(device: str, where: str) -> None:
    os.makedirs(where, exist_ok=True)
    said("mount", "-o", "data=ordered", device, where)


def recover(device: str) -> None:
    done = said("e2fsck", "-p", device, check=False)
    if done.returncode > 1:
        raise stack.Broken(f"e2fsck -p: {done.stdout}{done.stderr}")


@contextlib.contextmanager
def full_tmpfs(leyden: str, folder: str, fs: str, options: str) -> Iterator[Disk]:
    """No Leyden: a loop device on a sparse file, in a tmpfs that is full from some moment on. The journal is not written by
    mkfs, so that each of its blocks takes room."""
    if os.getuid() != 0:
        raise CannotBeMade("loop devices need root")
    room, where = os.path.join(folder, "room"), os.path.join(folder, "mnt")
    disk, ballast = os.path.join(room, "disk"), os.path.join(room, "ballast")
    os.makedirs(room)
    said("mount", "-t", "tmpfs", "-o", "size=64m", "tmpfs", room)
    loop = ""
    try:
        with open(disk, "wb") as file:
            file.truncate(256 << 20)
        said("mkfs.ext4", "-q", "-E", "lazy_journal_init=1,lazy_itable_init=1,nodiscard", disk)
        loop = said("losetup", "--show", "-f", disk).stdout.strip()
        # `noinit_itable` keeps the thread that would write inode tables out of the way.
        os.makedirs(where)
        said("mount", "-o", "data=ordered,noinit_itable", loop, where)

        def fail() -> None:
            with contextlib.suppress(OSError), open(ballast, "wb", buffering=0) as file:
                while file.write(bytes(4096)):
                    pass

        def bring_back() -> None:
            said("umount", where)
            os.unlink(ballast)
            recover(loop)
            mount(loop, where)

        yield Disk(where, loop, fail, bring_back)
    finally:
        said("umount", "-l", where, check=False)
        if loop:
            said("losetup", "-d", loop, check=False)
        said("umount", "-l", room, check=False)


@contextlib.contextmanager
def mapped(leyden: str, folder: str, fs: str, options: str) -> Iterator[Disk]:
    """No Leyden: a device of the device mapper whose table becomes `error`."""
    if os.getuid() != 0 or not shutil.which("dmsetup"):
        raise CannotBeMade("root and dmsetup are needed")
    if "error" not in said("dmsetup", "targets", check=False).stdout:
        raise CannotBeMade("this kernel has no device mapper")
    disk, where, name = os.path.join(folder, "disk"), os.path.join(folder, "mnt"), f"leyden-promise-{os.getpid()}"
    with open(disk, "wb") as file:
        file.truncate(256 << 20)
    loop = said("losetup", "--show", "-f", disk).stdout.strip()
    sectors = (256 << 20) // 512

    def table(text: str) -> None:
        said("dmsetup", "suspend", "--nolockfs", name)
        said("dmsetup", "load", name, "--table", text)
        said("dmsetup", "resume", name)

    try:
        said("dmsetup", "create", name, "--table", f"0 {sectors} linear {loop} 0")
        device = os.path.realpath(f"/dev/mapper/{name}")
        said("mkfs.ext4", "-q", device)
        mount(device, where)

        def bring_back() -> None:
            said("umount", where)
            table(f"0 {sectors} linear {loop} 0")
            recover(device)
            mount(device, where)

        yield Disk(where, device, lambda: table(f"0 {sectors} error"), bring_back)
    finally:
        said("umount", "-l", where, check=False)
        said("dmsetup", "remove", "-f", name, check=False)
        said("losetup", "-d", loop, check=False)


SETUPS = [
    ("ext4, served drive", served, "ext4", "data=ordered"),
    ("ext4 errors=remount-ro, served", served, "ext4", "data=ordered,errors=remount-ro"),
    ("ext4 data=journal, served", served, "ext4-journal", "data=journal"),
    ("XFS, served drive", served, "xfs", "defaults"),
    ("ext4, file in a full tmpfs", full_tmpfs, "ext4", ""),
    ("ext4, dm-error", mapped, "ext4", ""),
]


def synced(file: int) -> str:
    """What fsync returns."""
    try:
        os.fsync(file)
    except OSError as error:
        return errno.errorcode.get(error.errno or 0, str(error.errno))
    return "0"


def requests(device: str) -> int:
    """Requests that the block device has ended, flushes among them."""
    with open(f"/sys/block/{os.path.basename(device)}/stat") as stat:
        fields = [int(field) for field in stat.read().split()]
    return fields[0] + fields[4] + (fields[15] if len(fields) > 15 else 0)


@dataclass
class Seen:
    file: str
    folder: str
    sent: int
    kept: bool

    def is_lost(self) -> bool:
        return self.folder == "0" and not self.kept

    def is_broken(self) -> bool:
        """The disk did its part of the promise: the folder's fsync asked it, or the file's had succeeded."""
        return self.is_lost() and (self.sent > 0 or self.file == "0")


def seen(disk: Disk, order: str) -> Seen:
    old, new = (os.path.join(disk.mount, name) for name in ("old", "new"))
    with open(old, "wb") as file:
        file.write(b"kept")
    changed = os.open(os.path.join(disk.mount, "changed"), os.O_CREAT | os.O_WRONLY)
    folder = os.open(disk.mount, os.O_RDONLY)
    try:
        said("sync", "-f", disk.mount)
        if order == "written":
            os.write(changed, bytes(4096))
        else:
            os.fchmod(changed, 0o600)
        os.rename(old, new)
        if order != "late":
            disk.fail()
        file_said = synced(changed) if order != "folder" else ""
        before = requests(disk.device)
        folder_said = synced(folder)
        sent = requests(disk.device) - before
        if order == "late":
            disk.fail()
    finally:
        os.close(changed)
        os.close(folder)
    disk.bring_back()
    return Seen(file_said, folder_said, sent, os.path.exists(new))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", default="leyden", help="the program")
    args = parser.parse_args()
    made, broken = 0, []
    print(f"Linux {os.uname().release}")
    print(f"{'set-up':32} {'order':8} {'file':>6} {'folder':>7} {'requests':>9}  rename")
    for name, setup, fs, options in SETUPS:
        for order in ORDERS:
            with tempfile.TemporaryDirectory(prefix="leyden-promise-", dir="/tmp") as folder:
                try:
                    with setup(args.leyden, folder, fs, options) as disk:
                        it = seen(disk, order)
                except CannotBeMade as why:
                    print(f"{name:32} LEFT OUT: {why}", flush=True)
                    break
            made += 1
            verdict = "there" if it.kept else "LOST, and was promised" if it.is_lost() else "gone"
            print(f"{name:32} {order:8} {it.file:>6} {it.folder:>7} {it.sent:9}  {verdict}", flush=True)
            if it.is_broken():
                broken.append(f"{name}: {order}")
    if not made:
        sys.exit(stack.SKIP)
    for one in broken:
        print(f"the disk had answered, and the rename is gone: {one}", file=sys.stderr)
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()
