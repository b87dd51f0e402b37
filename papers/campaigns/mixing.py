#!/usr/bin/env python3
"""How far the host's writes and garbage collection's copies share blocks, by load (docs/decisions/0017-settling-ramp.md).

    papers/campaigns/mixing.py --leyden target/release/leyden        # five minutes of one core

One die of `hot-cold`, from a timeline of eight windows: of the blocks that were filled meanwhile, the share of the host's pages that lie in blocks of
nine tenths of the host's pages or more, and the same of copies.
"""

import argparse
import json
import os
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "campaigns"))

from commands import run

PAGES_PER_BLOCK, REQUESTS = 32, 100_000
# Writes a second; without a limit one die does 860.
LOADS = {"100": 100, "300": 300, "600": 600, "busy": None}
SETS = ["device.nand.channels=1", "device.nand.dies_per_channel=1", "device.buffer.size=1 MiB", f"workload.job.0.requests={REQUESTS}"]
HOST, COPY = "program for the host", "program of a copy"


def filled(events):
    """The host's pages of each block that was filled from its first page to its last."""
    programs = [event for event in events if event.get("pid") == 3 and event.get("ph") == "X" and event["name"] in (HOST, COPY)]
    open_blocks, found = {}, []
    for event in sorted(programs, key=lambda event: event["ts"]):
        block, page = divmod(event["args"]["page"], PAGES_PER_BLOCK)
        if page == 0:
            open_blocks[block] = 0
        if block in open_blocks:
            open_blocks[block] += event["name"] == HOST
            if page == PAGES_PER_BLOCK - 1:
                found.append(open_blocks.pop(block))
    return found


def apart(blocks):
    """Programs a page of the host's, and the shares of the host's pages and of copies that lie in blocks of their own."""
    host, most = sum(blocks), PAGES_PER_BLOCK * 9 / 10
    copies = PAGES_PER_BLOCK * len(blocks) - host
    of_host = sum(pages for pages in blocks if pages >= most)
    of_copies = sum(PAGES_PER_BLOCK - pages for pages in blocks if PAGES_PER_BLOCK - pages >= most)
    return PAGES_PER_BLOCK * len(blocks) / host, of_host / host, of_copies / copies


def blocks_of(leyden, victim, limit, folder):
    """The blocks of all windows, from 60 % of the run on."""
    found, rate = [], limit or 860
    file = os.path.join(folder, "window.json")
    sets = [*SETS, f"device.ftl.gc.victim={victim}", *([f"workload.job.0.iops_limit={limit}"] if limit else [])]
    words = [part for setting in sets for part in ("--set", setting)]
    for window in range(8):
        at_s, length_s = (0.6 * REQUESTS + 4_000 * window) / rate, 600 / rate
        run(leyden, "timeline", "hot-cold", "--at", f"{at_s:.3f}s", "--before", "1 ms", "--after", f"{length_s * 1000:.0f}ms",
            "--output", file, *words)
        with open(file) as lines:
            found += filled(json.load(lines)["traceEvents"])
        os.remove(file)
    return found


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", required=True)
    args = parser.parse_args()
    print("| victim | writes a second | programs a page | host's pages apart | copies apart |\n|---|---|---|---|---|")
    with tempfile.TemporaryDirectory(prefix="leyden-mixing-") as folder:
        for victim in ["greedy", "cost_benefit"]:
            for load, limit in LOADS.items():
                waf, of_host, of_copies = apart(blocks_of(args.leyden, victim, limit, folder))
                print(f"| `{victim}` | {load} | {waf:.2f} | {of_host:.0%} | {of_copies:.0%} |", flush=True)


if __name__ == "__main__":
    main()
