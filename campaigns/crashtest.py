#!/usr/bin/env python3
"""Databases on file systems on modelled drives whose power is cut: tables of what survives.

    campaigns/crashtest.py sqlite --leyden target/release/leyden --fs ext4 --states 10000
    campaigns/crashtest.py postgres --leyden target/release/leyden --states 1000
    campaigns/crashtest.py lmdb --leyden target/release/leyden --states 10000

Prints a line of Markdown for each configuration. Takes root, /dev/fuse and loop devices; says what is lacking and
ends with 77 if they are not there.
"""

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crates", "crashtest", "scripts")
SQLITE = [("WAL", "FULL"), ("WAL", "NORMAL"), ("WAL", "OFF"), ("DELETE", "EXTRA"), ("DELETE", "FULL"),
          ("DELETE", "OFF"), ("TRUNCATE", "FULL"), ("PERSIST", "FULL")]
LMDB = ["sync", "nometasync", "nosync"]
# Files begin, and go on, at multiples of 8 KiB: so that a page of PostgreSQL's lies in one unit of 8 KiB.
ALIGNED = ["--mkfs", "-O", "--mkfs", "bigalloc", "--mkfs", "-C", "--mkfs", "8192"]
# name, settings, bytes of an atom, arguments for mkfs
POSTGRES = [
    ("as it comes", [], 4096, []),
    ("full_page_writes=off, 4 KiB units", ["full_page_writes=off"], 4096, []),
    ("full_page_writes=off, 8 KiB units", ["full_page_writes=off"], 8192, []),
    ("full_page_writes=off, 8 KiB units, aligned", ["full_page_writes=off"], 8192, ALIGNED),
    ("fsync=off", ["fsync=off"], 4096, []),
]


def crashtest(args, folder, work, size, drive=()):
    """Records and runs; the summary."""
    command = [
        args.leyden, "--quiet", "crashtest", "devices/tlc-datacenter", "--size", size, "--fs", args.fs, *work, *drive,
        "--set", "device.buffer.region=none", "--latency", "off", "--states", str(args.states),
        "--budget", f"{args.budget} s", "--seed", str(args.seed), "--out", folder, "--json",
    ]
    if args.jobs:
        command += ["--jobs", str(args.jobs)]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode not in (0, 1) or not done.stdout:
        sys.exit(f"{' '.join(command)}\n{done.stderr}")
    return json.loads(done.stdout)


def line(name, summary):
    model = summary["models"][0]
    counts = model["verdicts"]
    lost, broken = counts.get("lost", 0), sum(
        count for verdict, count in counts.items() if verdict not in ("held", "skipped", "lost"))
    result = ", ".join(part for part in [
        f"{lost} lose acknowledged data" if lost else "",
        f"{broken} are broken" if broken else "",
    ] if part) or "all held"
    first = min((finding["first"] for finding in model["findings"]), default="-")
    control = summary["control"]
    noticed = sum(count for verdict, count in control["verdicts"].items() if verdict not in ("held", "skipped"))
    rate = model["states"] / max(model["seconds"], 1e-9)
    print(f"| {name} | {summary['flushes']} | {model['states']} ({model['repeats']}, {model['inferred']}) | {result} | {first} | "
          f"{noticed} of {control['states']} | {rate:.0f} |", flush=True)


def sqlite(args, folder):
    for journal, synchronous in SQLITE:
        script = os.path.join(SCRIPTS, "sqlite", "sqlite.py")
        transactions = 400 if synchronous == "OFF" else 200
        work = [
            "--setup", f"{script} setup {journal} {synchronous}",
            "--work", f"{script} work {journal} {synchronous} {transactions}",
            "--check", f"exec {script} check {journal}", "--check-server", "--sector", "512", "--atom", "512",
        ]
        where = os.path.join(folder, f"{journal}-{synchronous}-{args.fs}")
        # XFS wants more room.
        size = "64 MiB" if args.fs != "xfs" else "320 MiB"
        line(f"{journal}, {synchronous}", crashtest(args, where, work, size))


def postgres(args, folder):
    script = os.path.join(SCRIPTS, "postgresql", "postgres.py")
    for name, settings, unit, mkfs in POSTGRES:
        work = [
            "--setup", " ".join([script, "setup", *settings]), "--work", f"{script} work 600",
            "--check", f"exec {script} check", "--check-server",
        ]
        drive = ["--set", f"device.ftl.mapping_unit={unit} B", *mkfs]
        where = os.path.join(folder, name.replace(" ", "-").replace("=", "-").replace(",", ""))
        line(name, crashtest(args, where, work, "256 MiB", drive))


def lmdb(args, folder):
    script = os.path.join(SCRIPTS, "lmdb", "lightning.py")
    for mode in LMDB:
        work = [
            "--setup", f"{script} setup", "--work", f"{script} work {mode} 200",
            "--check", f"exec {script} check", "--check-server", "--sector", "512", "--atom", "512",
        ]
        line(mode, crashtest(args, os.path.join(folder, mode), work, "64 MiB" if args.fs != "xfs" else "320 MiB"))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["sqlite", "postgres", "lmdb"])
    parser.add_argument("--leyden", required=True)
    parser.add_argument("--fs", default="ext4")
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--budget", type=int, default=3600, help="seconds for each configuration")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--jobs", type=int)
    parser.add_argument("--only", help="configurations whose name has this in it")
    parser.add_argument("--folder", help="keep recordings and findings here")
    args = parser.parse_args()
    args.leyden = os.path.abspath(args.leyden)
    lacking = subprocess.run([args.leyden, "crashtest", "doctor", "--fs", args.fs], capture_output=True, text=True)
    if lacking.returncode != 0:
        print(f"LEFT OUT: {lacking.stderr.strip()}")
        sys.exit(77)
    if args.only:
        SQLITE[:] = [mode for mode in SQLITE if args.only in ", ".join(mode)]
        POSTGRES[:] = [setting for setting in POSTGRES if args.only in setting[0]]
        LMDB[:] = [mode for mode in LMDB if args.only in mode]
    folder = args.folder or tempfile.mkdtemp(prefix="leyden-crashtest-")
    # PostgreSQL runs as another user, who must get there.
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    print("| configuration | flushes | states (repeats, known) | result | first at | lies noticed | states/s |")
    print("|---|---|---|---|---|---|---|")
    try:
        {"sqlite": sqlite, "postgres": postgres, "lmdb": lmdb}[args.what](args, folder)
    finally:
        if not args.folder:
            shutil.rmtree(folder)


if __name__ == "__main__":
    main()
