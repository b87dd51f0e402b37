#!/usr/bin/env python3
"""Captures what PostgreSQL under pgbench asks of its data's disk, and what its write-ahead log announces of it.

    papers/campaigns/capture_postgresql.py --scale 100 --rate 120 --seconds 1500 --out pgbench.csv.zst

The log lies on another disk, so the trace has the data's writes alone. A checkpoint begins every 30 s, so about 30 x rate pages are
dirty, of 164,000 with a scale of 100. Hints go to NAME.hints.csv.zst: a page that has a place on the disk was named in a record of
the log that a receiver had (flushed, asked every 20 ms), the first since the page was last written. Both files have one clock.

Needs root, loop devices, tracefs, ext4's tools, zstd and PostgreSQL with its user. Exits with 77 if one is missing.
"""

import argparse
import array
import fcntl
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import tempfile
import threading
import time

import capture
from capture import CANNOT, SECTOR_BYTES, Cannot, run

PAGE_BYTES = 8192
# Pages of a file; a larger relation goes on in FILE.1, FILE.2 (RELSEG_SIZE).
PAGES_OF_A_FILE = 131_072
FIEMAP = 0xC020660B  # FS_IOC_FIEMAP
# `rmgr: Heap ... lsn: 0/0169B6C8, prev ..., desc: ..., blkref #0: rel 1663/5/1259 fork vm blk 0 FPW`
RECORD = re.compile(r"lsn: ([0-9A-F]+)/([0-9A-F]+),")
NAMED = re.compile(r"blkref #\d+: rel (\d+)/(\d+)/(\d+)(?: fork (\w+))? blk (\d+)")
TABLESPACE_GLOBAL = "1664"


def binaries():
    """The folder with PostgreSQL's programs."""
    if shutil.which("pg_config") is None and not os.path.isdir("/usr/lib/postgresql"):
        raise Cannot("there is no PostgreSQL")
    if os.path.isdir("/usr/lib/postgresql"):
        newest = max(os.listdir("/usr/lib/postgresql"), key=lambda name: [int(part) for part in name.split(".")])
        return os.path.join("/usr/lib/postgresql", newest, "bin")
    return run("pg_config", "--bindir").strip()


def need():
    if os.geteuid() != 0:
        raise Cannot("root is needed, for a loop device and tracefs")
    for tool in ("losetup", "mount", "runuser", "zstd", "mkfs.ext4", "debugfs"):
        if shutil.which(tool) is None:
            raise Cannot(f"there is no {tool}")
    missing = [name for name in ("initdb", "pg_ctl", "pgbench", "psql", "pg_waldump") if not os.path.exists(os.path.join(binaries(), name))]
    if missing:
        raise Cannot(f"PostgreSQL has no {', '.join(missing)}")


class Server:
    """A PostgreSQL whose data lie in `data` and whose log lies in `log`."""

    def __init__(self, folder, data, log, buffers_mib):
        self.folder, self.data, self.log, self.buffers_mib = folder, data, log, buffers_mib

    def words(self, program, *words):
        return ["runuser", "-u", "postgres", "--", os.path.join(binaries(), program), *words]

    def client(self, program, *words):
        return self.words(program, "-h", self.folder, *words, "postgres")

    def start(self):
        run(*self.words("initdb", "-D", self.data, "--waldir", self.log, "--data-checksums", "--auth=trust"))
        settings = {
            "listen_addresses": "''", "unix_socket_directories": f"'{self.folder}'", "checkpoint_timeout": "'30s'",
            "max_wal_size": "'64GB'", "wal_keep_size": "'64GB'", "shared_buffers": f"'{self.buffers_mib}MB'",
        }
        with open(os.path.join(self.data, "postgresql.conf"), "a") as file:
            file.writelines(f"{key} = {value}\n" for key, value in settings.items())
        run(*self.words("pg_ctl", "-D", self.data, "-l", os.path.join(self.folder, "server.log"), "-w", "start"))

    def stop(self):
        run(*self.words("pg_ctl", "-D", self.data, "-w", "-m", "fast", "stop"))

    def ask(self, query):
        return run(*self.client("psql", "-XAtc", query)).strip()


class Position:
    """Up to which position the log is flushed, and when: what a receiver of the log has got."""

    def __init__(self, server):
        self.seen, self.ended = [], threading.Event()
        self.session = subprocess.Popen(server.client("psql", "-XAtq"), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.thread = threading.Thread(target=self.poll, daemon=True)
        self.thread.start()

    def poll(self):
        while not self.ended.wait(0.02):
            self.session.stdin.write("select pg_current_wal_flush_lsn() - '0/0'::pg_lsn;\n")
            self.session.stdin.flush()
            position = int(self.session.stdout.readline())
            if not self.seen or position > self.seen[-1][0]:
                self.seen.append((position, round(time.monotonic() * 1e6)))

    def close(self):
        self.ended.set()
        self.thread.join()
        self.session.stdin.close()
        if self.session.wait() != 0:
            raise RuntimeError("psql failed")


def extents_of(path):
    """(first byte in the file, first byte on the disk, bytes) of each extent of a file."""
    found, at = [], 0
    with open(path, "rb") as file:
        while True:
            buffer = array.array("B", struct.pack("=QQIIII", at, (1 << 64) - 1 - at, 0, 0, 256, 0) + bytes(256 * 56))
            fcntl.ioctl(file, FIEMAP, buffer)
            count = struct.unpack_from("=I", buffer, 20)[0]
            for number in range(count):
                logical, physical, size, *_, flags = struct.unpack_from("=QQQQQI", buffer, 32 + number * 56)
                found.append((logical, physical, size))
                at = logical + size
                if flags & 1:  # FIEMAP_EXTENT_LAST
                    return found
            if count == 0:
                return found


class Places:
    """Where a page of a relation lies on the disk."""

    def __init__(self, data, extents=extents_of):
        self.data, self.extents, self.files = data, extents, {}

    def sector(self, space, database, relation, fork, page):
        number, page = divmod(page, PAGES_OF_A_FILE)
        folder = "global" if space == TABLESPACE_GLOBAL else f"base/{database}"
        name = relation + (f"_{fork}" if fork else "") + (f".{number}" if number else "")
        path = os.path.join(self.data, folder, name)
        if path not in self.files:
            try:
                self.files[path] = self.extents(path)
            except FileNotFoundError:
                self.files[path] = []
        at = page * PAGE_BYTES
        for logical, physical, size in self.files[path]:
            if logical <= at and at + PAGE_BYTES <= logical + size:
                return (physical + at - logical) // SECTOR_BYTES
        return None


def announced(records, seen, places):
    """(time, sector) of each page that a line of pg_waldump names, at the time at which a receiver had got it."""
    seen = iter(seen)
    position, at = next(seen, (0, None))
    for line in records:
        if not (record := RECORD.search(line)):
            continue
        begins = int(record[1], 16) << 32 | int(record[2], 16)
        # A record is there when what was flushed ends behind its beginning: records are flushed whole.
        while at is not None and position <= begins:
            position, at = next(seen, (0, None))
        if at is None:
            return
        for named in NAMED.finditer(line):
            space, database, relation, fork, page = named.groups()
            sector = places.sector(space, database, relation, fork, int(page))
            if sector is not None:
                yield at, sector


def hints(pages, writes):
    """Of `pages` (time, sector), each that is the first since `writes` (time, first sector, sectors) last wrote the page."""
    known, writes = set(), list(writes)
    done = 0
    for at, sector in pages:
        while done < len(writes) and writes[done][0] <= at:
            _, first, sectors = writes[done]
            known.difference_update(range(first, first + sectors))
            done += 1
        if sector not in known:
            known.add(sector)
            yield at, sector


def writes_of(lines):
    """(time, first sector, sectors) of each write."""
    for line in lines:
        queued = capture.QUEUED.search(line)
        if queued and "W" in queued[2] and int(queued[4]):
            yield round(float(queued[1]) * 1e6), int(queued[3]), int(queued[4])


def first_time(lines):
    """The time of the first request, from which the trace counts."""
    return next(round(float(queued[1]) * 1e6) for line in lines if (queued := capture.QUEUED.search(line)))


def work(args, folder, device):
    """Runs the work; returns the trace's lines, what was flushed when, and the announced pages."""
    mounted = os.path.join(folder, "disk-of-data")
    os.mkdir(mounted)
    run("mount", device, mounted)
    try:
        data, log = os.path.join(mounted, "data"), os.path.join(folder, "log")
        for path in (data, log):
            os.mkdir(path)
            shutil.chown(path, "postgres")
        server = Server(folder, data, log, args.shared_buffers_mib)
        server.start()
        try:
            run(*server.client("pgbench", "-q", "-i", "-s", str(args.scale)))
            server.ask("vacuum")
            server.ask("checkpoint")
            run("sync")
            begins = server.ask("select pg_current_wal_insert_lsn()")
            position = Position(server)
            tracer = capture.Tracer(folder, device)
            try:
                words = ["-n", "-c", "8", "-j", "2", "-R", str(args.rate), "-T", str(args.seconds), "--random-seed=1"]
                said = run(*server.client("pgbench", *words))
            finally:
                tracer.close()
                position.close()
            ends = server.ask("select pg_current_wal_flush_lsn()")
        finally:
            server.stop()
        records = run(*server.words("pg_waldump", "-p", log, "-s", begins, "-e", ends)).splitlines()
        pages = list(announced(records, position.seen, Places(data)))
    finally:
        run("umount", mounted)
    return tracer.lines, pages, int(re.search(r"transactions actually processed: (\d+)", said)[1])


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--scale", type=int, default=100, help="pgbench's: 100,000 accounts or about 15 MB each")
    parser.add_argument("--rate", type=int, default=120, help="transactions a second")
    parser.add_argument("--seconds", type=int, default=1500)
    parser.add_argument("--shared-buffers-mib", type=int, default=256)
    parser.add_argument("--device-mib", type=int, default=4096)
    parser.add_argument("--folder", default="/var/tmp", help="where the device's file and the log lie")
    parser.add_argument("--out", required=True, help="the trace, NAME.csv.zst; its hints go to NAME.hints.csv.zst")
    args = parser.parse_args()
    if not args.out.endswith(".csv.zst"):
        parser.error("--out must end in .csv.zst")
    try:
        need()
        with tempfile.TemporaryDirectory(dir=args.folder) as folder:
            os.chmod(folder, 0o755)
            # The server's socket lies there.
            shutil.chown(folder, "postgres")
            with capture.loop_device(folder, args.device_mib) as device:
                capture.make("ext4", device)
                lines, pages, transactions = work(args, folder, device)
                journal = capture.journal("ext4", device)
    except Cannot as error:
        print(f"capture_postgresql.py: skipped: {error}", file=sys.stderr)
        return CANNOT
    start = first_time(lines)
    rows = [f"{at - start},H,{sector},{PAGE_BYTES // SECTOR_BYTES},-,data\n" for at, sector in hints(pages, writes_of(lines)) if at >= start]
    hinted = args.out.removesuffix(".csv.zst") + ".hints.csv.zst"
    capture.write(args.out, capture.parsed(lines, journal, False))
    capture.write(hinted, ((row, None) for row in ["time_us,op,lba,len,flags,class\n", *rows]))
    print(json.dumps({"out": args.out, "hints": hinted, "transactions": transactions, "requests": len(lines), "hinted_pages": len(rows)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
