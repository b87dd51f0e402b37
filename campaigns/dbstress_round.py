#!/usr/bin/env python3
"""One run of db_stress, in the place of db_stress itself: `db_crashtest.py --stress_cmd` gets this file.

DBSTRESS_LANE names a JSON file that `dbstress.py` writes: how to start db_stress, and how the run is to end.

- kill: db_stress begins after a random part of the interval, so that the SIGKILL of db_crashtest.py, which comes at
  the end of it, meets it at a random age.
- cut: the drive loses its power at a random moment (`leyden cut`), and db_stress dies of its next command (`at_cut:die`
  in the URI). It must not see the error: it writes down a value as put before it looks whether the put has failed.
- reclaim: the plugin kills db_stress at a random command of its reclaims (`kill_in_plain_reclaim:N`).
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
# A kill in a reclaim comes at one of so many commands; small numbers are likelier.
COMMANDS_MOST = 400
# Reclaims of logs are far more frequent: where one of plain files is to come first, the kill in one of logs comes so late.
# Without it the drive would be full some day.
LOG_COMMANDS_MOST = 3_000


def die_with_parent():
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def told(lane, **what):
    """A line of the lane's record. It is written at once, since this process is going to be killed."""
    with open(lane["record"], "a") as out:
        out.write(json.dumps(what) + "\n")


def killed_in_reclaim(lane, number, stress):
    """Waits until the plugin has killed db_stress, and then for the end of the round."""
    code = stress.wait()
    with open(os.path.join(lane["outputs"], f"{number:04}"), errors="replace") as file:
        text = file.read()
    reached = next((what for what, words in lane["reached"].items() if words in text), None)
    told(lane, ended=number, code=code, reached=reached)
    if reached is None or code != -signal.SIGKILL:
        return 3
    while True:
        signal.pause()


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
    if lane["end"] == "reclaim":
        plain, log = int(COMMANDS_MOST ** rng.random()), int(COMMANDS_MOST ** rng.random())
        if rng.random() < 0.5:
            log = LOG_COMMANDS_MOST
        kills = f"kill_in_plain_reclaim:{plain},kill_in_log_reclaim:{log}"
        arguments = [f"{it},{kills}" if it.startswith("--fs_uri=") else it for it in arguments]
    stress = subprocess.Popen([lane["db_stress"], *arguments], env=environment, preexec_fn=die_with_parent)
    if lane["end"] == "reclaim":
        return killed_in_reclaim(lane, number, stress)
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
