#!/usr/bin/env python3
"""Runs in the guest of dm_zoned.py: sends requests to the kernel's dm-zoned, and counts what reaches its members.

    dm_zoned_guest.py JOB.json RESULT.json

Members are null_blk drives in memory, a regular and a zoned one. What reaches them is told apart by the letters that the
block layer gives it (tracepoint block_bio_queue): M is dm-zoned's metadata; S is the host's, sent with O_DIRECT; what has
neither is reclaim's. Moves are told from dm-zoned's own debugging messages.
"""

import fcntl
import json
import mmap
import os
import re
import struct
import subprocess
import sys
import time
import zlib

BLOCK, SECTOR = 4096, 512
UNMAPPED = 0xFFFFFFFF
BLKDISCARD = 0x1277
CONFIG = "/sys/kernel/config/nullb"
EVENT = "/sys/kernel/tracing/events/block/block_bio_queue"
REQUEST = struct.Struct("<cxxxIQQ")  # what, sectors, at (us), first sector


def superblock(number, generation, layout, device):
    """4 KiB of metadata version 2 (drivers/md/dm-zoned-metadata.c, struct dmz_super)."""
    head = struct.pack("<4sIQQIIIII", b"DBZD", 2, generation, number, layout["meta_blocks"], layout["reserved"],
                       layout["chunks"], layout["map_blocks"], layout["bitmap_blocks"])
    label, pair, own = b"leyden".ljust(32, b"\0"), b"leyden-dm-zoned\0", (b"member %d" % device).ljust(16, b"\0")
    body = lambda checksum: (head + struct.pack("<I", checksum) + label + pair + own).ljust(BLOCK, b"\0")
    # crc32_le(generation, block) without the inversions that zlib makes.
    return body(zlib.crc32(body(0), generation ^ 0xFFFFFFFF) ^ 0xFFFFFFFF)


def layout_of(job):
    """Where dm-zoned's metadata lies: each set in zones of its own."""
    zone_blocks = job["zone_mib"] * 256
    zones = job["random"] + 2 + job["sequential"]
    layout = {"reserved": job["reserved"], "chunks": job["chunks"], "map_blocks": -(-job["chunks"] // 512),
              "bitmap_blocks": zones * max(1, zone_blocks // 8 // BLOCK)}
    layout["meta_blocks"] = 1 + layout["map_blocks"] + layout["bitmap_blocks"]
    assert layout["meta_blocks"] <= zone_blocks, "a set of metadata does not fit a zone"
    return layout


def format_members(job, regular, zoned=None):
    layout, zone_bytes = layout_of(job), job["zone_mib"] << 20
    tables = struct.pack("<I", UNMAPPED) * (layout["map_blocks"] * BLOCK // 4) + bytes(layout["bitmap_blocks"] * BLOCK)
    with open(regular, "r+b", buffering=0) as file:
        for number in (0, 1):
            first = number * zone_bytes
            os.pwrite(file.fileno(), superblock(first // BLOCK, 1, layout, 0) + tables, first)
        os.fsync(file.fileno())
    if zoned:
        first = (job["random"] + 2) * zone_bytes // BLOCK
        write_direct(zoned, superblock(first, 0, layout, 1))


def aligned(size):
    buffer = mmap.mmap(-1, size)
    buffer.write(b"\xa5" * size)
    return buffer


def write_direct(path, data):
    buffer = aligned(len(data))
    buffer.seek(0)
    buffer.write(data)
    file = os.open(path, os.O_WRONLY | os.O_DIRECT)
    os.pwrite(file, buffer, 0)
    os.close(file)


def make_drive(name, mib, settings):
    os.mkdir(f"{CONFIG}/{name}")
    for key, value in {"size": mib, "blocksize": BLOCK, "memory_backed": 1, **settings, "power": 1}.items():
        with open(f"{CONFIG}/{name}/{key}", "w") as file:
            file.write(str(value))
    # Newer kernels name the drive as its folder is named.
    with open(f"{CONFIG}/{name}/index") as file:
        numbered = f"/dev/nullb{file.read().strip()}"
    return f"/dev/{name}" if os.path.exists(f"/dev/{name}") else numbered


def make_members(job):
    """A regular and a zoned drive; or one whose first zones are conventional."""
    random_mib, sequential_mib = (job["random"] + 2) * job["zone_mib"], job["sequential"] * job["zone_mib"]
    zones = {"zoned": 1, "zone_size": job["zone_mib"]}
    if job["drives"] == 1:
        return [make_drive("both", random_mib + sequential_mib, {**zones, "zone_nr_conv": job["random"] + 2})]
    return [make_drive("regular", random_mib, {}), make_drive("zoned", sequential_mib, {**zones, "zone_nr_conv": 0})]


def drop_drive(name):
    with open(f"{CONFIG}/{name}/power", "w") as file:
        file.write("0")
    os.rmdir(f"{CONFIG}/{name}")


def number_of(path):
    """A device's number as tracepoints tell it."""
    at = os.stat(path).st_rdev
    return os.major(at) << 20 | os.minor(at)


def histogram(text):
    """Sectors by device and letters, of a tracepoint's histogram."""
    pattern = r"\{ dev: +(\d+), rwbs: (\S*) *\} hitcount: +(\d+) +nr_sector: +(\d+)"
    return {(int(dev), rwbs): int(sectors) for dev, rwbs, _, sectors in re.findall(pattern, text)}


def counted(sectors, regular, zoned):
    """Blocks that reached the members, by whom they come from."""
    found = {}
    for (device, letters), number in sectors.items():
        member = {zoned: "zoned", regular: "conventional"}.get(device)
        if member is None or not number:
            continue
        what = "read" if "R" in letters else "written"
        who = "metadata" if "M" in letters else "host" if "S" in letters else "reclaim"
        key = f"{member}_{what}_{who}"
        found[key] = found.get(key, 0) + number * SECTOR // BLOCK
    return found


def moves(log):
    """What reclaim did, of dm-zoned's messages: moves by their kind, those that ended early, and the blocks of each."""
    found = {"begun": 0, "ended_early": 0, "failed": 0, "ended": 0, "out": 0, "append": 0, "into_buffer": 0}
    for line in log.splitlines():
        if move := re.search(r"Chunk (\d+), move (\w+) zone \d+ \(weight (\d+)\) to (\w+) zone", line):
            found["begun"] += 1
            kind = {"buf": "append", "data": "into_buffer"}.get(move[2], "out")
            found[kind] += 1
        elif "interrupted" in line:
            found["ended_early"] += 1
        elif "Failed to reclaim" in line:
            found["failed"] += 1
        elif "Reclaimed zone" in line:
            found["ended"] += 1
    return found


def send(path, requests):
    """Sends requests one after the other, none before its time; how much later than their times all were sent."""
    device = os.open(path, os.O_RDWR | os.O_DIRECT)
    longest = max((sectors for _, sectors, _, _ in requests), default=8) * SECTOR
    view = memoryview(aligned(max(longest, BLOCK)))
    begun, late = time.monotonic(), 0.0
    for what, sectors, at_us, first in requests:
        early = begun + late + at_us / 1e6 - time.monotonic()
        if early > 0:
            time.sleep(early)
        elif at_us:
            late -= early
        if what == b"W":
            os.pwrite(device, view[:sectors * SECTOR], first * SECTOR)
        elif what == b"R":
            os.preadv(device, [view[:sectors * SECTOR]], first * SECTOR)
        elif what == b"F":
            os.fsync(device)
        else:
            # dm-zoned does the same for zeroes as for a discard, but null_blk takes none, so that the block layer would
            # write them.
            fcntl.ioctl(device, BLKDISCARD, struct.pack("<QQ", first * SECTOR, sectors * SECTOR))
    os.close(device)
    return late


def clear_counts():
    for action in ("!hist:keys=dev,rwbs:vals=nr_sector", "hist:keys=dev,rwbs:vals=nr_sector"):
        try:
            with open(f"{EVENT}/trigger", "w") as file:
                file.write(action)
        except OSError:
            pass


def run(job, name):
    with open(f"/host/{name}.bin", "rb") as file:
        requests = list(REQUEST.iter_unpack(file.read()))
    drives = make_members(job)
    format_members(job, *drives)
    sectors = job["chunks"] * job["zone_mib"] * 2048
    subprocess.run(["dmsetup", "create", "dmz", "--table", f"0 {sectors} zoned {' '.join(drives)}"], check=True)
    subprocess.run(["dmesg", "-C"], check=True)
    clear_counts()
    begun = time.monotonic()
    late = send("/dev/mapper/dmz", requests)
    took = time.monotonic() - begun
    with open(f"{EVENT}/hist") as file:
        # What is on one drive is told as the conventional one's.
        counts = counted(histogram(file.read()), number_of(drives[0]), number_of(drives[-1]))
    told = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    status = subprocess.run(["dmsetup", "status", "dmz"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["dmsetup", "remove", "--retry", "dmz"], check=True)
    for drive in os.listdir(CONFIG):
        if os.path.isdir(f"{CONFIG}/{drive}"):
            drop_drive(drive)
    with open(f"/host/{name}.log", "w") as file:
        file.write(told)
    return {"seconds": took, "late": late, "blocks": counts, "moves": moves(told), "status": status}


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    for command in (["modprobe", "null_blk", "nr_devices=0"], ["modprobe", "dm_zoned"]):
        subprocess.run(command, check=True)
    if not os.path.ismount("/sys/kernel/config"):
        subprocess.run(["mount", "-t", "configfs", "configfs", "/sys/kernel/config"], check=True)
    # Of messages these only: an idle dm-zoned that has nothing to move says so thousands of times a second.
    for message in ("move", "interrupted", "Failed", "Reclaimed"):
        with open("/sys/kernel/debug/dynamic_debug/control", "w") as file:
            file.write(f"module dm_zoned format {message} +p")
    # Debugging messages go to the log alone.
    subprocess.run(["dmesg", "-n", "1"], check=True)
    # Nobody else makes device nodes here.
    os.environ["DM_DISABLE_UDEV"] = "1"
    results = {"kernel": os.uname().release}
    for name in job["workloads"]:
        results[name] = run(job, name)
        with open(sys.argv[2], "w") as file:
            json.dump(results, file)


if __name__ == "__main__":
    main()
