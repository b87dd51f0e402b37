#!/usr/bin/env python3
"""The victim policy `z_deadline` where it was not made: other distributions, spare, banks and seeds than those of
Zombie Chasing's figures.

    papers/campaigns/victims.py --leyden target/release/leyden --json victims.json       # all: six minutes of one core
    papers/campaigns/victims.py --leyden target/release/leyden --only zipf --seeds 5

Prints Markdown: for each point by how much write amplification with `z_deadline` and the zombie block is above that of the best policy
without hints, of z-greedy and of z-cost-benefit with the block, and of cost-benefit with the block; mean and range over the seeds. The
drive is an eighth of scenarios/zombie/micro.toml, and so are page cache, times of the flusher and requests; it is aged through the cache as
there: the first four runs are left out, the next four are measured.
"""

import argparse
import json
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "campaigns"))

from commands import run
from schedules import toml

SCENARIOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scenarios")
WORK = {
    "zipf 0.9": {"zipf": {"theta": 0.9}},
    "self-similar 0.2": {"self_similar": {"h": "20 %"}},
    "hot 90/30": {"hot_cold": {"hot_share_of_space": "30 %", "hot_share_of_accesses": "90 %"}},
}
SMALL = {"device.nand.blocks_per_plane": 512, "host.page_cache.size": "512 MiB"}
DRIVES = {
    "as is": {},
    "15 % spare": {"device.ftl.over_provisioning": "15 %"},
    "16 banks": {"device.nand.dies_per_channel": 4, "device.nand.blocks_per_plane": 128},
}
PLAIN = ["greedy", "cost_benefit"]
BLOCK = ["greedy", "cost_benefit", "z_greedy", "z_cost_benefit", "z_deadline"]
# What z_deadline is held against, and what it is called.
AGAINST = {"plain": "best without hints", "z_greedy": "z-greedy", "z_cost_benefit": "z-cost-benefit", "block_cost_benefit": "cost-benefit + block"}


def scenario(distribution):
    """The text of a scenario whose writes are distributed so: an eighth of the micro-benchmark."""
    return f"""extends = "{SCENARIOS}/zombie/micro.toml"
[host.page_cache]
expire = "3.75 s"
writeback_interval = "625 ms"
[[workload.job]]
pattern = "random"
threads = 16
queue_depth = 1
block_size = "16 KiB"
read_share = "33.3333 %"
requests = 251_658
read_distribution = "uniform"
distribution = {toml(distribution)}
"""


def wafs_of(records):
    """Write amplification by seed and policy, of the records that `leyden compare --json` prints."""
    found = {}
    for record in records["runs"]:
        victim = record["config"]["device"]["ftl"]["gc"]["victim"]["policy"]
        found.setdefault(victim, {})[record["seed"]] = record["flash"]["waf"]
    return {victim: [wafs[seed] for seed in sorted(wafs)] for victim, wafs in found.items()}


def point_of(plain, block):
    """What a point's figures are, by name, each a list over the seeds."""
    best = [min(wafs) for wafs in zip(*plain.values())]
    return {"plain": best, "block_cost_benefit": block["cost_benefit"], **{name: block[name] for name in BLOCK if name.startswith("z_")}}


def measured(args, file, sets, victims, block):
    words = [args.leyden, "--quiet", "compare", file, "--vary", f"device.ftl.gc.victim={','.join(victims)}", "--seeds", str(args.seeds), "--json"]
    sets = {**SMALL, **sets, "device.ftl.zombie_block": str(block).lower()}
    words += [part for key, value in sets.items() for part in ("--set", f"{key}={value}")]
    return wafs_of(json.loads(run(*words)))


def excess(point, other):
    """By how much z_deadline writes more than `other`, of each seed, in per cent."""
    return [100 * (own / its - 1) for own, its in zip(point["z_deadline"], point[other])]


def cell(values):
    return f"{statistics.mean(values):+.1f} ({min(values):+.1f} to {max(values):+.1f})"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[""], help="work whose name has one of these in it")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--json", help="writes what was measured there")
    args = parser.parse_args()
    work = {name: distribution for name, distribution in WORK.items() if any(part in name for part in args.only)}
    if not work:
        sys.exit(f"--only: there are {'; '.join(WORK)}")
    print("| work | drive | WAF | " + " | ".join(AGAINST.values()) + " |\n|---|---|---|" + "---|" * len(AGAINST), flush=True)
    points = {}
    with tempfile.TemporaryDirectory(prefix="leyden-victims-") as folder:
        for name, distribution in work.items():
            file = os.path.join(folder, "work.toml")
            with open(file, "w") as out:
                out.write(scenario(distribution))
            for drive, sets in DRIVES.items():
                point = point_of(measured(args, file, sets, PLAIN, False), measured(args, file, sets, BLOCK, True))
                points[f"{name}/{drive}".replace(" ", "")] = point
                cells = [f"{statistics.mean(point['z_deadline']):.2f}", *(cell(excess(point, other)) for other in AGAINST)]
                print(f"| {name} | {drive} | " + " | ".join(cells) + " |", flush=True)
                if args.json:
                    with open(args.json, "w") as out:
                        json.dump(points, out, indent=1)
    for other, called in AGAINST.items():
        means = [statistics.mean(excess(point, other)) for point in points.values()]
        behind = sum(mean > 1 for mean in means)
        print(f"\n{called}: {behind} of {len(means)} points are more than 1 % behind; from {min(means):+.1f} to {max(means):+.1f} %.")


if __name__ == "__main__":
    main()
