#!/usr/bin/env python3
"""Schedules and protections of the mapping table on traces that they were not made with.

    papers/campaigns/traces.py --leyden target/release/leyden FOLDER...                     # every trace below these folders
    papers/campaigns/traces.py --leyden target/release/leyden --buffers "8 MiB,64 MiB" run.csv.zst

Each trace is moved together (`workload.trace.pack`) and fills a drive of its own footprint: the dies of Hexa's drive, 8 of them, blocks of
32 pages (fewer where a die would have less than 128 blocks), mapping pages of 1 KiB, 7 % over-provisioning (8 blocks of a die where that is
more). Several disks of one trace lie one after another. The drive is aged by the trace until steady, and the trace is replayed once, as fast
as the drive allows. Prints Markdown: IOPS over those of `fifo` with all of the table protected. A file that cannot be replayed is named and
left out.
"""

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile

from schedules import percent, protection, toml

SCENARIOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scenarios")
DIES, PAGE, UNIT = 8, 8 << 10, 4 << 10
PAGES_PER_BLOCK = [32, 16, 8, 4]
# Fewer blocks hold too few spare ones for 7 % to mean what it means on a drive of today's size.
LEAST_BLOCKS, LEAST_SPARE = 128, 8
# Of the largest.
KEPT_BLOCKS = 4
ERASE_NS_PER_BLOCK = 437_500
# Of each disk, if a trace has several.
STACK = "1 TiB"
# What each column sets: a schedule, and what the capacitors protect.
COLUMNS = {
    f"{schedule} {share}": (schedule, share)
    for schedule in ["fifo", "hexa", "dawid", "harvest"]
    for share in ["1 %", "10 %", "all"]
    if (schedule, share) != ("fifo", "all")
}
COLUMNS["fifo, journal"] = ("fifo", "journal")
BASELINE = ("fifo", "all")


def pages_per_block(footprint):
    """The most pages with which a die of a drive that holds `footprint` bytes has enough blocks."""
    enough = [pages for pages in PAGES_PER_BLOCK if footprint >= LEAST_BLOCKS * DIES * pages * PAGE]
    return enough[0] if enough else PAGES_PER_BLOCK[-1]


def kept_blocks(footprint):
    """Blocks of a die beside its data: as many pages as 4 of the largest blocks, and one to write to."""
    pages = pages_per_block(footprint)
    return KEPT_BLOCKS * PAGES_PER_BLOCK[0] // pages + (pages < PAGES_PER_BLOCK[0])


def blocks_per_die(footprint):
    """The blocks of a die of a drive that holds `footprint` bytes and has 7 % to spare, or a few blocks."""
    row = DIES * pages_per_block(footprint) * PAGE
    # A closed block with less than a page of garbage is not worth collecting: of each block a unit less than a page counts.
    usable = row - DIES * (PAGE - UNIT)
    return max(-(-footprint * 107 // (100 * row)), -(-footprint // usable) + LEAST_SPARE) + kept_blocks(footprint)


def footprint(profile):
    """The bytes that a trace touches, in whole mapping units; what is only trimmed or zeroed has its place, too, and at most once."""
    most = profile["footprint_bytes"] + profile["bytes_trimmed"] + profile["bytes_zeroed"]
    return -(-min(most, profile["end_byte"]) // 4096) * 4096


def scenario(trace, footprint, is_stacked=False):
    """The text of a scenario that replays `trace`, whose requests touch `footprint` bytes, maybe of several disks."""
    pages = pages_per_block(footprint)
    config = {
        "extends": f"{SCENARIOS}/devices/hexa.toml",
        "device.nand": {"channels": 4, "dies_per_channel": 2, "pages_per_block": pages,
                        "blocks_per_plane": blocks_per_die(footprint), "erase": f"{ERASE_NS_PER_BLOCK * pages // PAGES_PER_BLOCK[0]} ns"},
        "device.ftl": {"capacity": f"{footprint} B", "over_provisioning": "0 %"},
        "device.ftl.map": {"kept_blocks": kept_blocks(footprint), "entries_per_page": 256},
        "device.buffer": {"drain_to": "0 %"},
        "workload.trace": {"path": os.path.abspath(trace), "mode": "closed", "pack": True, **({"stack": STACK} if is_stacked else {})},
        "precondition": {"kind": "steady", "distribution": "workload"},
        "run": {"stamps": False},
    }
    lines = []
    for key, value in config.items():
        if isinstance(value, dict):
            lines.append(f"[{key}]")
            lines += [f"{name} = {toml(item)}" for name, item in value.items()]
        else:
            lines.append(f"{key} = {toml(value)}")
    return "\n".join(lines) + "\n"


def asked(leyden, *words):
    """What a command of `leyden` prints as JSON, or what is wrong."""
    done = subprocess.run([leyden, "--quiet", *words, "--json"], capture_output=True, text=True)
    if done.returncode != 0:
        raise ValueError(done.stderr.strip().splitlines()[0] if done.stderr.strip() else f"exit code {done.returncode}")
    return json.loads(done.stdout)


def traces(paths):
    """The files below these paths, in order."""
    for path in paths:
        if os.path.isdir(path):
            for folder, _, names in sorted(os.walk(path)):
                yield from (os.path.join(folder, name) for name in sorted(names) if ".hints." not in name)
        else:
            yield path


def profiled(leyden, trace):
    """The profile of a trace, and whether it is of several disks."""
    try:
        return asked(leyden, "trace", "info", trace)["profile"], False
    except ValueError as problem:
        if "second device" not in str(problem):
            raise
        return asked(leyden, "trace", "info", trace, "--stack", STACK)["profile"], True


def row(leyden, file, buffer):
    """By column, IOPS over the baseline's."""
    def iops(schedule, share):
        of = "journal" if share == "journal" else protection(share)
        sets = [f"device.buffer.size={buffer}", f"device.buffer.schedule={schedule}", f"device.ftl.map.protection={of}"]
        return asked(leyden, "run", file, *(part for setting in sets for part in ("--set", setting)))["host"]["iops"]

    whole = iops(*BASELINE)
    return {name: iops(*column) / whole for name, column in COLUMNS.items()}


def harvest_over_better(cells):
    """`harvest` over the better of `fifo` and `hexa`, for each share."""
    fifo_all = {**cells, "fifo all": 1.0}
    return [cells[f"harvest {share}"] / max(fifo_all[f"fifo {share}"], cells[f"hexa {share}"]) for share in ["1 %", "10 %", "all"]]


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", required=True)
    parser.add_argument("--buffers", type=lambda text: text.split(","), default=["8 MiB"])
    parser.add_argument("paths", nargs="+", help="traces, or folders of them")
    args = parser.parse_args()
    print("| trace | buffer | " + " | ".join(COLUMNS) + " |\n|---|---|" + "---|" * len(COLUMNS), flush=True)
    points, left_out = [], []
    with tempfile.TemporaryDirectory(prefix="leyden-traces-") as folder:
        for trace in traces(args.paths):
            name = os.path.basename(trace).split(".")[0]
            try:
                file = os.path.join(folder, "trace.toml")
                profile, is_stacked = profiled(args.leyden, trace)
                name += " (several disks)" if is_stacked else ""
                with open(file, "w") as out:
                    out.write(scenario(trace, footprint(profile), is_stacked))
                for buffer in args.buffers:
                    cells = row(args.leyden, file, buffer)
                    points += harvest_over_better(cells)
                    print(f"| {name} | {buffer} | " + " | ".join(f"{cells[column]:.3f}" for column in COLUMNS) + " |", flush=True)
            except ValueError as problem:
                left_out.append(f"{name}: {problem}")
    for line in left_out:
        print(f"left out: {line}")
    if not points:
        sys.exit("no trace could be replayed")
    behind = sum(point < 0.98 for point in points)
    print(f"\n`harvest` over the better of `fifo` and `hexa` with the same protection: {behind} of {len(points)} points are more than 2 % behind, "
          f"the last {percent(min(points))} %; the mean is {percent(statistics.geometric_mean(points))} %.")


if __name__ == "__main__":
    main()
