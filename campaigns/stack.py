"""A served drive, a loop device on it, and a file system: set up, cut, killed, repaired, taken down."""

import json
import mmap
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIP = 77


class Broken(Exception):
    """Something that was promised is not there."""


def skip(why):
    print(f"LEFT OUT: {why}")
    sys.exit(SKIP)


def need(*programs):
    for program in programs:
        if not shutil.which(program):
            skip(f"{program} is not installed")


def said(*command, check=True, timeout=300):
    done = subprocess.run(command, capture_output=True, text=True, timeout=timeout)
    if check and done.returncode != 0:
        raise RuntimeError(f"{' '.join(command)}: {done.stdout}{done.stderr}")
    return done


class Power:
    """Says whether the drive below a mounted file system has power, by a read past all caches.

    A promise counts if the power is on after it was made. ext4's fsync once returned 0 though the write of its commit
    had failed: the kernel's log named the first block of that transaction's journal record (docs/serving.md).
    """

    def __init__(self, mount):
        number = os.stat(mount).st_dev
        link = os.readlink(f"/sys/dev/block/{os.major(number)}:{os.minor(number)}")
        self.file = os.open(f"/dev/{os.path.basename(link)}", os.O_RDONLY | os.O_DIRECT)
        self.page = mmap.mmap(-1, 4096)

    def is_on(self):
        try:
            return os.preadv(self.file, [self.page], 0) == len(self.page)
        except OSError:
            return False

    def close(self):
        os.close(self.file)


MAKE = {
    "ext4": ["mkfs.ext4", "-q"],
    "ext4-journal": ["mkfs.ext4", "-q"],
    "xfs": ["mkfs.xfs", "-q", "-f"],
}
OPTIONS = {"ext4": "data=ordered", "ext4-journal": "data=journal", "xfs": "defaults"}


ONE_DRIVE = ["--drive", "devices/hexa"]

# A block device of 0.5 GiB on a conventional drive of 64 zones and a zoned one, small enough for reclaim to have work
# in every round. Journals are found by superblocks, and kept apart; XFS's has 64 MiB.
TWO_DRIVES = ["--drive", "devices/zoned-block"]
for one in [
    *(f"{drive}.nand.{what}=4" for drive in ("device", "host.conventional") for what in ("channels", "dies_per_channel")),
    "device.nand.blocks_per_plane=36",
    "device.zoned.zone_size=4 MiB",
    "device.zoned.dies_per_zone=4",
    "host.conventional.nand.blocks_per_plane=24",
    "host.conventional.ftl.capacity=256 MiB",
    "host.zoned_block.low_free=90 %",
    "host.zoned_block.high_free=95 %",
    "host.zoned_block.journal.separate=true",
    "host.zoned_block.journal.recognise=superblock",
    "host.zoned_block.journal.max_zones=17",
]:
    TWO_DRIVES += ["--set", one]


class Stack:
    """`leyden serve` with FUSE, a loop device with direct I/O, a mounted file system."""

    def __init__(
        self, leyden, folder, fs, region="none", lie=False, latency="off", sets=(), keep=(), drive=ONE_DRIVE, held=False
    ):
        if not shutil.which(leyden):
            sys.exit(f"{leyden}: there is no such program; build leyden, and name it with --leyden")
        if os.getuid() != 0:
            skip("loop devices need root")
        if not os.path.exists("/dev/fuse"):
            skip("there is no /dev/fuse")
        need("losetup", "fusermount3", MAKE[fs][0], "e2fsck" if fs != "xfs" else "xfs_repair")
        if said("losetup", "-f", check=False).returncode != 0:
            skip("there are no loop devices")
        self.leyden, self.fs, self.lie, self.latency = leyden, fs, lie, latency
        self.image = os.path.join(folder, "disk.leyden")
        self.room = os.path.join(folder, "fuse")
        self.mount = os.path.join(folder, "mnt")
        self.log = os.path.join(folder, "server.log")
        os.makedirs(self.room, exist_ok=True)
        os.makedirs(self.mount, exist_ok=True)
        self.server = self.loop = self.holder = None
        self.mounted, self.held = False, held
        self.layer = {}
        drive = [*drive, "--set", f"device.buffer.region={region}"]
        for one in sets:
            drive += ["--set", one]
        said(leyden, "image", "create", self.image, *drive, *keep)

    # -- up and down

    def start(self):
        command = [self.leyden, "serve", self.image, "--fuse", self.room, "--latency", self.latency]
        if self.lie:
            command.append("--lie")
        with open(self.log, "ab") as log:
            self.server = subprocess.Popen(command, stdout=log, stderr=log)
        disk = os.path.join(self.room, "disk")
        until = time.monotonic() + 60
        while not os.path.exists(disk):
            if self.server.poll() is not None or time.monotonic() > until:
                raise RuntimeError(f"the server does not start: {open(self.log).read()[-2000:]}")
            time.sleep(0.02)

    def attach(self):
        disk = os.path.join(self.room, "disk")
        self.loop = said("losetup", "--show", "-f", "--direct-io=on", "-b", "4096", disk).stdout.strip()

    def make(self):
        said(*MAKE[self.fs], self.loop)

    def mount_fs(self):
        said("mount", "-o", OPTIONS[self.fs], self.loop, self.mount)
        self.mounted = True
        if self.held:
            self.hold()

    def hold(self):
        """Another mount namespace, as any container is one: it has a copy of the mount, which outlives ours."""
        self.holder = subprocess.Popen(["unshare", "-m", "--propagation", "private", "sleep", "infinity"])
        ours, until = os.readlink("/proc/self/ns/mnt"), time.monotonic() + 60
        while os.readlink(f"/proc/{self.holder.pid}/ns/mnt") == ours:
            if self.holder.poll() is not None or time.monotonic() > until:
                raise RuntimeError("there is no other mount namespace")
            time.sleep(0.01)

    def unmount(self):
        if self.mounted:
            if said("umount", self.mount, check=False).returncode != 0:
                said("umount", "-l", self.mount, check=False)
            self.mounted = False
        if self.holder:
            with open(f"/proc/{self.holder.pid}/mounts") as mounts:
                if f" {os.path.realpath(self.mount)} " not in mounts.read():
                    raise RuntimeError("the other mount namespace does not hold the mount")
            time.sleep(0.3)  # what it holds is in use still, though nothing is mounted here
            self.holder.kill()
            self.holder.wait()
            self.holder = None

    def detach(self):
        self.unmount()
        if self.loop:
            said("losetup", "-d", self.loop, check=False)
            # A loop device goes when its last user has gone: the next one must not find the old data in it.
            until = time.monotonic() + 10
            while self.loop in said("losetup", "-a").stdout and time.monotonic() < until:
                time.sleep(0.02)
            self.loop = None

    def repair(self):
        """The file system's own recovery, and a check that finds nothing more."""
        if self.fs == "xfs":
            self.mount_fs()  # plays the log back
            self.unmount()
            done = said("xfs_repair", "-n", self.loop, check=False)
            if done.returncode != 0:
                raise Broken(f"xfs_repair: {done.stdout}{done.stderr}")
        else:
            done = said("e2fsck", "-p", self.loop, check=False)
            if done.returncode > 1:
                raise Broken(f"e2fsck -p: {done.stdout}{done.stderr}")
            done = said("e2fsck", "-fn", self.loop, check=False)
            if done.returncode != 0:
                raise Broken(f"e2fsck -fn: {done.stdout}{done.stderr}")
        self.mount_fs()

    def up(self):
        self.start()
        self.attach()
        self.make()
        self.mount_fs()

    def down(self):
        self.detach()
        if self.server:
            self.server.terminate()
            if self.server.wait(timeout=120) != 0:
                raise RuntimeError(f"the server ended badly: {open(self.log).read()[-2000:]}")
            self.server = None
        report = json.loads(said(self.leyden, "image", "check", self.image, "--json").stdout)
        if report["damaged_units"]:
            raise Broken(f"the image is damaged: {report}")

    def abandon(self):
        """Whatever is left, on every way out."""
        self.detach()
        if self.server and self.server.poll() is None:
            self.server.kill()
            self.server.wait()
        said("umount", "-l", self.room, check=False)

    def memory_kib(self):
        """What of the server is in memory."""
        with open(f"/proc/{self.server.pid}/status") as status:
            return next(int(line.split()[1]) for line in status if line.startswith("VmRSS"))

    # -- power

    def cut(self):
        """`leyden cut`; returns its report."""
        return json.loads(said(self.leyden, "cut", self.image, "--json").stdout)

    def restore(self):
        """`leyden restore`, and the file system's recovery."""
        self.detach()
        report = json.loads(said(self.leyden, "restore", self.image, "--json").stdout)
        self.attach()
        self.repair()
        return report

    def note_layer(self):
        """Adds what the layer of a block device on two drives has done since its server began; how large its journal is."""
        told = json.loads(said(self.leyden, "status", self.image, "--json").stdout).get("zoned_block", {})
        journal = told.pop("journal_bytes", 0)
        for what, number in told.items():
            self.layer[what] = self.layer.get(what, 0) + number
        return journal

    def kill(self):
        """SIGKILL of the server: a power cut, too."""
        self.server.send_signal(signal.SIGKILL)
        self.server.wait()

    def revive(self):
        """A new server after a kill, and the file system's recovery."""
        self.detach()
        said("umount", "-l", self.room, check=False)
        self.start()
        self.attach()
        self.repair()


def folder_for(args):
    """A folder for an image: where asked, or one of its own."""
    return args.folder or tempfile.mkdtemp(prefix="leyden-rounds-")
