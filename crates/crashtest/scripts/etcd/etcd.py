#!/usr/bin/env python3
"""A cluster of etcd under `leyden crashtest --files --drives N` (Debian: etcd-server, etcd-client), a member on each drive.

    etcd.py setup
    etcd.py work KEYS [OPTION ...]    options of etcd, like --unsafe-no-fsync (since etcd 3.5)
    etcd.py check                     a line on standard input for each state, a line of answer

Each key is put by etcdctl, and acknowledged when that has ended well. After a power cut all members are started again. $ETCD and
$ETCDCTL name other programs than those in PATH.
"""

import contextlib
import os
import subprocess
import sys
import time

MOUNT = os.environ.get("LEYDEN_MOUNT", "")
TMP = os.environ.get("LEYDEN_TMP", "/tmp")
MEMBERS = range(1, int(os.environ.get("LEYDEN_DRIVES", "3")) + 1)
ETCD, ETCDCTL = os.environ.get("ETCD", "etcd"), os.environ.get("ETCDCTL", "etcdctl")
CLUSTER = ",".join(f"m{member}=http://127.0.0.1:{2400 + member}" for member in MEMBERS)
CLIENTS = {member: f"http://127.0.0.1:{2300 + member}" for member in MEMBERS}
PATIENCE_S = 15


def start(member, *options):
    peer = f"http://127.0.0.1:{2400 + member}"
    command = [
        ETCD, "--name", f"m{member}", "--data-dir", f"{MOUNT}/{member}/etcd", "--initial-cluster", CLUSTER,
        "--initial-advertise-peer-urls", peer, "--listen-peer-urls", peer, "--listen-client-urls", CLIENTS[member],
        "--advertise-client-urls", CLIENTS[member], "--heartbeat-interval", "20", "--election-timeout", "200",
        "--logger", "zap", *options,
    ]  # fmt: skip
    with open(f"{TMP}/m{member}.log", "w") as log:
        return subprocess.Popen(command, stdout=log, stderr=log)


def ctl(endpoints, *words, timeout="2s"):
    command = [ETCDCTL, "--endpoints", ",".join(endpoints), "--command-timeout", timeout, "--dial-timeout", timeout, *words]
    return subprocess.run(command, capture_output=True, text=True, env={**os.environ, "ETCDCTL_API": "3"})


def keys(endpoints, consistency):
    """The numbers of the keys that are there; None if no member answers."""
    got = ctl(endpoints, "get", "--prefix", "key", "--consistency", consistency)
    if got.returncode != 0:
        return None
    lines = got.stdout.split()
    return {int(key[3:]) for key, value in zip(lines[::2], lines[1::2]) if value == f"value{key[3:]}"}


@contextlib.contextmanager
def cluster(*options):
    """All members, until they have a leader or give up."""
    members = {member: start(member, *options) for member in MEMBERS}
    try:
        until = time.monotonic() + PATIENCE_S
        while keys(CLIENTS.values(), "l") is None and time.monotonic() < until:
            time.sleep(0.05)
        yield members
    finally:
        for process in members.values():
            process.kill()
            process.wait()


def setup():
    version = subprocess.run([ETCD, "--version"], capture_output=True, text=True).stdout.splitlines()
    print("version", version[0].replace("Version: ", ""))
    with cluster():
        if keys(CLIENTS.values(), "l") is None:
            sys.exit(f"the cluster has no leader: {last_words(1)}")


def work(count, *options):
    with cluster(*options), open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
        for number in range(1, int(count) + 1):
            put = ctl(CLIENTS.values(), "put", f"key{number}", f"value{number}", timeout="10s")
            if put.returncode != 0:
                sys.exit(put.stderr + last_words(1))
            acks.write(f"ack {number}\n")


def last_words(member):
    with open(f"{TMP}/m{member}.log", errors="replace") as log:
        said = log.read().splitlines()
    wrong = [line for line in said if "panic: " in line or '"level":"fatal"' in line]
    return (wrong or said or ["it says nothing"])[-1][:300]


def of_member(member, process):
    """What a member has by itself."""
    own = keys([CLIENTS[member]], "s")
    if own is not None:
        return f"member {member} has {len(own)}"
    if process.poll() is not None:
        return f"member {member} does not start: {last_words(member)}"
    return f"member {member} does not answer"


def verdict():
    with open(os.environ["LEYDEN_ACKS"]) as acks:
        promised = {int(line) for line in acks}
    with cluster() as members:
        found = keys(CLIENTS.values(), "l")
        if found is not None and promised <= found and all(process.poll() is None for process in members.values()):
            return "ok"
        each = ", ".join(of_member(member, process) for member, process in members.items())
    if found is None:
        return f"the cluster has no leader: {each}"
    lost = len(promised - found)
    return f"lost {lost} acknowledged keys of {len(promised)}: {each}" if lost else f"a member has ended: {each}"


def check():
    for _ in sys.stdin:
        print(verdict(), flush=True)


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["setup"]:
            setup()
        case ["work", *rest]:
            work(*rest)
        case ["check"]:
            check()
