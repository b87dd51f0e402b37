#!/usr/bin/env python3
"""Compares the rules of file-level crash tests with states of real file systems.

Draws small works, has `leyden crashtest` record each on a real file system on a modelled drive, mounts what power cuts may
leave of the device, and asks `file_truth` whether the rules of docs/crashtest-files.md allow each folder that was seen.

    cargo build --package leyden --package leyden-crashtest --bins --examples
    campaigns/file_truth.py --leyden target/debug/leyden --truth target/debug/examples/file_truth \
        --fs ext4 --works 50 --first 1 --out truth

Takes root, like all crash tests that mount. Ends with 1 if a file system leaves what the rules do not allow, and with 77 if
this machine lacks what a recording takes.
"""

import argparse
import ctypes
import json
import os
import random
import shutil
import subprocess
import sys
from pathlib import Path

CELL = 1024
PAGE = 4
NAMES = ["a", "b", "c"]
Call = dict[str, dict[str, object]]


def draw(seed: int) -> list[Call | str]:
    """Calls that succeed in this order."""
    rng = random.Random(seed)
    lengths: dict[str, int] = {}
    calls: list[Call | str] = []
    for number in range(rng.randint(4, 9)):
        name = rng.choice(sorted(lengths)) if lengths and rng.random() < 0.75 else rng.choice(NAMES)
        byte = number + 1
        if name not in lengths:
            calls.append({"create": {"name": name}})
            lengths[name] = 0
            continue
        length, kind = lengths[name], rng.randrange(16)
        if kind < 6:
            begin = rng.choice([length, length, rng.randint(0, length), rng.randrange(3 * PAGE)])
            end = begin + rng.randint(1, PAGE + 1)
            calls.append({"write": {"name": name, "from": begin, "to": end, "byte": byte}})
            lengths[name] = max(length, end)
        elif kind == 6:
            lengths[name] = rng.randint(1, PAGE)
            calls.append({"rewrite": {"name": name, "to": lengths[name], "byte": byte}})
        elif kind == 7:
            lengths[name] = rng.choice([0, rng.randint(0, length), rng.randrange(2 * PAGE)])
            calls.append({"set": {"name": name, "to": lengths[name]}})
        elif kind < 10:
            to = rng.choice(NAMES)
            if to != name:
                lengths[to] = lengths.pop(name)
                calls.append({"rename": {"name": name, "to": to}})
        elif kind == 10:
            del lengths[name]
            calls.append({"remove": {"name": name}})
        elif kind < 13:
            calls.append({rng.choice(["sync", "data_sync"]): {"name": name}})
        elif kind == 13:
            calls.append("sync_folder")
        else:
            calls.append({"write_out": {"name": name, "page": rng.randrange(3)}})
    return calls


def work(calls: list[Call | str]) -> None:
    """Makes the calls in the current folder; a line to $LEYDEN_ACK for each sync."""
    libc = ctypes.CDLL(None, use_errno=True)
    ack = open(os.environ["LEYDEN_ACK"], "a")

    def opened(name: object, flags: int = os.O_RDWR) -> int:
        return os.open(str(name), flags, 0o644)

    for call in calls:
        (kind, of), = call.items() if isinstance(call, dict) else ((call, {}),)
        handle = None
        if kind == "create":
            handle = opened(of["name"], os.O_RDWR | os.O_CREAT | os.O_EXCL)
        elif kind == "write":
            begin, end, byte = (int(str(of[key])) for key in ("from", "to", "byte"))
            handle = opened(of["name"])
            os.pwrite(handle, bytes([byte]) * ((end - begin) * CELL), begin * CELL)
        elif kind == "rewrite":
            handle = opened(of["name"], os.O_RDWR | os.O_TRUNC)
            os.pwrite(handle, bytes([int(str(of["byte"]))]) * (int(str(of["to"])) * CELL), 0)
        elif kind == "set":
            handle = opened(of["name"])
            os.ftruncate(handle, int(str(of["to"])) * CELL)
        elif kind == "rename":
            os.rename(str(of["name"]), str(of["to"]))
        elif kind == "remove":
            os.remove(str(of["name"]))
        elif kind == "sync":
            handle = opened(of["name"])
            os.fsync(handle)
        elif kind == "data_sync":
            handle = opened(of["name"])
            os.fdatasync(handle)
        elif kind == "sync_folder":
            handle = os.open(".", os.O_RDONLY)
            os.fsync(handle)
        elif kind == "write_out":
            # Write, and wait for the end of it (linux/fs.h, SYNC_FILE_RANGE_*).
            handle = opened(of["name"])
            page = int(str(of["page"])) * PAGE * CELL
            libc.sync_file_range(handle, ctypes.c_int64(page), ctypes.c_int64(PAGE * CELL), 7)
        if handle is not None:
            os.close(handle)
        if kind in ("sync", "data_sync", "sync_folder"):
            ack.write("ack sync\n")
            ack.flush()


def check(seen: Path) -> None:
    """Notes what is in the mounted folder."""
    mount = Path(os.environ["LEYDEN_MOUNT"])
    files = {}
    for path in sorted(mount.iterdir()):
        if path.name == "lost+found":
            continue
        content = path.read_bytes()
        cells = [content[at : at + CELL] for at in range(0, len(content), CELL)]
        # 255 is a byte that no call writes: a cell that is not whole.
        files[path.name] = [cell[0] if cell == cell[:1] * CELL else 255 for cell in cells]
    syncs = len(Path(os.environ["LEYDEN_ACKS"]).read_text().splitlines())
    line = json.dumps({"syncs": syncs, "files": files}) + "\n"
    handle = os.open(seen, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
    os.write(handle, line.encode())
    os.close(handle)


def compared(options: argparse.Namespace, seed: int) -> tuple[int, int]:
    """The exit code of the comparison (0: all is allowed, 3: not judged), and how many folders were seen."""
    room = options.out / f"{options.fs}-{seed}"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir(parents=True)
    room = room.resolve()
    calls = draw(seed)
    (room / "calls.json").write_text(json.dumps(calls))
    me = f"{sys.executable} {Path(__file__).resolve()}"
    size = "320 MiB" if options.fs == "xfs" else "64 MiB"
    command = [
        options.leyden, "crashtest", "devices/tlc-datacenter", "--set", "device.buffer.region=none", "--size", size,
        "--fs", options.fs, "--work", f"cd $LEYDEN_MOUNT && {me} --do-work {room}/calls.json",
        "--check", f"{me} --do-check {room}/seen.jsonl", "--states", str(options.states), "--try-all", "--jobs", "1",
        "--out", f"{room}/crash",
    ]  # fmt: skip
    ran = subprocess.run(command, capture_output=True, text=True)
    # 6: the check passes everything, as it must here; 0: the file system itself saw that flushes were ignored.
    # What the machine lacks is said before the first work.
    if ran.returncode == 2 and "help:" in ran.stderr and seed == options.first:
        print(f"SKIPPED: this machine cannot record {options.fs}: {ran.stderr.strip()[-800:]}", file=sys.stderr)
        sys.exit(77)
    if ran.returncode not in (0, 6):
        sys.exit(f"seed {seed}: leyden ended with {ran.returncode}: {ran.stderr.strip()[-800:]}")
    seen = [json.loads(line) for line in (room / "seen.jsonl").read_text().splitlines()]
    # The control comes first: one state in which nothing is lost, and those of a drive that ignores flushes.
    control = json.loads((room / "crash/summary.json").read_text())["control"]
    seen = seen[1 + control["verdicts"].get("held", 0) :]
    (room / "work.json").write_text(json.dumps({"calls": calls, "seen": seen}))
    with open(room / "work.json") as told:
        judged = subprocess.run([options.truth, options.rules or options.fs], stdin=told, capture_output=True, text=True)
    print(f"{options.fs} {seed}: {judged.stdout.strip()}{judged.stderr.strip()[-400:]}", flush=True)
    shutil.rmtree(room / "crash", ignore_errors=True)
    different = {json.dumps(one, sort_keys=True) for one in seen}
    return judged.returncode, len(different)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", default="target/debug/leyden")
    parser.add_argument("--truth", default="target/debug/examples/file_truth")
    parser.add_argument("--fs", default="ext4", choices=["ext4", "xfs"])
    parser.add_argument("--rules", help="the rules that are compared, if not those of the file system")
    parser.add_argument("--works", type=int, default=10)
    parser.add_argument("--first", type=int, default=1)
    parser.add_argument("--states", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("truth"))
    parser.add_argument("--do-work", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--do-check", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do_work:
        work(json.loads(options.do_work.read_text()))
        return 0
    if options.do_check:
        check(options.do_check)
        return 0
    results = [compared(options, seed) for seed in range(options.first, options.first + options.works)]
    judged = [count for code, count in results if code != 3]
    wrong = sum(code not in (0, 3) for code, _ in results)
    print(
        f"{options.fs}: {len(judged)} of {options.works} works judged, {sum(judged)} folders; {wrong} works with folders "
        "that the rules do not allow"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
