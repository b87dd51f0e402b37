#!/usr/bin/env python3
"""Journal-only zones measured live: fio on ext4 on a served block device on two drives, with and without them.

    papers/campaigns/journal_live.py --leyden target/release/leyden
    papers/campaigns/journal_live.py --leyden target/release/leyden --repeats 5 --json live.json

The drives are those of `devices/zoned-block-defaults`, whose latency is real (`leyden serve --latency on`), without Write
Zeroes. mkfs writes the journal's zeroes; fio writes each block of a file once, through the page cache, and syncs it at its
end. What reclaim copies is counted by the layer, from before mkfs on, as in a replay; the journal is found by the superblock.

Needs root, FUSE, loop devices, fio and mkfs.ext4. Prints Markdown. Exits with 77 if this machine cannot do it.
"""

import argparse
import itertools
import json
import mmap
import os
import shutil
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "campaigns"))

from capture import JOBS, journal
from dm_zoned import spread
from dm_zoned_guest import pairs_of
from stack import Stack, need, said

ORDERS = {"random": "randwrite4k", "sequential": "seqwrite4k"}
MODES = {"ordered": "ext4", "journal": "ext4-journal"}
BLOCK, MIB = 4096, 1 << 20
HEAD = ("| workload | journal zones | copied, MiB | of that, journal | chunks moved | MiB/s |\n|---|---|---|---|---|---|")


class OnZones(Stack):
    """ext4 as it is made on a drive without Write Zeroes, which FEMU's is: the journal's zeroes are written."""

    def make(self):
        said("mkfs.ext4", "-q", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0", self.loop)
        blocks = sorted(journal("ext4", self.loop))[1:]  # behind its superblock
        at_once = MIB // BLOCK
        zeroes = mmap.mmap(-1, MIB)
        file = os.open(self.loop, os.O_WRONLY | os.O_DIRECT)
        try:
            for first, end in pairs_of(blocks):
                for at in range(first, end, at_once):
                    os.pwrite(file, memoryview(zeroes)[:min(at_once, end - at) * BLOCK], at * BLOCK)
        finally:
            os.close(file)


def once(args, folder, mode, order, separate, number):
    """One run: what the layer did, and how fast fio was."""
    sets = [f"host.zoned_block.journal.separate={str(separate).lower()}", "host.zoned_block.journal.recognise=superblock"]
    # The way through the kernel and FUSE takes what the scenario's 10 us stand for.
    sets += [f"{drive}.frontend.command=1us" for drive in ("device", "host.conventional")]
    stack = OnZones(args.leyden, folder, MODES[mode], latency="on", sets=sets,
                    drive=["--drive", args.drive, "--seed", str(number)])
    try:
        stack.up()
        file = os.path.join(stack.mount, "file")
        said("fallocate", "-l", f"{args.file_mib}MiB", file)
        said("sync", "-f", stack.mount)
        done = said("fio", f"--filename={file}", f"--size={args.file_mib}m", "--name=work", "--ioengine=psync", *JOBS[ORDERS[order]],
                    "--end_fsync=1", f"--randseed={number}", "--allrandrepeat=0", "--output-format=json", timeout=3600)
        stack.note_layer()
        written = json.loads(done.stdout[done.stdout.index("{"):])["jobs"][0]
        elapsed_s = written["job_runtime"] / 1000
        stack.down()
    finally:
        stack.abandon()
    return {**stack.layer, "mib_per_s": args.file_mib / elapsed_s}


def row(workload, separate, runs):
    copied = [run["copied_bytes"] / MIB for run in runs]
    of_journal = [run["copied_journal_bytes"] / MIB for run in runs]
    share = f"{100 * sum(of_journal) / sum(copied):.0f} %" if any(copied) else ""
    cells = [spread(copied), share, spread([run["reclaimed"] for run in runs]), spread([run["mib_per_s"] for run in runs], 1)]
    return "| " + " | ".join([workload, "yes" if separate else "no", *cells]) + " |"


def claims(kept):
    """Figures 7 to 9 of means."""
    mean = lambda workload, separate, key: statistics.mean(run[key] for run in kept[f"{workload}/{separate}"])
    workloads = sorted({label.rsplit("/", 1)[0] for label in kept})
    copied = {of: mean(of, "false", "copied_bytes") for of in workloads}
    shares = [mean(of, "false", "copied_journal_bytes") / copied[of] if copied[of] else 0 for of in workloads]
    cuts = [1 - mean(of, "true", "copied_bytes") / copied[of] if copied[of] else 0 for of in workloads]
    print(f"\njournal's share, worst case: {max(shares):.3f}; copies cut: {min(cuts):.3f} to {max(cuts):.3f}")
    for mode in MODES:
        ratios = [mean(of, "true", "mib_per_s") / mean(of, "false", "mib_per_s") for of in workloads if of.startswith(mode)]
        print(f"bandwidth, {mode}: {statistics.mean(ratios):.3f} ({', '.join(f'{ratio:.3f}' for ratio in ratios)})")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", required=True, help="the program")
    parser.add_argument("--drive", default="devices/zoned-block-defaults", help="the drives: a scenario")
    parser.add_argument("--file-mib", type=int, default=384)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--folder", help="where the image lies; memory, if there is a place")
    parser.add_argument("--json", help="keep all numbers here")
    args = parser.parse_args()
    need("fio", "mkfs.ext4", "fallocate")
    args.leyden = os.path.abspath(args.leyden)
    place = args.folder or ("/dev/shm" if os.access("/dev/shm", os.W_OK) else None)
    kept = {}
    for number in range(args.repeats):
        for mode, order, separate in itertools.product(MODES, ORDERS, [False, True]):
            folder = tempfile.mkdtemp(prefix="leyden-journal-", dir=place)
            try:
                run = once(args, folder, mode, order, separate, number + 1)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
            kept.setdefault(f"{mode}, {order}/{str(separate).lower()}", []).append(run)
            print(f"{mode}, {order}, {separate}: {run}", file=sys.stderr, flush=True)
            if args.json:
                with open(args.json, "w") as file:
                    json.dump(kept, file, indent=1)
    print(HEAD)
    for label, runs in kept.items():
        workload, separate = label.rsplit("/", 1)
        print(row(workload, separate == "true", runs))
    claims(kept)
    return 0


if __name__ == "__main__":
    sys.exit(main())
