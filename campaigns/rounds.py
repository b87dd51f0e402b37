#!/usr/bin/env python3
"""Rounds of real software on a served drive whose power is cut: is everything there that was promised?

    rounds.py --leyden target/release/leyden --fs ext4 --work files --rounds 100

A round is some work, a power cut at a random moment (`leyden cut` and SIGKILL of the server in turn), the file
system's own recovery and its check, and a look at all that the work was told is kept.

Exits with 0 if it is, with 1 if not, with 77 if this machine cannot do it. With --expect-broken, 0 and 1 change
places: a drive that lies, or a database that does not flush, must be found out.
"""

import argparse
import itertools
import json
import os
import random
import shutil
import signal
import sys
import threading
import time

import stack
import works
from stack import Broken, Stack

# The drive of a round has some hundred thousand units, and its server a buffer for each client.
MEMORY_MOST_KIB = 1 << 20


def one_round(work, number, drive, rng, span, is_layered):
    """Returns what is to be told of the round."""
    begun = threading.Event()
    worker = threading.Thread(target=work.run, args=(begun,), daemon=True)
    worker.start()
    begun.wait(60)
    time.sleep(rng.uniform(*span))
    if is_layered and number % 2 == 0 and drive.note_layer() == 0:
        raise Broken("the journal was not found")
    told = {"round": number, "by": "cut" if number % 2 else "kill"}
    if number % 2:
        loss = drive.cut()
        told["lost_ranges"] = len(loss["lost"])
        work.stop()
        worker.join(120)
        drive.restore()
    else:
        drive.kill()
        work.stop()
        worker.join(120)
        drive.revive()
    if worker.is_alive():
        raise RuntimeError("the work does not end")
    told["promised"] = work.check()
    told["server_kib"] = drive.memory_kib()
    if told["server_kib"] > MEMORY_MOST_KIB:
        raise Broken(f"the server takes {told['server_kib']} KiB")
    return told


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", default="leyden", help="the program")
    parser.add_argument("--fs", choices=sorted(stack.MAKE), default="ext4")
    parser.add_argument("--work", choices=sorted(works.WORKS), default="files")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--minutes", type=float, help="rounds until so much time has passed, instead")
    parser.add_argument("--region", choices=["none", "full"], default="none")
    parser.add_argument("--lie", action="store_true", help="the drive answers flushes without doing them")
    parser.add_argument("--expect-broken", action="store_true")
    parser.add_argument("--held", action="store_true", help="another mount namespace holds each mount, as a container does")
    parser.add_argument("--zoned-block", action="store_true", help="a block device on a conventional and a zoned drive")
    parser.add_argument("--latency", choices=["on", "off"], default="off", help="of the drive")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--span", default="0.05,0.6", help="seconds of work before the cut, from and to")
    parser.add_argument("--size", default="32", help="blocks per plane of the drive")
    parser.add_argument("--buffer", default="8 MiB", help="its write buffer")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", help="of the drive")
    parser.add_argument("--folder", help="where the image is made; a temporary folder if not given")
    args = parser.parse_args()
    # So that nothing stays mounted on this way out, too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
    work_class = works.WORKS[args.work]
    work_class.need()
    rng = random.Random(args.seed)
    span = tuple(float(part) for part in args.span.split(","))
    folder = stack.folder_for(args)
    os.makedirs(folder, exist_ok=True)
    os.chmod(folder, 0o755)
    sets = [f"device.buffer.size={args.buffer}", *args.set]
    if not args.zoned_block:
        sets = [f"device.nand.blocks_per_plane={args.size}", "device.ftl.over_provisioning=20 %", *sets]
    options = {"region": args.region, "lie": args.lie, "latency": args.latency, "sets": sets, "held": args.held}
    if args.zoned_block:
        options["drive"] = stack.TWO_DRIVES
    drive = Stack(args.leyden, folder, args.fs, **options)
    broken, done, work, began = None, 0, None, time.monotonic()
    try:
        drive.up()
        work = work_class(drive.mount, folder, rng)
        work.prepare()
        for number in itertools.count(1):
            minutes = (time.monotonic() - began) / 60
            if number > args.rounds if args.minutes is None else minutes > args.minutes:
                break
            told = one_round(work, number, drive, rng, span, args.zoned_block)
            done = number
            print(json.dumps(told), flush=True)
        work.stop()
        is_apart = args.zoned_block and "host.zoned_block.journal.separate=false" not in args.set
        if is_apart and done > 1 and not drive.layer["separated_bytes"]:
            raise Broken("no journal was kept apart")
        drive.down()
    except Broken as problem:
        broken = str(problem)
    finally:
        if work:
            work.stop()
        drive.abandon()
        if not args.folder:
            shutil.rmtree(folder, ignore_errors=True)
    seconds = round(time.monotonic() - began, 1)
    what = {"fs": args.fs, "work": args.work, "region": args.region, "rounds": done, "seconds": seconds}
    if args.zoned_block:
        what["layer"] = drive.layer
    print(json.dumps({**what, "promised": work.promised(), "broken": broken}))
    sys.exit(int((broken is not None) != args.expect_broken))


if __name__ == "__main__":
    main()
