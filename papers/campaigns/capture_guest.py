#!/usr/bin/env python3
"""Captures a work on ext4 in the campaigns' guest, whose kernel may be another than this machine's.

    papers/campaigns/capture_guest.py --guest /tmp/guest --mode journal --job randwrite4k --file-mib 512 --out journal.csv.zst

As papers/campaigns/capture.py, with a null_blk drive in memory below the file system, which has no Write Zeroes; the file is
allocated and written once. GUEST_SUITE=bullseye papers/campaigns/guest.sh build FOLDER makes a guest with Linux 5.10.

Exits with 77 if this machine cannot do it.
"""

import argparse
import json
import os
import sys
import tempfile

import capture
from dm_zoned import in_guest, need_guest


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--guest", required=True, help="the guest's folder; built if it is not there")
    parser.add_argument("--mode", choices=["ordered", "journal"], default="ordered", help="ext4's data=")
    parser.add_argument("--job", choices=sorted(capture.JOBS), default="randwrite4k")
    parser.add_argument("--device-mib", type=int, default=3072)
    parser.add_argument("--file-mib", type=int, default=512)
    parser.add_argument("--most", type=int, default=1200, help="seconds for the guest")
    parser.add_argument("--memory", type=int, default=8192, help="of the guest, MiB")
    parser.add_argument("--out", required=True)
    args = parser.parse_args()
    need_guest(args)
    with tempfile.TemporaryDirectory(prefix="leyden-capture-") as share:
        job = {"mode": args.mode, "words": capture.JOBS[args.job], "mib": args.device_mib, "file_mib": args.file_mib}
        result = in_guest(args, share, job, "dm_zoned_guest.py", "capture_in_guest.py")
        with open(os.path.join(share, "trace")) as file:
            lines = file.read().splitlines()
    if any("LOST" in line for line in lines):
        sys.exit("the kernel dropped events")
    blocks = {block for first, end in result["journal"] for block in range(first, end)}
    marks = capture.write(args.out, capture.parsed(lines, blocks, False))
    print(json.dumps({"out": args.out, "linux": result["linux"], "journal_mib": len(blocks) * 4096 >> 20, "requests": marks}))


if __name__ == "__main__":
    main()
