#!/usr/bin/env python3
"""Captures what a file system asks of its device, from mkfs on, with the journal's blocks marked.

    papers/campaigns/capture.py --fs ext4 --mode journal --job randwrite4k --out ext4-journal-randwrite4k.csv.zst

Makes a loop device on a file, a file system on it, and a file in that, allocated but not written, as fio does if it
is not told otherwise; then fio writes to the file in rounds, each with random numbers of its own and a sync at its
end. The trace is Leyden's own text (docs/traces.md), compressed if
the name of --out ends in .zst. It begins with mkfs: whoever replays it from the start needs to precondition nothing.
Prints where the parts end, counted in requests as `leyden` counts them (a preflush is one of its own), for
`run.ramp.requests` and `workload.trace.limit`.

Needs root, loop devices, tracefs, fio and the file system's tools. Exits with 77 if one is missing.
"""

import argparse
import contextlib
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading

CANNOT = 77
SECTOR_BYTES = 512
# The block layer writes zeroes so many sectors at a time where a drive has no Write Zeroes (`BIO_MAX_VECS` pages).
ZEROES = 2048
JOBS = {
    "randwrite4k": ["--rw=randwrite", "--bs=4k"],
    "randwrite4k-fsync16": ["--rw=randwrite", "--bs=4k", "--fsync=16"],
    "seqwrite128k": ["--rw=write", "--bs=128k"],
    "seqwrite4k": ["--rw=write", "--bs=4k"],
    "seqwrite4k-fsync32": ["--rw=write", "--bs=4k", "--fsync=32"],
}
# `fio-71 [001] ..... 9.000123: block_bio_queue: 7,0 WS 341768 + 8 [fio]`
QUEUED = re.compile(r" (\d+\.\d+): block_bio_queue: \d+,\d+ ([A-Z]+) (\d+) \+ (\d+) ")
# Letters of the operation in RWBS flags (Documentation/trace/ftrace, `blk_fill_rwbs`), and ours.
OPS = {"D": "D", "N": "Z", "W": "W", "R": "R"}
MARKED = re.compile(r": tracing_mark_write: leyden (\S+)")


class Cannot(Exception):
    """This machine lacks something."""


def run(*words, **more):
    """Runs a command; returns what it prints."""
    done = subprocess.run(words, capture_output=True, text=True, **more)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words)}: {done.stderr.strip() or done.stdout.strip()}")
    return done.stdout


def need():
    """Raises if something is missing, before anything is made."""
    if os.geteuid() != 0:
        raise Cannot("root is needed, for a loop device and tracefs")
    for tool in ("losetup", "mount", "fallocate", "fio", "zstd", "mkfs.ext4", "debugfs", "mkfs.xfs", "xfs_db"):
        if shutil.which(tool) is None:
            raise Cannot(f"there is no {tool}")


@contextlib.contextmanager
def loop_device(folder, mib):
    """A loop device on a file of `mib` MiB, which holds nothing."""
    path = os.path.join(folder, "disk")
    with open(path, "wb") as file:
        file.truncate(mib << 20)
    try:
        # Sectors of 4 KiB: a drive with mapping units of that size would have to read for smaller ones.
        device = run("losetup", "-f", "--show", "-b", "4096", "--direct-io=on", path).strip()
    except RuntimeError as error:
        raise Cannot(f"no loop device: {error}") from error
    try:
        yield device
    finally:
        run("losetup", "-d", device)


class Tracer:
    """The requests of one device, from a trace buffer of its own."""

    def __init__(self, folder, device):
        self.tracefs = os.path.join(folder, "tracing")
        os.mkdir(self.tracefs)
        try:
            run("mount", "-t", "tracefs", "none", self.tracefs)
        except RuntimeError as error:
            raise Cannot(f"no tracefs: {error}") from error
        self.root = os.path.join(self.tracefs, "instances", f"leyden-{os.getpid()}")
        os.mkdir(self.root)
        number = os.stat(device).st_rdev
        event = "events/block/block_bio_queue"
        if not os.path.isdir(os.path.join(self.root, event)):
            self.close()
            raise Cannot("this kernel does not trace block requests")
        self.set("trace_clock", "mono")
        self.set("buffer_size_kb", "16384")
        self.set(f"{event}/filter", f"dev == {os.major(number) << 20 | os.minor(number)}")
        self.set(f"{event}/enable", "1")
        self.lines, self.ended = [], threading.Event()
        self.reader = threading.Thread(target=self.read, daemon=True)
        self.reader.start()

    def set(self, name, value):
        with open(os.path.join(self.root, name), "w") as file:
            file.write(value)

    def read(self):
        pipe = os.open(os.path.join(self.root, "trace_pipe"), os.O_RDONLY | os.O_NONBLOCK)
        parts = []
        while True:
            is_last = self.ended.is_set()
            try:
                part = os.read(pipe, 1 << 16)
            except BlockingIOError:
                part = b""
            parts.append(part)
            if not part:
                if is_last:
                    break
                self.ended.wait(0.01)
        os.close(pipe)
        self.lines = b"".join(parts).decode(errors="replace").splitlines()

    def mark(self, name):
        self.set("trace_marker", f"leyden {name}\n")

    def close(self):
        if hasattr(self, "reader"):
            self.set("events/block/block_bio_queue/enable", "0")
            self.ended.set()
            self.reader.join()
            lost = [line for line in self.lines if "LOST" in line]
            if lost:
                raise RuntimeError(f"the kernel dropped events: {lost[0].strip()}")
        os.rmdir(self.root)
        run("umount", self.tracefs)


def make(fs, device):
    # Nothing is left for later: the file system writes all of its own before the work begins.
    if fs == "ext4":
        lazy = "nodiscard,lazy_itable_init=0,lazy_journal_init=0"
        run("mkfs.ext4", "-q", "-b", "4096", "-E", lazy, device)
    else:
        run("mkfs.xfs", "-q", "-K", device)


def journal(fs, device):
    """The journal's blocks of 4 KiB, as the file system's own tools tell them."""
    if fs == "ext4":
        blocks = run("debugfs", "-R", "blocks <8>", device).split()
        return {int(block) for block in blocks}
    fields = run("xfs_db", "-r", "-c", "sb 0", "-c", "p logstart logblocks agblocks agblklog", device)
    value = {name: int(number) for name, number in re.findall(r"(\w+) = (\d+)", fields)}
    group, offset = divmod(value["logstart"], 1 << value["agblklog"])
    first = group * value["agblocks"] + offset
    return set(range(first, first + value["logblocks"]))


def work(args, folder, device, tracer):
    make(args.fs, device)
    mounted = os.path.join(folder, "fs")
    os.mkdir(mounted)
    options = f"data={args.mode}" if args.fs == "ext4" else "defaults"
    run("mount", "-o", options, device, mounted)
    try:
        file = [f"--filename={mounted}/file", f"--size={args.file_mib}m", "--name=work", "--ioengine=psync"]
        if args.laid_out:
            run("fio", *file, "--rw=write", "--bs=1m", "--end_fsync=1")
        else:
            run("fallocate", "-l", f"{args.file_mib}MiB", f"{mounted}/file")
        run("sync")
        tracer.mark("begin")
        for number in range(args.rounds):
            amount = [f"--io_size={args.round_mib}m", f"--randseed={number + 1}", "--end_fsync=1"]
            begin = [f"--offset={number * args.round_mib}m"] if "seq" in args.job else []
            run("fio", *file, *JOBS[args.job], *amount, *begin, "--allrandrepeat=0")
            run("sync")
            tracer.mark(f"round-{number + 1}")
    finally:
        run("umount", mounted)


def parsed(lines, journal_blocks, writes_zeroes):
    """Lines of our text, and after how many requests each part ends."""
    yield "time_us,op,lba,len,flags,class\n", None
    first, count = None, 0
    for line in lines:
        if mark := MARKED.search(line):
            yield None, (mark[1], count)
        elif queued := QUEUED.search(line):
            time, flags, lba, sectors = queued[1], queued[2], int(queued[3]), int(queued[4])
            time_us = round(float(time) * 1e6)
            first = time_us if first is None else first
            kind = "F" if sectors == 0 else next((OPS[op] for op in OPS if op in flags), None)
            if kind is None:
                raise RuntimeError(f"what is this? {line}")
            is_journal = lba * SECTOR_BYTES // 4096 in journal_blocks and kind != "F"
            of = "journal" if is_journal else "fs-meta" if "M" in flags else "data"
            if kind == "Z" and not writes_zeroes:
                for at in range(lba, lba + sectors, ZEROES):
                    count += 1
                    yield f"{time_us - first},W,{at},{min(ZEROES, lba + sectors - at)},WS,{of}\n", None
                continue
            # The block layer makes a flush of its own of a preflush, and so does a replay.
            count += 2 if flags.startswith("F") and kind == "W" else 1
            address = 0 if kind == "F" else lba
            yield f"{time_us - first},{kind},{address},{sectors},{flags},{'-' if kind == 'F' else of}\n", None


def write(path, rows):
    """All or nothing. Returns the marks."""
    marks = {}
    with tempfile.TemporaryDirectory(dir=os.path.dirname(os.path.abspath(path))) as folder:
        whole = os.path.join(folder, "trace")
        with open(whole, "w") as file:
            for row, mark in rows:
                if mark:
                    marks[mark[0]] = mark[1]
                else:
                    file.write(row)
        if path.endswith(".zst"):
            run("zstd", "-q", "-19", "--rm", "-o", whole + ".zst", whole)
            whole += ".zst"
        os.replace(whole, path)
    return marks


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--fs", choices=["ext4", "xfs"], default="ext4")
    parser.add_argument("--mode", choices=["ordered", "journal"], default="ordered", help="ext4's data=")
    parser.add_argument("--job", choices=sorted(JOBS), default="randwrite4k")
    parser.add_argument("--device-mib", type=int, default=2816)
    parser.add_argument("--file-mib", type=int, default=1024)
    parser.add_argument("--laid-out", action="store_true", help="the file is written before (else only allocated)")
    parser.add_argument("--no-write-zeroes", action="store_true", help="as on a drive without Write Zeroes, where mkfs "
                        "writes its zeroes (FEMU's has none)")
    parser.add_argument("--round-mib", type=int, default=64, help="written in a round")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--folder", default="/var/tmp", help="where the device's file is made")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    if args.rounds < 1 or "seq" in args.job and args.rounds * args.round_mib > args.file_mib:
        parser.error("the rounds do not fit into the file: fewer --rounds, or a smaller --round-mib")
    if args.file_mib + 192 > args.device_mib:
        parser.error("the file does not fit onto the device: a larger --device-mib, or a smaller --file-mib")
    try:
        need()
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            with loop_device(folder, args.device_mib) as device:
                tracer = Tracer(folder, device)
                try:
                    work(args, folder, device, tracer)
                finally:
                    tracer.close()
                blocks = journal(args.fs, device)
        marks = write(args.out, parsed(tracer.lines, blocks, not args.no_write_zeroes))
    except Cannot as error:
        print(f"capture.py: skipped: {error}", file=sys.stderr)
        return CANNOT
    print(json.dumps({"out": args.out, "journal_mib": len(blocks) * 4096 >> 20, "requests": marks}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
