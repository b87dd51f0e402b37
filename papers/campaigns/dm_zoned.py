#!/usr/bin/env python3
"""Linux's own dm-zoned in a guest beside ours: the same requests, and what reclaim reads and writes below both.

    papers/campaigns/dm_zoned.py --leyden target/release/leyden --guest /tmp/guest
    papers/campaigns/dm_zoned.py --leyden target/release/leyden --guest /tmp/guest --only ordered --json kernel.json
    papers/campaigns/dm_zoned.py --leyden target/release/leyden --recorded kernel.json --set host.zoned_block.give_up=after_copy

The guest (papers/campaigns/guest.sh) is built if it is not there. In it dm-zoned lies on null_blk drives in memory, with as many
zones for data and chunks as `[host.zoned_block]` has on scenarios/devices/zoned-block.toml (`once-*`: zoned-block-defaults.toml):
on one that has conventional zones, too, because on two (`--drives 2`) requests for the regular one do not count when dm-zoned
asks whether it is idle. Requests go one after the other. `fill` and `bursts` leave reclaim the time to end what it has begun,
and a minute at the end, so that speeds matter little; the traces of ext4 and XFS go as fast as each device takes them.

Prints Markdown. Exits with 77 if this machine cannot do it.
"""

import argparse
import csv
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "campaigns"))

from commands import lacks, run
from dm_zoned_guest import REQUEST, pairs_of

HERE = os.path.dirname(os.path.abspath(__file__))
SCENARIOS = os.path.join(HERE, "..", "..", "scenarios")
# For requests with times of their own: 16 random zones, and moves that are over soon even in a slow guest.
SMALL_MIB = 16
SMALL = [f"device.zoned.zone_size={SMALL_MIB} MiB", "device.zoned.dies_per_zone=16", "host.conventional.ftl.capacity=256 MiB"]
TRACES = {
    "ordered": "ext4-ordered-randwrite4k-fsync16",
    "ordered-sequential": "ext4-ordered-seqwrite4k-fsync32",
    "journal": "ext4-journal-randwrite4k-fsync16",
    "journal-lazy": "ext4-journal-randwrite4k",
    "journal-sequential": "ext4-journal-seqwrite4k-fsync32",
    "xfs": "xfs-randwrite4k-fsync16",
    "once-ordered": "ext4-ordered-randwrite4k-once",
    "once-ordered-sequential": "ext4-ordered-seqwrite4k-once",
    "once-journal": "ext4-journal-randwrite4k-once",
    "once-journal-sequential": "ext4-journal-seqwrite4k-once",
}


def fill(chunks, first_us=0):
    """Writes chunks from end to end, MiB by MiB, with two seconds for each."""
    pieces = range(chunks * SMALL_MIB)
    return [(b"W", 1 << 11, first_us + piece * 2_000_000 // SMALL_MIB, piece << 11) for piece in pieces]


def bursts(chunks, seed):
    """Fills chunks; then 30 times, every six seconds, 40 writes of 64 KiB in one of them: so reclaim must merge."""
    draw = random.Random(seed)
    requests = fill(chunks)
    for number in range(30):
        first, begins = draw.randrange(chunks) * SMALL_MIB << 11, chunks * 2_000_000 + number * 6_000_000
        for write in range(40):
            at = first + draw.randrange(SMALL_MIB * 16) * 128
            requests.append((b"W", 128, begins + write * 10_000, at))
    return requests


def then_idle(requests):
    """Requests, and a read a minute after the last."""
    return [*requests, (b"R", 8, requests[-1][2] + 60_000_000, 0)]


def of_trace(lines):
    """Requests of a trace in Leyden's text: without their times."""
    kept = []
    for line in csv.DictReader(lines):
        kept.append((line["op"].encode(), int(line["len"]), 0, int(line["lba"])))
    return kept


def journal_of(lines):
    """The journal's blocks in a trace: pairs of the first, and the one after the last."""
    blocks = set()
    for line in csv.DictReader(lines):
        if line["class"] == "journal":
            first = int(line["lba"]) // 8
            blocks.update(range(first, first + int(line["len"]) // 8))
    return pairs_of(blocks)


def as_text(requests):
    """Requests as a trace for Leyden."""
    lines = ["time_us,op,lba,len"]
    lines += [f"{at},{what.decode()},{first},{sectors}" for what, sectors, at, first in requests]
    return "\n".join(lines) + "\n"


def device_of(name):
    """The platform of a case."""
    return "zoned-block-defaults" if name.startswith("once-") else "zoned-block"


def ours(args, folder, case):
    """Our layer's runs of a case, one of each seed."""
    path = case["trace"]
    if path is None:
        path = os.path.join(folder, f"{case['name']}.csv")
        with open(path, "w") as file:
            file.write(as_text(case["requests"]))
    scenario = os.path.join(folder, f"{case['name']}.toml")
    mode = 'mode = "closed"\nqueue_depth = 1\nbarriers = true' if case["trace"] else 'mode = "open"'
    with open(scenario, "w") as file:
        file.write(f'extends = "{SCENARIOS}/devices/{device_of(case["name"])}.toml"\n[workload.trace]\npath = "{path}"\n{mode}\n')
    own = [] if case["trace"] else SMALL
    sets = [part for setting in [*own, *args.set] for part in ("--set", setting)]
    words = [args.leyden, "--quiet", "run", scenario, *sets, "--json", "--set"]
    return [json.loads(run(*words, f"seed={seed}")) for seed in range(1, args.seeds + 1)]


def cases(args, folder):
    """What is sent: name, requests, the trace that Leyden replays if it is one, how often the kernel gets it."""
    timed = {"fill": fill(24), **{f"bursts-{seed}": bursts(20, seed) for seed in range(args.seed, args.seed + args.repeats)}}
    found = [{"name": name, "requests": then_idle(sent), "trace": None, "journal": []} for name, sent in timed.items()]
    traces = {name: os.path.join(SCENARIOS, "traces", f"{file}.csv.zst") for name, file in TRACES.items()}
    found += [{"name": name, "trace": path} for name, path in {**traces, **dict(args.trace)}.items()]
    names = chosen([case["name"] for case in found], args.only)
    found = [case for case in found if case["name"] in names]
    for case in found:
        if case["trace"]:
            text = os.path.join(folder, f"{case['name']}.csv")
            run(args.leyden, "trace", "convert", case["trace"], text, "--to", "csv")
            with open(text) as file:
                lines = file.readlines()
            case["requests"], case["journal"] = of_trace(lines), journal_of(lines)
    return found


def in_guest(args, share, job, *scripts):
    """Runs the last of `scripts` in the guest, which finds the others beside it, the job and the folder `share`; its results."""
    with open(os.path.join(share, "job.json"), "w") as file:
        json.dump(job, file)
    for script in scripts:
        shutil.copy(os.path.join(HERE, script), share)
    command = f"python3 /host/{scripts[-1]} /host/job.json /host/results.json"
    told = run(os.path.join(HERE, "guest.sh"), "run", args.guest, share, str(args.most), str(args.memory), command)
    if told.strip():
        print(told, file=sys.stderr)
    with open(os.path.join(share, "results.json")) as file:
        return json.load(file)


def theirs(args, share, case, record):
    """The kernel's results of a case, one of each repeat, and which kernel it is."""
    block = record["zoned_block"]
    repeats = args.repeats if case["trace"] else 1
    names = [f"{case['name']}.{repeat}" for repeat in range(repeats)]
    for name in names:
        with open(os.path.join(share, f"{name}.bin"), "wb") as file:
            file.write(b"".join(REQUEST.pack(*request) for request in case["requests"]))
    zone_mib = mib_of(record["config"]["device"]["zoned"]["zone_size"])
    chunks, reserved = len(block["chunks"]), record["config"]["host"]["zoned_block"]["reserved_zones"]
    job = {
        "zone_mib": zone_mib, "workloads": names, "drives": args.drives, "chunks": chunks, "reserved": reserved,
        "journal": {name: case["journal"] for name in names},
        "random": sum(zone != "tables" for zone in block["random_zones"]),
        # One is for the label.
        "sequential": chunks + reserved + 1,
    }
    results = in_guest(args, share, job, "dm_zoned_guest.py")
    for name in names:
        os.remove(os.path.join(share, f"{name}.bin"))
    return results["kernel"], [results[name] for name in names]


def mib_of(size):
    """MiB of a size as a record tells it."""
    number, unit = size.split()
    return int(number) * {"MiB": 1, "GiB": 1 << 10}[unit]


def mib(blocks):
    return blocks / 256


def of_kernel(result):
    """Reclaim's reads and writes, and the rest: blocks."""
    blocks = result["blocks"]
    return {
        "read": sum(blocks.get(f"{member}_read_reclaim", 0) for member in ("conventional", "zoned")),
        "written": sum(blocks.get(f"{member}_written_reclaim", 0) for member in ("conventional", "zoned")),
        "direct": blocks.get("zoned_written_host", 0),
        "host": sum(blocks.get(f"{member}_written_host", 0) for member in ("conventional", "zoned")),
        "metadata": blocks.get("conventional_written_metadata", 0),
        "moved": result["moves"]["ended"],
        "given_up": result["moves"]["ended_early"],
        "journal": result.get("reads", {}).get("journal", 0),
    }


def of_ours(record):
    """The same of a run record."""
    block = record["zoned_block"]
    blocks = lambda key: block[key] // block["block_bytes"]
    return {
        "read": blocks("copied_bytes"),
        "written": blocks("copied_bytes") + blocks("filled_bytes"),
        "direct": blocks("direct_bytes"),
        "host": blocks("host_bytes"),
        "metadata": blocks("metadata_bytes"),
        "moved": block["reclaimed"],
        "given_up": block["aborted"],
        "journal": blocks("copied_journal_bytes"),
    }


def spread(values, digits=0):
    """Mean, and least and most where they differ."""
    mean, least, most = (f"{of(values):,.{digits}f}" for of in (statistics.mean, min, max))
    return mean if min(values) == max(values) else f"{mean} ({least} to {most})"


def row(name, kernel, own):
    """A line of the table: what the kernel did, what we did, how much more or less; of all runs."""
    cells = [name]
    for key in ("read", "written"):
        values, ours_mib = ([mib(result[key]) for result in results] for results in (kernel, own))
        mean = statistics.mean(values)
        more = "" if mean == 0 else f"{(statistics.mean(ours_mib) / mean - 1) * 100:+.1f} %"
        cells += [spread(values), spread(ours_mib), more]
    for key in ("moved", "given_up"):
        cells.append(" / ".join(spread([result[key] for result in results]) for results in (kernel, own)))
    return "| " + " | ".join(cells) + " |"


HEAD = ("| requests | read by reclaim, MiB: kernel | ours | | written by it, MiB: kernel | ours | "
        "| moves ended: kernel / ours | given up |\n|---|---|---|---|---|---|---|---|---|")


def read_recorded(path):
    """The kernel's numbers of an earlier run; ends the campaign where it is not one."""
    try:
        with open(path) as file:
            recorded = json.load(file)
        for told in recorded.values():
            for result in told["results"]:
                of_kernel(result)
            assert told["linux"] and told["results"]
    except OSError as error:
        sys.exit(f"{path}: {error.strerror}")
    except (ValueError, KeyError, TypeError, AttributeError, AssertionError):
        sys.exit(f"{path} is not what --json has written")
    return recorded


def chosen(known, only):
    """Those of the requests `known` that `--only` names, all bursts by one name; ends the campaign where a name is not known."""
    named = lambda name: {name, re.sub(r"^bursts-\d+$", "bursts", name)}
    for asked in only or []:
        if not any(asked in named(name) for name in known):
            sys.exit(f"--only {asked}: there are {', '.join(known)}")
    return [name for name in known if not only or named(name) & set(only)]


def need_guest(args):
    if not args.guest:
        sys.exit("say where the guest is, or is to be built: --guest FOLDER")
    if not shutil.which("qemu-system-x86_64"):
        lacks("qemu-system-x86_64 is not installed")
    if not os.path.exists(os.path.join(args.guest, "root.img")):
        built = subprocess.run([os.path.join(HERE, "guest.sh"), "build", args.guest], capture_output=True, text=True)
        if built.returncode == 77:
            lacks(built.stdout.strip().removeprefix("SKIPPED: "))
        if built.returncode != 0:
            sys.exit(f"the guest is not built: {built.stderr[-2000:]}")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", required=True)
    parser.add_argument("--guest", help="the guest's folder; built if it is not there")
    parser.add_argument("--recorded", help="no guest: the kernel's numbers of an earlier run's --json")
    parser.add_argument("--only", type=lambda text: text.split(","), help="these requests only")
    parser.add_argument("--trace", action="append", default=[], type=lambda text: text.split("=", 1), metavar="NAME=FILE",
                        help="a trace to send, too")
    parser.add_argument("--repeats", type=int, default=3, help="how often the kernel gets each; seeds of bursts")
    parser.add_argument("--seed", type=int, default=1, help="the first of bursts")
    parser.add_argument("--seeds", type=int, default=8, help="how often ours gets each, with seeds from 1 on")
    parser.add_argument("--drives", type=int, choices=[1, 2], default=1, help="what dm-zoned lies on: one drive with "
                        "conventional zones, or a regular and a zoned one")
    parser.add_argument("--set", action="append", default=[], help="a setting of our run")
    parser.add_argument("--most", type=int, default=3600, help="seconds for the guest, of each row")
    parser.add_argument("--memory", type=int, default=6144, help="of the guest, MiB")
    parser.add_argument("--logs", help="keep what dm-zoned said here")
    parser.add_argument("--json", help="keep all numbers here")
    args = parser.parse_args()
    recorded = {}
    if args.recorded:
        recorded = read_recorded(args.recorded)
        args.only = chosen(list(recorded), args.only)
    else:
        need_guest(args)
    kept = {}
    with tempfile.TemporaryDirectory(prefix="leyden-dm-zoned-") as folder:
        share = args.logs or os.path.join(folder, "share")
        os.makedirs(share, exist_ok=True)
        for case in cases(args, folder):
            records = ours(args, folder, case)
            told = recorded.get(case["name"]) or dict(zip(("linux", "results"), theirs(args, share, case, records[0])))
            counts = [of_kernel(result) for result in told["results"]]
            if not kept:
                print(f"Linux {told['linux']}\n\n{HEAD}")
            kept[case["name"]] = {**told, "kernel": counts, "ours": [of_ours(record) for record in records]}
            print(row(case["name"], counts, kept[case["name"]]["ours"]), flush=True)
            if args.json:
                with open(args.json, "w") as file:
                    json.dump(kept, file, indent=1)


if __name__ == "__main__":
    main()
