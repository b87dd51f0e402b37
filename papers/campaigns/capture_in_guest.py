#!/usr/bin/env python3
"""Runs in the guest of capture_guest.py: a file system on a drive in memory, fio, and the requests that reach the drive."""

import json
import os
import subprocess

from dm_zoned_guest import EVENT, TRACING, fio, journal_blocks, make_drive, make_fs, number_of, put


def mark(name):
    put(f"{TRACING}/trace_marker", f"leyden {name}\n")


def main():
    with open("/host/job.json") as file:
        job = json.load(file)
    for module in (["null_blk", "nr_devices=0"], ["ext4"]):
        subprocess.run(["modprobe", *module], check=True)
    if not os.path.ismount("/sys/kernel/config"):
        subprocess.run(["mount", "-t", "configfs", "configfs", "/sys/kernel/config"], check=True)
    drive = make_drive("drive", job["mib"], {})
    put(f"{TRACING}/buffer_size_kb", "262144")
    put(f"{TRACING}/trace_clock", "mono")
    put(f"{EVENT}/filter", f"dev == {number_of(drive)}")
    put(f"{EVENT}/enable", "1")
    make_fs(drive, job)
    mark("begin")
    fio(job["words"], job["file_mib"], 1)
    subprocess.run(["sync"], check=True)
    mark("round-1")
    subprocess.run(["umount", "/tmp/fs"], check=True)
    put(f"{EVENT}/enable", "0")
    with open(f"{TRACING}/trace") as file, open("/host/trace", "w") as out:
        out.writelines(line for line in file if not line.startswith("#"))
    with open("/host/results.json", "w") as file:
        json.dump({"linux": os.uname().release, "journal": journal_blocks(drive)}, file)


if __name__ == "__main__":
    main()
