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
TRACING = "/sys/kernel/tracing"
EVENT = f"{TRACING}/events/block/block_bio_queue"
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


def make_drive(name, mib, settings, delay_us=0):
    os.mkdir(f"{CONFIG}/{name}")
    delay = {"irqmode": 2, "completion_nsec": delay_us * 1000} if delay_us else {}
    for key, value in {"size": mib, "blocksize": BLOCK, "memory_backed": 1, **delay, **settings, "power": 1}.items():
        with open(f"{CONFIG}/{name}/{key}", "w") as file:
            file.write(str(value))
    # Newer kernels name the drive as its folder is named.
    with open(f"{CONFIG}/{name}/index") as file:
        numbered = f"/dev/nullb{file.read().strip()}"
    return f"/dev/{name}" if os.path.exists(f"/dev/{name}") else numbered


def make_members(job):
    """A regular and a zoned drive; or one whose first zones are conventional."""
    random_mib, sequential_mib = (job["random"] + 2) * job["zone_mib"], job["sequential"] * job["zone_mib"]
    zones, delay_us = {"zoned": 1, "zone_size": job["zone_mib"]}, job.get("delay_us", 0)
    if job["drives"] == 1:
        return [make_drive("both", random_mib + sequential_mib, {**zones, "zone_nr_conv": job["random"] + 2}, delay_us)]
    zoned = {**zones, "zone_nr_conv": 0}
    return [make_drive("regular", random_mib, {}, delay_us), make_drive("zoned", sequential_mib, zoned, delay_us)]


def drop_drive(name):
    with open(f"{CONFIG}/{name}/power", "w") as file:
        file.write("0")
    os.rmdir(f"{CONFIG}/{name}")


def number_of(path):
    """A device's number as tracepoints tell it."""
    at = os.stat(path).st_rdev
    return os.major(at) << 20 | os.minor(at)


def number_text(path):
    at = os.stat(path).st_rdev
    return f"{os.major(at)},{os.minor(at)}"


# `dmz-1 [000] ..... 9.000123: block_bio_queue: 252,0 R 341768 + 8 [kworker]`
READ = re.compile(r" (\d+\.\d+): block_bio_queue: (\d+,\d+) R (\d+) \+ (\d+) ")
# `[    9.000101] device-mapper: zoned reclaim: (leyden/1): Chunk 4, move cache zone 8 (weight 3969) to seq zone 41`
MOVE = re.compile(r"\[ *(\d+\.\d+)\].*Chunk (\d+), move \w+ zone (\d+) ")


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


def reads_of_reclaim(trace, log, job):
    """Blocks that reclaim read of each chunk, and how many of them lie in the journal: of a trace of its reads, and of its
    messages, which bear times of the same clock.

    `job["journal"]` holds the journal's blocks as pairs: the first, and the one after the last.
    """
    zone_blocks = job["zone_mib"] * 256
    regular_zones = (job["random"] + 2) if job["drives"] == 2 else 0
    begun = [(float(move[1]), 0, (int(move[2]), int(move[3]))) for move in map(MOVE.search, log) if move]
    read = [(float(read[1]), 1, read) for read in map(READ.search, trace) if read]
    chunk_of, chunks, journal, unknown = {}, {}, 0, 0
    for _, kind, told in sorted(begun + read, key=lambda it: it[:2]):
        if kind == 0:
            chunk_of[told[1]] = told[0]
            continue
        first, blocks = int(told[3]) * SECTOR // BLOCK, int(told[4]) * SECTOR // BLOCK
        zone, at = divmod(first, zone_blocks)
        if regular_zones and told[2] == job["zoned_number"]:
            zone += regular_zones
        chunk = chunk_of.get(zone)
        if chunk is None:
            unknown += blocks
            continue
        chunks[chunk] = chunks.get(chunk, 0) + blocks
        first = chunk * zone_blocks + at
        journal += sum(max(0, min(first + blocks, end) - max(first, begin)) for begin, end in job["journal"])
    return {"by_chunk": chunks, "journal": journal, "unknown": unknown}


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


def put(path, text):
    with open(path, "w") as file:
        file.write(text)


def trace_reclaim(on):
    """Keeps reads that are neither dm-zoned's metadata nor the host's in a trace."""
    put(f"{TRACING}/buffer_size_kb", "65536")
    put(f"{TRACING}/trace", "")
    put(f"{EVENT}/filter", 'rwbs == "R"' if on else "0")
    put(f"{EVENT}/enable", str(int(on)))


def clear_counts():
    for action in ("!hist:keys=dev,rwbs:vals=nr_sector", "hist:keys=dev,rwbs:vals=nr_sector"):
        try:
            with open(f"{EVENT}/trigger", "w") as file:
                file.write(action)
        except OSError:
            pass


def pairs_of(blocks):
    """Blocks as pairs: the first of a run, and the one after its last."""
    pairs = []
    for block in sorted(blocks):
        if pairs and pairs[-1][1] == block:
            pairs[-1][1] += 1
        else:
            pairs.append([block, block + 1])
    return pairs


def journal_blocks(device):
    """The journal's blocks of an ext4, as pairs: the first, and the one after the last."""
    told = subprocess.run(["debugfs", "-R", "blocks <8>", device], capture_output=True, text=True, check=True).stdout
    return pairs_of(map(int, told.split()))


def make_fs(device, work):
    """An ext4, and an allocated file in it, as papers/campaigns/capture.py makes them; returns the journal's blocks."""
    lazy, outside = "nodiscard,lazy_itable_init=0,lazy_journal_init=0", []
    if work.get("apart"):
        # No reclaim there: what a zone for the journal alone does. It takes one of the conventional drive's.
        journal = make_drive("journal", 128, {}, work["delay_us"])
        subprocess.run(["mke2fs", "-q", "-F", "-b", "4096", "-O", "journal_dev", journal, str(64 << 8)], check=True)
        outside = ["-J", f"device={journal}"]
    subprocess.run(["mkfs.ext4", "-q", "-b", "4096", *outside, "-E", lazy, device], check=True)
    os.makedirs("/tmp/fs", exist_ok=True)
    subprocess.run(["mount", "-o", f"data={work['mode']}", device, "/tmp/fs"], check=True)
    subprocess.run(["fallocate", "-l", f"{work['file_mib']}MiB", "/tmp/fs/file"], check=True)
    subprocess.run(["sync"], check=True)
    return [] if outside else journal_blocks(device)


def fio(words, mib, seed):
    """Writes the file; bytes in a second."""
    words = ["fio", "--filename=/tmp/fs/file", f"--size={mib}m", "--name=work", "--ioengine=psync", *words, "--end_fsync=1",
             f"--randseed={seed}", "--allrandrepeat=0", "--output-format=json"]
    told = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    subprocess.run(["sync"], check=True)
    return json.loads(told[told.index("{"):])["jobs"][0]["write"]["bw_bytes"]


def run(job, name):
    work = job.get("live", {}).get(name)
    requests = []
    if not work:
        with open(f"/host/{name}.bin", "rb") as file:
            requests = list(REQUEST.iter_unpack(file.read()))
    drives = make_members(job)
    format_members(job, *drives)
    sectors = job["chunks"] * job["zone_mib"] * 2048
    subprocess.run(["dmsetup", "create", "dmz", "--table", f"0 {sectors} zoned {' '.join(drives)}"], check=True)
    subprocess.run(["dmesg", "-C"], check=True)
    found = {}
    journal = make_fs("/dev/mapper/dmz", work) if work else job.get("journal", {}).get(name, [])
    clear_counts()
    # What lies where is told by the messages of moves, from the first one on.
    trace_reclaim(True)
    begun = time.monotonic()
    if work:
        found["late"], found["bytes_per_s"] = 0.0, fio(work["words"], work["file_mib"], work["seed"])
    else:
        found["late"] = send("/dev/mapper/dmz", requests)
    found["seconds"] = time.monotonic() - begun
    if work:
        subprocess.run(["umount", "/tmp/fs"], check=True)
    counts = {}
    if os.path.exists(f"{EVENT}/hist"):  # Debian's 5.10 has none.
        with open(f"{EVENT}/hist") as file:
            # What is on one drive is told as the conventional one's.
            counts = counted(histogram(file.read()), number_of(drives[0]), number_of(drives[-1]))
    told = subprocess.run(["dmesg"], capture_output=True, text=True, check=True).stdout
    with open(f"{TRACING}/trace") as file:
        ours = {**job, "zoned_number": number_text(drives[-1]), "journal": journal}
        reads = reads_of_reclaim(file, told.splitlines(), ours)
    trace_reclaim(False)
    status = subprocess.run(["dmsetup", "status", "dmz"], capture_output=True, text=True, check=True).stdout.strip()
    subprocess.run(["dmsetup", "remove", "--retry", "dmz"], check=True)
    for drive in os.listdir(CONFIG):
        if os.path.isdir(f"{CONFIG}/{drive}"):
            drop_drive(drive)
    with open(f"/host/{name}.log", "w") as file:
        file.write(told)
    return {**found, "blocks": counts, "moves": moves(told), "reads": reads, "status": status}


def main():
    with open(sys.argv[1]) as file:
        job = json.load(file)
    for command in (["modprobe", "null_blk", "nr_devices=0"], ["modprobe", "dm_zoned"], ["modprobe", "ext4"]):
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
