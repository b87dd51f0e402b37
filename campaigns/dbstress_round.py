#!/usr/bin/env python3
"""One run of db_stress, in the place of db_stress itself: `db_crashtest.py --stress_cmd` gets this file.

DBSTRESS_LANE names a JSON file that `dbstress.py` writes: how to start db_stress, and how the run is to end.

- kill: db_stress begins after a random part of the interval, so that the SIGKILL of db_crashtest.py, which comes at
  the end of it, meets it at a random age.
- cut: the drive loses its power at a random moment (`leyden cut`), and db_stress dies of its next command (`at_cut:die`
  in the URI). It must not see the error: it writes down a value as put before it looks whether the put has failed.
"""

import ctypes
import json
import os
import random
import signal
import subprocess
import sys
import time

PR_SET_PDEATHSIG = 1
# Opening a database takes some time: an earlier end only tries the mount again.
YOUNGEST = 1.0


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def told(lane, **what):
    """A line of the lane's record. It is written at once, since this process is going to be killed."""
    with open(lane["record"], "a") as out:
        out.write(json.dumps(what) + "\n")


def main():
    with open(os.environ["DBSTRESS_LANE"]) as file:
        lane = json.load(file)
    with open(lane["record"], "a+") as file:
        file.seek(0)
        number = sum(1 for line in file if '"begun"' in line)
    rng = random.Random(f"{lane['seed']} {number}")
    # db_crashtest.py's own choices for this run follow from its own generator; the work's seed is ours.
    arguments = [*sys.argv[1:], f"--seed={lane['seed'] * 1_000_003 + number}"]
    output = os.open(os.path.join(lane["outputs"], f"{number:04}"), os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
    os.dup2(output, 1)
    os.dup2(output, 2)
    environment = {**os.environ, "LD_PRELOAD": lane["preload"], "_STDBUF_O": "L"}
    told(lane, begun=number, arguments=arguments)
    if lane["end"] == "kill":
        time.sleep(rng.uniform(0, max(0, lane["interval"] - YOUNGEST)))
        os.execve(lane["db_stress"], [lane["db_stress"], *arguments], environment)
    stress = subprocess.Popen([lane["db_stress"], *arguments], env=environment, preexec_fn=die_with_parent)
    try:
        code = stress.wait(rng.uniform(YOUNGEST, lane["interval"] - 0.1))
        told(lane, ended=number, code=code)
        return 3
    except subprocess.TimeoutExpired:
        pass
    size = os.fstat(output).st_size
    cut = subprocess.run([lane["leyden"], "cut", lane["image"], "--json"], capture_output=True, text=True)
    # Output up to here counts. Without an answer the drive was not open yet: the kill is the cut.
    told(lane, cut=number, output=size, report=json.loads(cut.stdout) if cut.returncode == 0 else None)
    while True:
        signal.pause()


if __name__ == "__main__":
    sys.exit(main())
