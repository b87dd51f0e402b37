#!/usr/bin/env python3
"""What the journal-only zones paper leaves open, varied: does reclaim copy, how much of it is journal, what do journal zones save.

    papers/campaigns/journal_matrix.py --leyden target/release/leyden --traces FOLDER --json matrix.json
    papers/campaigns/journal_matrix.py --leyden target/release/leyden --traces FOLDER --zones 128 --files 512 --works once

Open are the size of fio's file, whether it was written before (`laid`) or only allocated and written once (`once`, fio's default),
whether fio calls fsync (its default: no), the size of zones (FEMU's default: 128 MiB), whether the drives have Write Zeroes (FEMU's
default: no; then the zeroes of mkfs are written), and how fast the requests come (`closed`: as fast as the device goes, and a
file system waits for its flushes only; `narrow`: the same with 32 requests outstanding at most; `open`: at the recorded times).
Traces that are not in FOLDER are captured there (papers/campaigns/capture.py).

A run that needs more than --most seconds of processor time is given up: reclaim does not come to rest in it. Prints Markdown.
"""

import argparse
import itertools
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "campaigns"))

from commands import run

HERE = os.path.dirname(os.path.abspath(__file__))
DEVICE = os.path.join(HERE, "..", "..", "scenarios", "devices", "zoned-block.toml")
# Sectors that the block layer writes at once where a drive has no Write Zeroes.
ZEROES = 2048
JOBS = {
    ("random", "none"): "randwrite4k", ("random", "fsync"): "randwrite4k-fsync16",
    ("sequential", "none"): "seqwrite4k", ("sequential", "fsync"): "seqwrite4k-fsync32",
}
# 128: as scenarios/devices/zoned-block-defaults.toml.
ZONES = {
    64: [],
    128: ["device.zoned.zone_size=128 MiB", "host.conventional.ftl.capacity=896 MiB", "host.zoned_block.reserved_zones=7"],
}
CLOSED = 'mode = "closed"\nbarriers = true\nqueue_depth = '
PACES = {"closed": f"{CLOSED}1024", "narrow": f"{CLOSED}32", "open": 'mode = "open"'}
VARIED = ["zones", "zeroes", "works", "files", "fsyncs", "paces"]
HEAD = ("| zones | zeroes | file | fsync | pace | workload | copied, MiB | of that, journal | given up "
        "| with journal zones | given up | bandwidth |\n|---|---|---|---|---|---|---|---|---|---|---|---|")


def captured(args, work, mib, mode, job):
    """The trace of a workload, and the requests before fio's."""
    name = os.path.join(args.traces, f"{work}-{mib}-{mode}-{job}")
    if not os.path.exists(f"{name}.json"):
        rounds = ["--laid-out", "--round-mib", "64"] if work == "laid" else ["--rounds", "1", "--round-mib", str(mib)]
        words = ["--device-mib", "3072", "--mode", mode, "--job", job, "--file-mib", str(mib), *rounds, "--out", f"{name}.csv"]
        told = run(sys.executable, os.path.join(HERE, "capture.py"), *words)
        with open(f"{name}.json", "w") as file:
            file.write(told)
    with open(f"{name}.json") as file:
        return f"{name}.csv", json.load(file)["requests"]["begin"]


def written_zeroes(path, begin, to):
    """The same trace as a drive without Write Zeroes gets it."""
    with open(path) as file, open(to, "w") as out:
        for line in file:
            cells = line.rstrip("\n").split(",")
            if cells[1] != "Z":
                out.write(line)
                continue
            first, end = int(cells[2]), int(cells[2]) + int(cells[3])
            pieces = range(first, end, ZEROES)
            begin += len(pieces) - 1
            for at in pieces:
                out.write(f"{cells[0]},W,{at},{min(ZEROES, end - at)},WS,{cells[5]}\n")
    return to, begin


def one(args, folder, trace, begin, pace, sets):
    """A run's figures, or None if it takes too long."""
    scenario = os.path.join(folder, "run.toml")
    with open(scenario, "w") as file:
        file.write(f'extends = "{DEVICE}"\n[workload.trace]\npath = "{trace}"\n{PACES[pace]}\n[run]\nramp.requests = {begin}\n')
    words = [args.leyden, "--quiet", "run", scenario, "--json"]
    words += [word for setting in [*sets, *args.set] for word in ("--set", setting)]
    limit = lambda: resource.setrlimit(resource.RLIMIT_CPU, (args.most, args.most + 1))
    done = subprocess.run(words, capture_output=True, text=True, preexec_fn=limit)
    if done.returncode < 0:
        return None
    if done.returncode != 0:
        sys.exit(f"{' '.join(words)}: {done.stderr[-2000:]}")
    record = json.loads(done.stdout)
    block = record["zoned_block"]
    return {
        "copied": block["copied_bytes"], "journal": block["copied_journal_bytes"], "moved": block["reclaimed"],
        "given_up": block["aborted"], "elapsed_s": record["host"]["elapsed_s"], "mib_per_s": record["host"]["mib_per_s"],
    }


def of_seeds(args, folder, trace, begin, pace, sets):
    """Each figure's value of each seed."""
    runs = [one(args, folder, trace, begin, pace, [*sets, f"seed={seed}"]) for seed in range(1, args.seeds + 1)]
    return None if None in runs else {key: [each[key] for each in runs] for key in runs[0]}


def row(cells, plain, apart):
    shown = list(cells)
    mean = lambda figures, key, unit=1: statistics.mean(figures[key]) / unit
    for figures in (plain, apart):
        if figures is None:
            shown += ["no end", "", ""] if figures is plain else ["no end", ""]
            continue
        shown.append(f"{mean(figures, 'copied', 1 << 20):,.0f}")
        if figures is plain:
            share = mean(plain, "journal") / mean(plain, "copied") if mean(plain, "copied") else 0
            shown.append(f"{100 * share:.0f} %")
        shown.append(f"{mean(figures, 'given_up'):,.0f}")
    shown.append(f"{mean(apart, 'mib_per_s') / mean(plain, 'mib_per_s'):.2f}" if plain and apart else "")
    return "| " + " | ".join(shown) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    words = lambda text: text.split(",")
    numbers = lambda text: [int(word) for word in text.split(",")]
    parser.add_argument("--leyden", required=True)
    parser.add_argument("--traces", required=True, help="where captures are, and are made")
    parser.add_argument("--zones", type=numbers, default=[64, 128], help="MiB")
    parser.add_argument("--zeroes", type=words, default=["kept", "written"], help="Write Zeroes, or written")
    parser.add_argument("--works", type=words, default=["once", "laid"])
    parser.add_argument("--files", type=numbers, default=[384, 512, 640, 768, 1024], help="MiB")
    parser.add_argument("--fsyncs", type=words, default=["none", "fsync"])
    parser.add_argument("--paces", type=words, default=["closed", "open"])
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--most", type=int, default=30, help="seconds of processor time for a run")
    parser.add_argument("--set", action="append", default=[], help="a setting of each run")
    parser.add_argument("--json", help="keep all numbers here; what is there is not run again")
    args = parser.parse_args()
    os.makedirs(args.traces, exist_ok=True)
    kept = {}
    if args.json and os.path.exists(args.json):
        with open(args.json) as file:
            kept = json.load(file)
    print(HEAD)
    with tempfile.TemporaryDirectory(prefix="leyden-matrix-") as folder:
        for cell in itertools.product(*(getattr(args, name) for name in VARIED)):
            zone, zeroes, work, mib, fsync, pace = cell
            for mode, order in itertools.product(["ordered", "journal"], ["random", "sequential"]):
                name = "/".join([str(zone), zeroes, work, str(mib), fsync, pace, f"{mode}-{order}"])
                if name not in kept:
                    trace, begin = captured(args, work, mib, mode, JOBS[order, fsync])
                    if zeroes == "written":
                        trace, begin = written_zeroes(trace, begin, os.path.join(folder, "trace.csv"))
                    both = [of_seeds(args, folder, os.path.abspath(trace), begin, pace, [*ZONES[zone], f"host.zoned_block.journal.separate={apart}"])
                            for apart in ("false", "true")]
                    kept[name] = dict(zip(("plain", "apart"), both))
                    if args.json:
                        with open(args.json, "w") as file:
                            json.dump(kept, file, indent=1)
                print(row([f"{zone}", zeroes, f"{mib} {work}", fsync, pace, f"{mode}, {order}"], *kept[name].values()), flush=True)


if __name__ == "__main__":
    main()
