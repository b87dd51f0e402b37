#!/usr/bin/env python3
"""fio live on ext4 on Linux's own dm-zoned, in a guest: what reclaim reads, and how much of it is the journal.

    papers/campaigns/dm_zoned_live.py --guest /tmp/guest
    papers/campaigns/dm_zoned_live.py --guest /tmp/guest --files 384,512 --repeats 3 --json live.json

The drives are the journal-only zones paper's: 1 GiB conventional and 4 GiB zoned, zones of 128 MiB, without Write Zeroes; dm-zoned
keeps two conventional zones for its tables and as many zones for reclaim as dmzadm does (one less than there are
conventional ones). They are null_blk drives in memory; `--delay` is what each of their requests takes. fio writes each block
of a file once, and calls no fsync before its end. Reads are told apart by the chunk that dm-zoned says it moves.

Prints Markdown. Exits with 77 if this machine cannot do it.
"""

import argparse
import itertools
import json
import os
import statistics
import tempfile

from capture import JOBS
from dm_zoned import in_guest, need_guest, spread

ORDERS = {"random": "randwrite4k", "sequential": "seqwrite4k"}
HEAD = ("| file, MiB | workload | journal apart | read by reclaim, MiB | of that, journal | chunks moved | moves given up | fio, MiB/s |\n"
        "|---|---|---|---|---|---|---|---|")


def told(args, share, work, names):
    """What the guest told of runs `names` of a work."""
    zones = {"random": 5 if work["apart"] else 6, "sequential": 32, "reserved": 7}
    job = {
        "zone_mib": 128, "drives": 2, "workloads": names, **zones, "chunks": zones["sequential"] - zones["reserved"] - 1,
        "live": {name: {**work, "seed": number + 1} for number, name in enumerate(names)},
        "delay_us": args.delay,
    }
    results = in_guest(args, share, job, "dm_zoned_guest.py")
    return results["kernel"], [results[name] for name in names]


def row(mib, name, apart, results):
    read = [sum(result["reads"]["by_chunk"].values()) / 256 for result in results]
    journal = [result["reads"]["journal"] / 256 for result in results]
    share = f"{100 * statistics.mean(journal) / statistics.mean(read):.0f} %" if any(read) else ""
    moves = [spread([result["moves"][key] for result in results]) for key in ("ended", "ended_early")]
    speed = spread([result["bytes_per_s"] / (1 << 20) for result in results])
    return "| " + " | ".join([str(mib), name, "yes" if apart else "no", spread(read), share, *moves, speed]) + " |"


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guest", required=True, help="the guest's folder; built if it is not there")
    parser.add_argument("--files", type=lambda text: [int(word) for word in text.split(",")], default=[384], help="MiB")
    parser.add_argument("--only", help="these workloads, as ordered-random,journal-sequential")
    parser.add_argument("--apart", action="store_true", help="each with the journal on a drive of its own, too, which takes one of "
                        "the conventional zones: what zones for the journal alone would do")
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--delay", type=int, default=0, help="us that a request of a drive takes")
    parser.add_argument("--most", type=int, default=3600, help="seconds for the guest, of each row")
    parser.add_argument("--memory", type=int, default=8192, help="of the guest, MiB")
    parser.add_argument("--logs", help="keep what dm-zoned said here")
    parser.add_argument("--json", help="keep all numbers here")
    args = parser.parse_args()
    need_guest(args)
    kept = {}
    with tempfile.TemporaryDirectory(prefix="leyden-dm-zoned-") as folder:
        share = args.logs or os.path.join(folder, "share")
        os.makedirs(share, exist_ok=True)
        cells = itertools.product(args.files, ["ordered", "journal"], ORDERS, [False, True] if args.apart else [False])
        for mib, mode, order, apart in cells:
            if args.only and f"{mode}-{order}" not in args.only.split(","):
                continue
            work = {"mode": mode, "words": JOBS[ORDERS[order]], "file_mib": mib, "apart": apart, "delay_us": args.delay}
            label = f"{mib}-{mode}-{order}-{'apart' if apart else 'plain'}"
            names = [f"{label}.{number}" for number in range(args.repeats)]
            linux, results = told(args, share, work, names)
            if not kept:
                print(f"Linux {linux}\n\n{HEAD}", flush=True)
            kept[label] = {"linux": linux, "results": results}
            print(row(mib, f"{mode}, {order}", apart, results), flush=True)
            if args.json:
                with open(args.json, "w") as file:
                    json.dump(kept, file, indent=1)


if __name__ == "__main__":
    main()
