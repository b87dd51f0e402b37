#!/usr/bin/env python3
"""The schedule `harvest` where it was not made: other distributions, mixes, buffers, dies and seeds than those of Hexa's figures;
with --made, on the workloads of these figures.

    papers/campaigns/schedules.py --leyden target/release/leyden                       # all: half an hour on two cores
    papers/campaigns/schedules.py --leyden target/release/leyden --only zipf,log --seeds 5
    papers/campaigns/schedules.py --leyden target/release/leyden --made --seeds 1      # ten minutes of one core
    papers/campaigns/schedules.py --leyden target/release/leyden --cyclic              # cyclic logs: three minutes

Prints Markdown: for each point IOPS of `harvest` over those of the better of `fifo` and `hexa`, mean and range over the seeds. All drives are
aged by the work that is measured, until steady, and have the same blocks for data (scenarios/hexa/random-write.toml).
"""

import argparse
import csv
import os
import statistics
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "campaigns"))

from commands import run

SCENARIOS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "scenarios")
# A quarter of Hexa's drive, with dies of the full size, as in `leyden reproduce hexa --quick`.
DRIVE = ["device.nand.channels=4", "device.nand.dies_per_channel=4", "device.ftl.capacity=3 GiB", "run.ramp.requests=100_000"]
JOB = {"span": "1 GiB", "requests": 400_000, "threads": 4, "queue_depth": 64, "block_size": "4 KiB", "pattern": "random"}
WORK = {
    "random, 70 % reads": [{"read_share": "70 %"}],
    "zipf 0.9": [{"distribution": {"zipf": {"theta": 0.9}}}],
    "zipf 1.2": [{"distribution": {"zipf": {"theta": 1.2}}}],
    "hot 90/10": [{"distribution": {"hot_cold": {"hot_share_of_space": "10 %", "hot_share_of_accesses": "90 %"}}}],
    "self-similar 0.2": [{"distribution": {"self_similar": {"h": "20 %"}}}],
    "random of 16 KiB": [{"block_size": "16 KiB", "requests": 200_000}],
    "log beside random": [{"requests": 200_000}, {"pattern": "sequential", "offset": "1 GiB", "requests": 200_000, "threads": 1}],
    "random in all of the drive": [{"span": "3 GiB"}],
}
# Cyclic logs that `harvest` was not made with, on the drive of hexa/cyclic-log. The first six are held by a test
# (crates/run/src/run/tests/cyclic.rs).
LOG = {"pattern": "sequential", "threads": 1, "queue_depth": 16, "offset": "1 GiB"}
DATA = {"queue_depth": 16, "requests": 300_000}
CYCLIC = {
    "doublewrite, 5 MiB, beside zipf 0.9 of 16 KiB": [
        {**DATA, "distribution": {"zipf": {"theta": 0.9}}, "block_size": "16 KiB", "requests": 120_000},
        {**LOG, "block_size": "16 KiB", "span": "5 MiB", "requests": 120_000}],
    "logs of 4 and 32 MiB beside hot 90/10, half reads": [
        {**DATA, "distribution": {"hot_cold": {"hot_share_of_space": "10 %", "hot_share_of_accesses": "90 %"}}, "read_share": "50 %"},
        {**LOG, "span": "4 MiB", "requests": 180_000},
        {**LOG, "block_size": "64 KiB", "span": "32 MiB", "offset": "1100 MiB", "requests": 18_000}],
    "logs of 12 and 800 MiB beside random writes": [
        {**DATA, "requests": 180_000},
        {**LOG, "span": "12 MiB", "requests": 180_000},
        {**LOG, "block_size": "128 KiB", "span": "800 MiB", "offset": "1200 MiB", "requests": 9_000}],
    "log of 20 MiB beside zipf 1.2": [
        {**DATA, "distribution": {"zipf": {"theta": 1.2}}}, {**LOG, "block_size": "8 KiB", "span": "20 MiB", "requests": 150_000}],
    "log of 40 MiB beside self-similar 0.2": [
        {**DATA, "distribution": {"self_similar": {"h": "20 %"}}}, {**LOG, "span": "40 MiB", "requests": 300_000}],
    "logs of 16 and 60 MiB alone": [
        {**LOG, "span": "16 MiB", "requests": 300_000},
        {**LOG, "block_size": "32 KiB", "span": "60 MiB", "offset": "1200 MiB", "requests": 36_000}],
    "log of 96 MiB beside random writes": [
        {**DATA}, {**LOG, "block_size": "16 KiB", "span": "96 MiB", "requests": 75_000}],
}
BUFFERS = ["4 MiB", "16 MiB", "128 MiB"]
SHARES = ["1 %", "10 %", "50 %"]
SCHEDULES = ["fifo", "hexa", "harvest"]
# Hexa's workloads as `leyden reproduce hexa --quick` runs them, and what stands for its buffers of 64 MiB and 1 GiB there.
QUICK = [*DRIVE, "workload.job.0.span=1 GiB", "workload.job.0.requests=400_000"]
MADE = {
    "random writes": ("hexa/random-write", QUICK),
    "JESD219": ("hexa/jesd219", QUICK),
    "TPC-C": ("hexa/tpcc", ["workload.trace.loops=1", "run.ramp.requests=60_000"]),
}
MADE_BUFFERS = ["16 MiB", "256 MiB"]
MADE_SHARES = ["1 %", "10 %", "50 %", "all"]


def toml(value):
    """A value as TOML has it, in a line."""
    if isinstance(value, dict):
        return "{ " + ", ".join(f"{key} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, bool):
        return str(value).lower()
    return f'"{value}"' if isinstance(value, str) else str(value)


def scenario(jobs, base="random-write"):
    """The text of a scenario with these jobs on the drive of a scenario of Hexa's."""
    lines = [f'extends = "{SCENARIOS}/hexa/{base}.toml"']
    for job in jobs:
        lines.append("[[workload.job]]")
        lines += [f"{key} = {toml(value)}" for key, value in {**JOB, **job}.items()]
    return "\n".join(lines) + "\n"


def iops_of(lines):
    """IOPS by seed and schedule, of what `leyden compare --csv` writes."""
    found = {}
    for line in csv.DictReader(lines):
        found.setdefault(int(line["seed"]), {})[line["device.buffer.schedule"]] = float(line["host.iops"])
    return found


def ratios(iops):
    """`harvest` over the better of the others, of each seed."""
    return [of["harvest"] / max(of["fifo"], of["hexa"]) for of in iops.values()]


def percent(ratio):
    return f"{(ratio - 1) * 100:+.1f}"


def cell(values):
    """Mean, least and most, in percent more; in bold where it is behind by more than 1 %."""
    mean = statistics.mean(values)
    text = f"{percent(mean)} ({percent(min(values))} to {percent(max(values))})"
    return f"**{text}**" if mean < 0.99 else text


def protection(share):
    if share in ("journal", "none"):
        return share
    return "full" if share == "all" else f'{{ policy = "partial", protected = "{share}" }}'


def measured(args, folder, file, drive, buffer, share):
    """IOPS by seed and schedule."""
    table = os.path.join(folder, "runs.csv")
    sets = [*drive, f"device.buffer.size={buffer}", f"device.ftl.map.protection={protection(share)}"]
    words = [args.leyden, "--quiet", "compare", file, "--vary", f"device.buffer.schedule={','.join(SCHEDULES)}"]
    words += ["--seeds", str(args.seeds), "--csv", table, *(part for setting in sets for part in ("--set", setting))]
    run(*words)
    with open(table) as lines:
        found = iops_of(lines)
    os.remove(table)
    return found


def made(args, folder):
    """A row for each point of the figures that `harvest` was made with: IOPS of each schedule, the best in bold."""
    print("| workload | buffer | protected | " + " | ".join(f"`{it}`" for it in SCHEDULES) + " | over the better |\n|---|---|---|---|---|---|---|")
    points = []
    for name, (scenario_name, drive) in MADE.items():
        if not any(part in name for part in args.only):
            continue
        for buffer in MADE_BUFFERS:
            for share in MADE_SHARES:
                found = measured(args, folder, scenario_name, drive, buffer, share)
                points.append(ratios(found))
                means = {it: statistics.mean(of[it] for of in found.values()) for it in SCHEDULES}
                best = max(means.values())
                cells = [f"**{mean:,.0f}**" if mean == best else f"{mean:,.0f}" for mean in means.values()]
                over = cell(points[-1]) if args.seeds > 1 else f"{percent(points[-1][0])} %"
                print(f"| {name} | {buffer} | {share} | " + " | ".join(cells) + f" | {over} |", flush=True)
    return points


def cyclic(args, folder):
    """A row for each of the cyclic logs: `harvest` over the better of the others, by protection; and what SpartanSSD's journal is worth."""
    shares = ["10 %", "all", "journal"]
    print("| work | " + " | ".join(shares) + " | `fifo` with the journal over `hexa` at 10 % |\n|---|" + "---|" * (len(shares) + 1), flush=True)
    points = []
    for name, jobs in CYCLIC.items():
        if not any(part in name for part in args.only):
            continue
        file = os.path.join(folder, "work.toml")
        with open(file, "w") as out:
            out.write(scenario(jobs, "cyclic-log"))
        found = {share: measured(args, folder, file, [], "64 MiB", share) for share in shares}
        of_shares = [ratios(found[share]) for share in shares]
        points += of_shares
        partial = statistics.mean(of["hexa"] for of in found["10 %"].values())
        journal = statistics.mean(of["fifo"] for of in found["journal"].values())
        print(f"| {name} | " + " | ".join(map(cell, of_shares)) + f" | {journal / partial:.2f} |", flush=True)
    return points


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", required=True)
    parser.add_argument("--only", type=lambda text: text.split(","), default=[""], help="work whose name has one of these in it")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--made", action="store_true", help="the workloads of Hexa's figures, on a quarter of the drive")
    parser.add_argument("--cyclic", action="store_true", help="cyclic logs beside other data, on the drive of hexa/cyclic-log")
    args = parser.parse_args()
    if args.cyclic:
        with tempfile.TemporaryDirectory(prefix="leyden-schedules-") as folder:
            told(cyclic(args, folder))
        return
    if args.made:
        with tempfile.TemporaryDirectory(prefix="leyden-schedules-") as folder:
            told(made(args, folder))
        return
    work = {name: jobs for name, jobs in WORK.items() if any(part in name for part in args.only)}
    if not work:
        sys.exit(f"--only: there are {'; '.join(WORK)}")
    print("| work | buffer | " + " | ".join(SHARES) + " |\n|---|---|" + "---|" * len(SHARES), flush=True)
    points = []
    with tempfile.TemporaryDirectory(prefix="leyden-schedules-") as folder:
        for name, jobs in work.items():
            file = os.path.join(folder, "work.toml")
            with open(file, "w") as out:
                out.write(scenario(jobs))
            for buffer in BUFFERS:
                of_shares = [ratios(measured(args, folder, file, DRIVE, buffer, share)) for share in SHARES]
                points += of_shares
                print(f"| {name} | {buffer} | " + " | ".join(map(cell, of_shares)) + " |", flush=True)
    told(points)


def told(points):
    """Prints what all points come to."""
    means = [statistics.mean(values) for values in points]
    behind = [mean for mean in means if mean < 0.99]
    print(f"\n{len(behind)} of {len(means)} points are more than 1 % behind, the last {percent(min(means))} %; "
          f"the mean is {percent(statistics.geometric_mean(means))} %.")


if __name__ == "__main__":
    main()
