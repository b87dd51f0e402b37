#!/usr/bin/env python3
"""RocksDB's own crash test on the plugin: db_stress under db_crashtest.py, killed and cut.

    campaigns/dbstress.py fetch --folder stress
    campaigns/dbstress.py run --folder stress --build build --libraries target/release --rounds 150
    campaigns/dbstress.py reclaims --folder stress --build build --libraries target/release --rounds 150
    campaigns/dbstress.py wrongs --folder stress --build build --libraries target/release --times 5

`fetch` gets the source of Debian's RocksDB (`apt-get source`: deb-src must be among apt's sources) and builds
db_stress against the packaged library: one to three minutes. `run` has lanes, each a database on a drive of its own:
SIGKILL and power cut, at sync=0 and sync=1, `--rounds` each. `reclaims` has lanes on drives so small that space must be
reclaimed; each round is killed at a command of a reclaim. `wrongs` plants errors that must be found.

Prints a line of Markdown for each lane. Exits with 1 if anything promised was lost, or a lane did not reach what it is for
(`wrongs`: if an error was not found), with 77 if this machine cannot do it.
"""

import argparse
import fcntl
import glob
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from commands import lacks, run

ROUND = os.path.join(os.path.dirname(os.path.abspath(__file__)), "dbstress_round.py")
STDBUF = "/usr/libexec/coreutils/libstdbuf.so"
# What RocksDB's Makefile defines for Linux, as far as db_stress sees it.
FLAGS = ["-std=c++17", "-O1", "-DGFLAGS=gflags", "-DROCKSDB_PLATFORM_POSIX", "-DROCKSDB_LIB_IO_POSIX", "-DOS_LINUX",
         "-DROCKSDB_FALLOCATE_PRESENT", "-DZSTD"]
# Of what db_crashtest.py draws: without these a write that was acknowledged at sync=0 is promised. A run with them
# lets a database lose its last writes, and looks only for gaps. Nor are errors injected between RocksDB and the plugin
# when the database is opened: after one db_stress drops unsynced data itself, and divides by zero when there is none.
PROMISE = {"disable_wal": 0, "sync_fault_injection": 0, "manual_wal_flush_one_in": 0,
           "open_metadata_write_fault_one_in": 0, "open_write_fault_one_in": 0, "open_read_fault_one_in": 0}
# Small, so that tables are flushed and logs deleted many times a second.
SMALL = {"max_key": 20_000, "write_buffer_size": 256 << 10, "target_file_size_base": 1 << 20,
         "max_bytes_for_level_base": 4 << 20}
# 32 zones of 256 KiB: tables and logs of RocksDB fill most of them. More keys would fill the drive; then db_stress sees puts
# fail, which it has noted as done, and is of no use any more (tests/crash_test.cc runs out of space).
LITTLE = {"device.nand.channels": 4, "device.nand.dies_per_channel": 2, "device.nand.pages_per_block": 64,
          "device.nand.blocks_per_plane": 8, "device.zoned.zone_size": "256 KiB", "device.buffer.size": "4 MiB",
          "device.buffer.protected_size": "2 MiB"}
CROWDED = {"max_key": 22_000, "write_buffer_size": 128 << 10, "target_file_size_base": 128 << 10,
           "max_bytes_for_level_base": 512 << 10, "backup_one_in": 0, "checkpoint_one_in": 0}
# Each start leaves a LOG on the drive, so a database fills its drive in time: another one begins after so many rounds.
ROUNDS_OF_CROWDED = 20
# What a lane must have met at least once, and the words of db_stress or the plugin that say so.
REACHED = {"plain": "killed in a reclaim of plain files", "logs": "killed in a reclaim of logs"}
MUST_REACH = {"kill": [], "cut": [], "reclaim": ["plain", "logs"]}
# A lane gives up when so few of its runs have come to their end.
RUNS_FOR_ONE = 5
WRONGS = [
    ("published order", ",order:published", 1),
    ("published order", ",order:published", 0),
    ("no PLP flag", ",plp:off", 0),
    ("volatile metadata", ",metadata:volatile", 1),
    ("volatile metadata", ",metadata:volatile", 0),
]


def fetch(args):
    folder = os.path.abspath(args.folder)
    os.makedirs(folder, exist_ok=True)
    if not glob.glob(f"{folder}/rocksdb-*/tools/db_crashtest.py"):
        if not shutil.which("apt-get"):
            lacks("apt-get is missing")
        # dpkg-source, which would unpack it, is not everywhere.
        run("apt-get", "source", "--download-only", "rocksdb", cwd=folder)
        run("tar", "xf", *glob.glob(f"{folder}/rocksdb_*.orig.tar.gz"), cwd=folder)
    source, = glob.glob(f"{folder}/rocksdb-*/")
    files = sorted(glob.glob(f"{source}/db_stress_tool/*.cc"))

    def compiled(file):
        made = os.path.join(folder, os.path.basename(file)[:-3] + ".o")
        if not os.path.exists(made):
            run("c++", *FLAGS, f"-I{source}", f"-I{source}/include", "-c", file, "-o", made + ".part")
            os.rename(made + ".part", made)
        return made

    with ThreadPoolExecutor(args.jobs) as pool:
        made = list(pool.map(compiled, files))
    run("c++", "-o", f"{folder}/db_stress", *made, "-lrocksdb", "-lgflags", "-lzstd", "-lpthread", "-ldl")
    print(f"{folder}/db_stress: of {len(files)} files")


class Lane:
    """One database on one drive, and how its runs end."""

    def __init__(self, args, name, end, sync, options="", seed=0, drive=None, sizes=None):
        self.args, self.name, self.end, self.sync, self.sizes = args, name, end, sync, sizes or SMALL
        self.folder = os.path.join(os.path.abspath(args.folder), "lanes", name)
        shutil.rmtree(self.folder, ignore_errors=True)
        os.makedirs(os.path.join(self.folder, "outputs"))
        self.image = os.path.join(self.folder, "drive.leyden")
        self.record = os.path.join(self.folder, "record")
        self.outputs = os.path.join(self.folder, "outputs")
        libraries, build = os.path.abspath(args.libraries), os.path.abspath(args.build)
        self.uri = f"leyden:{self.image}?control:on,at_cut:die{options}"
        self.environment = {
            **os.environ, "TEST_TMPDIR": self.folder, "DBSTRESS_LANE": os.path.join(self.folder, "lane"),
            "LD_LIBRARY_PATH": f"{build}:{libraries}",
            # RocksDB's scripts take this for a build without fault injection, which the packaged one is.
            "DEBUG_LEVEL": "0",
        }
        self.leyden, self.leyden_fs = f"{libraries}/leyden", f"{build}/leyden-fs"
        self.source, = glob.glob(os.path.join(os.path.abspath(args.folder), "rocksdb-*/"))
        self.db_stress = os.path.join(os.path.abspath(args.folder), "db_stress")
        self.plan = {
            "db_stress": self.db_stress, "end": end, "seed": seed, "record": self.record, "outputs": self.outputs,
            "preload": f"{STDBUF}:{build}/libleyden_rocksdb.so", "interval": args.interval,
            "image": self.image, "leyden": self.leyden, "reached": REACHED,
        }
        # For single records of the log; without a protected region there are none.
        areas = [] if args.region == "none" else ["--set", "device.zoned.zrwa.count=4"]
        for key, value in {**(drive or {}), "device.buffer.region": args.region}.items():
            areas += ["--set", f"{key}={value}"]
        run(self.leyden, "image", "create", "--drive", "devices/zns", *areas, self.image)
        run(self.leyden_fs, "mkfs", self.image, env=self.environment)

    def told(self):
        if not os.path.exists(self.record):
            return []
        with open(self.record) as file:
            return [json.loads(line) for line in file if line.endswith("\n")]

    def ended(self):
        """Runs that have come to the end that the lane is about."""
        told = self.told()
        if self.end == "cut":
            return sum(1 for line in told if line.get("report"))
        if self.end == "reclaim":
            return sum(1 for line in told if line.get("reached"))
        # The last one that has begun is at work.
        return max(0, sum(1 for line in told if "begun" in line) - 1)

    def begun(self):
        return sum(1 for line in self.told() if "begun" in line)

    def reached(self):
        """How often each of what the lane must reach was met."""
        told = [line.get("reached") for line in self.told()]
        return {what: told.count(what) for what in MUST_REACH[self.end]}

    def rounds(self, count):
        """Lets db_crashtest.py do `count` rounds. What it has found, or None."""
        with open(self.environment["DBSTRESS_LANE"], "w") as file:
            json.dump(self.plan, file)
        options = {**PROMISE, **self.sizes, "sync": self.sync, "interval": self.args.interval, "duration": 10 ** 6,
                   "nooverwritepercent": 0, "threads": 4, "fs_uri": self.uri}
        command = [sys.executable, f"{self.source}tools/db_crashtest.py", "blackbox", "--simple",
                   f"--stress_cmd={ROUND}", *(f"--{name}={value}" for name, value in options.items())]
        with open(os.path.join(self.folder, "crashtest"), "w") as out:
            crashtest = subprocess.Popen(command, env=self.environment, stdout=out, stderr=out, start_new_session=True)
            while crashtest.poll() is None and self.ended() < count and self.begun() < RUNS_FOR_ONE * (count + 5):
                time.sleep(0.2)
            by_itself = crashtest.poll() is not None
            try:
                os.killpg(crashtest.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass
            crashtest.wait()
        # db_stress is no child of ours: until it is gone, it has the image.
        with open(self.image, "rb") as image:
            fcntl.flock(image, fcntl.LOCK_EX)
        missed = [what for what, times in self.reached().items() if times == 0]
        return (self.found() or (f"db_crashtest.py ended: {self.tail()}" if by_itself else None)
                or (f"NOT REACHED: {', '.join(missed)}" if missed else None))

    def output(self, number):
        with open(os.path.join(self.outputs, f"{number:04}"), "rb") as file:
            return file.read()

    def tail(self):
        """The last lines that say why."""
        newest = sorted(os.listdir(self.outputs))[-1:]
        text = self.output(int(newest[0])).decode(errors="replace") if newest else ""
        telling = [line for line in text.splitlines() if "failed" in line or "error" in line or "Corruption" in line]
        return (telling or text.splitlines() or ["it said nothing"])[0][:300]

    def heard(self):
        """What each run said before the power went."""
        told = self.told()
        limits = {line["cut"]: line["output"] for line in told if line.get("report")}
        for number in (line["begun"] for line in told if "begun" in line):
            path = os.path.join(self.outputs, f"{number:04}")
            if os.path.exists(path):
                yield number, self.output(number)[:limits.get(number)].decode(errors="replace")

    def found(self):
        for number, text in self.heard():
            for line in text.splitlines():
                if "erification failed" in line or "Corruption" in line:
                    # Names of files matter, not where this machine has them.
                    return f"run {number}: " + line.replace(f"{self.folder}/", "")[:160]
        return None

    def verify(self):
        """All of the database against what db_stress wrote down, at rest; and the file system."""
        arguments = next(line["arguments"] for line in reversed(self.told()) if "begun" in line)
        # At its end db_stress takes away what its compaction filter needs, and a compaction at that moment crashes.
        short = ["--ops_per_thread=1", "--seed=1", "--enable_compaction_filter=0"]
        done = subprocess.run([self.db_stress, *arguments, *short], capture_output=True, text=True, timeout=600,
                              env={**self.environment, "LD_PRELOAD": self.plan["preload"]})
        text = done.stdout + done.stderr
        if done.returncode != 0 or "verification passed" not in text:
            return f"at the end: {text[-400:]}"
        done = subprocess.run([self.leyden_fs, "check", self.image], capture_output=True, text=True,
                              env=self.environment)
        return None if done.returncode == 0 else f"leyden-fs check: {(done.stdout + done.stderr)[-400:]}"

    def summary(self, finding):
        heard = [text for _, text in self.heard()]
        cuts = [line["report"] for line in self.told() if line.get("report")]
        return {
            "lane": self.name, "end": self.end, "sync": self.sync, "runs": len(heard), "ended": self.ended(),
            "verified": sum(1 for text in heard if "verification passed" in text), "found": finding,
            "reached": self.reached(),
            "dumped_bytes": [cut["dumped_bytes"] for cut in cuts],
        }


def need(args):
    for path, what in [(STDBUF, "coreutils' libstdbuf.so"), (f"{args.folder}/db_stress", "run `fetch` first"),
                       (f"{args.build}/libleyden_rocksdb.so", "build integrations/rocksdb"),
                       (f"{args.libraries}/leyden", "build leyden")]:
        if not os.path.exists(path):
            lacks(f"{path} is missing: {what}")


def in_lane(args, lane, rounds):
    finding = lane.rounds(rounds) or (None if lane.name.startswith("wrong") else lane.verify())
    summary = lane.summary(finding)
    # An image that found something is kept, to look at.
    if finding is None or lane.name.startswith("wrong"):
        os.remove(lane.image)
    return summary


def rounds(args):
    need(args)
    # Without a protected region a write at sync=0 promises nothing.
    syncs = [1] if args.region == "none" else [0, 1]
    lanes = [Lane(args, f"{args.region}-{end}-sync{sync}", end, sync, seed=args.seed + 10 * at)
             for at, (end, sync) in enumerate((e, s) for e in ["kill", "cut"] for s in syncs)]
    print("| end | sync | rounds | runs | verified after recovery | lost |\n|---|---|---|---|---|---|", flush=True)
    results = []
    with ThreadPoolExecutor(args.lanes) as pool:
        for result in pool.map(lambda lane: in_lane(args, lane, args.rounds), lanes):
            results.append(result)
            print(f"| {result['end']} | {result['sync']} | {result['ended']} | {result['runs']} | "
                  f"{result['verified']} | {result['found'] or 'nothing'} |", flush=True)
    return results, any(result["found"] for result in results)


def reclaims(args):
    need(args)
    syncs = [1] if args.region == "none" else [0, 1]
    databases = range(-(-args.rounds // ROUNDS_OF_CROWDED))
    lanes = [Lane(args, f"{args.region}-reclaim-sync{sync}-{at}", "reclaim", sync, seed=args.seed + 10 * at + sync,
                  drive=LITTLE, sizes=CROWDED) for at in databases for sync in syncs]
    rounds_each = min(args.rounds, ROUNDS_OF_CROWDED)
    print("| end | sync | rounds | runs | reached | verified after recovery | lost |\n|---|---|---|---|---|---|---|", flush=True)
    results = []
    with ThreadPoolExecutor(args.lanes) as pool:
        for result in pool.map(lambda lane: in_lane(args, lane, rounds_each), lanes):
            results.append(result)
            reached = ", ".join(f"{what} {times}" for what, times in result["reached"].items())
            print(f"| {result['end']} | {result['sync']} | {result['ended']} | {result['runs']} | {reached} | "
                  f"{result['verified']} | {result['found'] or 'nothing'} |", flush=True)
    return results, any(result["found"] for result in results)


def wrongs(args):
    need(args)
    print("| planted | sync | caught | after rounds | by |\n|---|---|---|---|---|", flush=True)
    results = []
    for name, options, sync in WRONGS:
        def once(time_, options=options, sync=sync, name=name):
            label = f"wrong-{name.replace(' ', '-')}-sync{sync}-{time_}"
            lane = Lane(args, label, "cut", sync, options, seed=args.seed + 100 * time_)
            return in_lane(args, lane, args.rounds)
        with ThreadPoolExecutor(args.lanes) as pool:
            tries = list(pool.map(once, range(args.times)))
        results += tries
        caught = [attempt for attempt in tries if attempt["found"]]
        after = ", ".join(str(attempt["ended"]) for attempt in caught)
        by = caught[0]["found"] if caught else "nothing"
        print(f"| {name} | {sync} | {len(caught)} of {len(tries)} | {after} | {by} |", flush=True)
    return results, any(not result["found"] for result in results)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["fetch", "run", "reclaims", "wrongs"])
    parser.add_argument("--folder", required=True, help="where the source, db_stress and the drives are")
    parser.add_argument("--build", default="build", help="where the plugin was built")
    parser.add_argument("--libraries", default="target/release", help="where leyden and libleyden.so are")
    parser.add_argument("--rounds", type=int, default=150, help="of each lane; of `wrongs` the most")
    parser.add_argument("--times", type=int, default=5, help="`wrongs`: how often each is planted")
    parser.add_argument("--region", choices=["selective", "full", "none"], default="selective",
                        help="what of the drive's buffer is protected")
    parser.add_argument("--interval", type=int, default=3, help="seconds to a kill")
    parser.add_argument("--lanes", type=int, default=4, help="at once: each sleeps half of the time")
    parser.add_argument("--jobs", type=int, default=2, help="compilers at once")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="a file for all results")
    args = parser.parse_args()
    if args.what == "fetch":
        return fetch(args)
    results, is_bad = {"run": rounds, "reclaims": reclaims, "wrongs": wrongs}[args.what](args)
    if args.json:
        with open(args.json, "w") as out:
            json.dump(results, out, indent=1)
    return 1 if is_bad else 0


if __name__ == "__main__":
    sys.exit(main())
