#!/usr/bin/env python3
"""Compares the rules of file-level crash tests with states of real file systems.

Each work is recorded at the level of files. `file_truth` makes the recorded calls once more on a real file system on a
modelled drive, and says whether the rules of docs/crashtest-files.md allow each folder that power cuts left there. Works are
small ones that are drawn, and those of real software (`--real`).

    cargo build --package leyden --package leyden-crashtest --bins --examples
    campaigns/file_truth.py --fs ext4 --works 50 --out truth
    campaigns/file_truth.py --fs btrfs --real --out truth

Takes root, like all crash tests that mount. Ends with 1 if a file system leaves what the rules do not allow, and with 77 if
this machine lacks what a recording takes. Software that is not installed is named and left out.
"""

import argparse
import json
import os
import random
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

CELL = 1024
PAGE = 4
NAMES = ["a", "b", "c"]
Call = dict[str, dict[str, object]]
SCRIPTS = Path(__file__).resolve().parent.parent / "crates/crashtest/scripts"


@dataclass
class Work:
    """What is recorded, in a folder of its own."""

    name: str
    work: str
    setup: str = "true"
    build: str = "true"
    calls: list[Call | str] | None = None


def built(name: str, source: str, build: str, work: str) -> Work:
    program = f"./{source.split('/')[0]}"
    return Work(name, f"{program} {work}", f"{program} setup", build=f"{build.replace('SOURCE', f'{SCRIPTS}/{source}')}")


def python(name: str, source: str, setup: str, work: str) -> Work:
    return Work(name, f"{SCRIPTS}/{source} {work}", f"{SCRIPTS}/{source} {setup}")


# Each file is whole when it has its name, and linked as a mailbox has it (maildir).
MAILDIR = """cd $LEYDEN_MOUNT && for i in 1 2 3 4 5 6; do
printf '%*s' $((i * 1500)) x >tmp/$i && sync tmp/$i && ln tmp/$i new/$i && sync new && rm tmp/$i; done"""
EDITED = """cd $LEYDEN_MOUNT && for i in 1 2 3 4 5 6; do
sed -i "s/^line $i\\$/line $i, edited/" text && sync text; cp text copy-$i; mv -f copy-$i kept; done; sync kept"""
UNPACKED = "cd $LEYDEN_MOUNT && tar xf $LEYDEN_TMP/tar && sync -f . && rm -r a/scripts/git && mv a b && sync ."
REAL = [
    python("SQLite, WAL", "sqlite/sqlite.py", "setup WAL FULL", "work WAL FULL 20"),
    python("SQLite, DELETE", "sqlite/sqlite.py", "setup DELETE FULL", "work DELETE FULL 10"),
    Work("git", f"{SCRIPTS}/git/git.sh work 3", f"{SCRIPTS}/git/git.sh setup core.fsync=all"),
    python("LMDB", "lmdb/lightning.py", "setup", "work sync 15"),
    python("Redis", "redis/redis.py", "setup", "work 20"),
    built("GDBM", "gdbm/gdbm.c", "cc -O1 -o gdbm SOURCE -lgdbm", "work 10"),
    built("LevelDB", "leveldb/leveldb.cc", "c++ -std=c++17 -O1 -o leveldb SOURCE -lleveldb", "work 20"),
    Work("bbolt", "./store work 10", "./store setup", f"cp {SCRIPTS}/go/main.go {SCRIPTS}/bbolt/* . && go mod tidy && go build -o store ."),
    Work("maildir", MAILDIR, "mkdir $LEYDEN_MOUNT/tmp $LEYDEN_MOUNT/new"),
    Work("sed and mv", EDITED, "seq -f 'line %g' 2000 >$LEYDEN_MOUNT/text"),
    Work("tar", f"tar cf $LEYDEN_TMP/tar --transform s,^,a/, -C {SCRIPTS.parent} scripts && {UNPACKED}"),
]


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
        length, kind = lengths[name], rng.randrange(18)
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
        elif kind < 16:
            calls.append("sync_folder")
        else:
            # No value takes the attribute away, if there is one.
            value = rng.choice(["", f"{number}", f"{number}" * 1000])
            calls.append({"xattr": {"name": name, "value": value}})
    return calls


def make(calls: list[Call | str]) -> None:
    """Makes the calls in the current folder."""

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
        elif kind == "xattr":
            handle = opened(of["name"])
            if of["value"]:
                os.setxattr(handle, "user.a", str(of["value"]).encode())
            elif os.listxattr(handle):
                os.removexattr(handle, "user.a")
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
        if handle is not None:
            os.close(handle)


def run(command: list[str], folder: Path, may_end: tuple[int, ...] = (0,)) -> subprocess.CompletedProcess[str]:
    ran = subprocess.run(command, capture_output=True, text=True, cwd=folder)
    if ran.returncode not in may_end:
        raise RuntimeError(f"{command[0]} {command[1]} ended with {ran.returncode}: {ran.stderr.strip()[-800:]}")
    return ran


def compared(options: argparse.Namespace, work: Work) -> tuple[int, int]:
    """The exit code of the comparison (0: all is allowed), and how many folders were seen."""
    room = options.out.resolve() / f"{options.fs}-{work.name.replace(' ', '-')}"
    shutil.rmtree(room, ignore_errors=True)
    room.mkdir(parents=True)
    run(["sh", "-c", work.build], room)
    if work.calls is not None:
        (room / "calls.json").write_text(json.dumps(work.calls))
    leyden, truth = str(options.leyden.resolve()), str(options.truth.resolve())
    run([leyden, "crashtest", "record", "--files", "--setup", work.setup, "--work", work.work, "--check", "true", "--out",
         "files"], room)  # fmt: skip
    recording, size = "files/recording.files", {"xfs": "320 MiB", "btrfs": "128 MiB"}.get(options.fs, "64 MiB")
    command = [
        leyden, "crashtest", "devices/tlc-datacenter", "--set", "device.buffer.region=none", "--size", size,
        "--fs", options.fs, "--setup", f"{truth} perform {recording} setup", "--work", f"{truth} perform {recording} work",
        "--check", f"{truth} look seen.jsonl", "--states", str(options.states), "--try-all", "--jobs", "1", "--out", "crash",
    ]  # fmt: skip
    # 6: the check passes everything, as it must here; 0: the file system itself saw that flushes were ignored.
    run(command, room, (0, 6))
    # The control comes first: one state in which nothing is lost, and those of a drive that ignores flushes.
    control = json.loads((room / "crash/summary.json").read_text())["control"]
    skipped = 1 + control["verdicts"].get("held", 0)
    judged = run([truth, "judge", options.rules or options.fs, recording, "seen.jsonl", str(skipped)], room, (0, 1))
    print(f"{options.fs}, {work.name}: {judged.stdout.strip()[:2000]}", flush=True)
    if judged.returncode == 0:
        shutil.rmtree(room / "crash")
    return judged.returncode, int(judged.stdout.split(": ")[1].split()[0])


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", type=Path, default=Path("target/debug/leyden"))
    parser.add_argument("--truth", type=Path, default=Path("target/debug/examples/file_truth"))
    parser.add_argument("--fs", default="ext4", choices=["ext4", "xfs", "btrfs"])
    parser.add_argument("--rules", help="the rules that are compared, if not those of the file system")
    parser.add_argument("--works", type=int, default=10, help="how many works are drawn")
    parser.add_argument("--first", type=int, default=1, help="the seed of the first")
    parser.add_argument("--real", action="store_true", help="works of real software instead")
    parser.add_argument("--states", type=int, default=300)
    parser.add_argument("--out", type=Path, default=Path("truth"))
    parser.add_argument("--do-work", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.do_work:
        make(json.loads(options.do_work.read_text()))
        return 0
    lacking = subprocess.run([options.leyden, "crashtest", "doctor", "--fs", options.fs], capture_output=True, text=True)
    if lacking.returncode != 0:
        print(f"SKIPPED: this machine cannot record {options.fs}: {lacking.stderr.strip()}", file=sys.stderr)
        return 77
    me = f"cd $LEYDEN_MOUNT && {sys.executable} {Path(__file__).resolve()} --do-work $OLDPWD/calls.json"
    drawn = range(options.first, options.first + options.works)
    works = REAL if options.real else [Work(str(seed), me, calls=draw(seed)) for seed in drawn]
    results = []
    for work in works:
        try:
            results.append(compared(options, work))
        except RuntimeError as error:
            if not options.real:
                raise
            print(f"{work.name} is left out: {error}", file=sys.stderr, flush=True)
    wrong = sum(code != 0 for code, _ in results)
    print(
        f"{options.fs}: {len(results)} of {len(works)} works judged, {sum(count for _, count in results)} folders; "
        f"{wrong} works with folders that the rules do not allow"
    )
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
