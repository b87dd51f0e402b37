"""How far the frontier of docs/designs.md depends on the seeds, and how much of it a search finds with a fifth of the runs.

    python papers/campaigns/frontier_seeds.py [--searches 8] [--out FOLDER]

Needs the Python package; searches need Optuna, too. All 72 designs run under random writes with three seeds, as `leyden reproduce
frontier --quick --seeds 3` runs them.
"""

from __future__ import annotations

import argparse
import itertools
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import leyden

SCENARIO = "hexa/random-write"
QUICK: dict[str, Any] = {
    "device.buffer.size": "16 MiB",
    "device.nand.channels": 4,
    "device.nand.dies_per_channel": 4,
    "device.ftl.capacity": "3 GiB",
    "workload.job.0.span": "1 GiB",
    "workload.job.0.requests": 400_000,
    "run.ramp.requests": 100_000,
}
SPACE: dict[str, list[Any]] = {
    "device.ftl.map.protection": [
        "full",
        *({"policy": "partial", "protected": share} for share in ("50 %", "10 %", "1 %")),
        "journal",
        "none",
    ],
    "device.buffer.schedule": ["fifo", "hexa", "dawid", "harvest"],
    "device.power.dump": ["in_place", "balanced", "balanced_slc"],
}
SEEDS = (1, 2, 3)
#: Smaller is better, and greater is better.
MINIMIZE = ["host.write_latency_us.p99", "flash.waf", "recovery.time_ms.max", "power.worst.capacitance_uf"]
MAXIMIZE = ["host.iops"]
#: As `leyden reproduce frontier` has it.
TOLERANCE = 0.005

Design = tuple[str, ...]
Figures = tuple[float, ...]


def dominates(one: Figures, other: Figures, signs: Sequence[int]) -> bool:
    """Worse in nothing and better in something, by more than the tolerance."""
    pairs = [(a * sign, b * sign, abs(b) * TOLERANCE) for a, b, sign in zip(one, other, signs, strict=True)]
    return all(a <= b + slack for a, b, slack in pairs) and any(a < b - slack for a, b, slack in pairs)


def frontier(figures: Mapping[Design, Figures], signs: Sequence[int]) -> set[Design]:
    return {
        design
        for design, mine in figures.items()
        if not any(dominates(theirs, mine, signs) for other, theirs in figures.items() if other != design)
    }


def measured(out: str | None) -> dict[Design, dict[int, Figures]]:
    """The figures of each design, by seed."""
    points = [dict(zip(SPACE, values, strict=True)) for values in itertools.product(*SPACE.values())]
    table = leyden.sweep({"base": SCENARIO, "seeds": list(SEEDS), "set": QUICK, "points": points}, out=out)
    keys = [table[f"config.{key}"] for key in SPACE]
    columns = [table[name] for name in MINIMIZE + MAXIMIZE]
    runs: dict[Design, dict[int, Figures]] = {}
    for row, seed in enumerate(table["seed"]):
        design = tuple(str(key[row]) for key in keys)
        runs.setdefault(design, {})[int(seed)] = tuple(float(column[row]) for column in columns)
    return runs


def of_seeds(runs: Mapping[Design, Mapping[int, Figures]], seeds: Iterable[int], fields: Sequence[int]) -> dict[Design, Figures]:
    """Means over `seeds` of the figures at `fields`."""
    chosen = list(seeds)
    return {
        design: tuple(sum(by_seed[seed][field] for seed in chosen) / len(chosen) for field in fields)
        for design, by_seed in runs.items()
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--searches", type=int, default=0, help="searches with a fifth of the runs")
    parser.add_argument("--out", help="folder that keeps the runs; the same folder resumes")
    args = parser.parse_args()
    runs = measured(args.out)
    every = [1] * len(MINIMIZE) + [-1] * len(MAXIMIZE)
    spreads = sorted(max(by_seed.values())[0] / min(by_seed.values())[0] for by_seed in runs.values())
    print(f"99th percentile of writes, greatest over least of the seeds: {spreads[len(spreads) // 2]:.1f} in the median, up to {spreads[-1]:.1f}")
    for name, fields in (("five figures", range(5)), ("four figures, without the latency", range(1, 5))):
        signs = [every[field] for field in fields]
        whole = frontier(of_seeds(runs, SEEDS, fields), signs)
        alone = [frontier(of_seeds(runs, [seed], fields), signs) for seed in SEEDS]
        print(f"{name}: {len(whole)} of {len(runs)} designs on the frontier of {len(SEEDS)} seeds")
        for seed, of_seed in zip(SEEDS, alone, strict=True):
            print(f"    seed {seed}: {len(of_seed)} on it, {len(of_seed & whole)} of them on that of all seeds")
        shared = [len(one & other) for one, other in itertools.combinations(alone, 2)]
        print(f"    two seeds share {min(shared)} to {max(shared)}")
    whole = frontier(of_seeds(runs, SEEDS, range(5)), every)
    for number in range(args.searches):
        budget = len(runs) * len(SEEDS) // 5
        found = leyden.search(
            SCENARIO, space=SPACE, set=QUICK, minimize=MINIMIZE, maximize=MAXIMIZE, runs=budget, seeds=len(SEEDS), seed=number
        )
        designs = {tuple(str(written(point[key])) for key in SPACE) for point in found.frontier}
        print(f"search {number}: {found.runs} runs, {len(designs & whole)} of {len(whole)}")


def written(value: Any) -> str:
    """A value as the table of runs has it."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f'{key} = "{part}"' for key, part in value.items()) + " }"
    return str(value)


if __name__ == "__main__":
    main()
