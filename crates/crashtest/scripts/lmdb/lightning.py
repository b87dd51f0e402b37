#!/usr/bin/python3
"""LMDB under `leyden crashtest` (Debian: python3-lmdb): a setup, a work, and a check that stays.

    lightning.py setup
    lightning.py work MODE TRANSACTIONS    MODE: sync, nometasync or nosync
    lightning.py check                     a line on standard input for each state, a line of answer

Each transaction puts three records and a counter; it is acknowledged when its commit has returned.
"""

import os
import sys
import typing

import lmdb

PATH = os.path.join(os.environ.get("LEYDEN_MOUNT", ""), "data")
MODES = {"sync": {}, "nometasync": {"metasync": False}, "nosync": {"sync": False}}
SIZE = 16 << 20


def setup():
    print("version LMDB", ".".join(map(str, lmdb.version())))
    with lmdb.open(PATH, map_size=SIZE) as env, env.begin(write=True) as txn:
        txn.put(b"counter", b"0")


def work(mode, transactions):
    env = lmdb.open(PATH, map_size=SIZE, **MODES[mode])
    with open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
        for number in range(1, int(transactions) + 1):
            with env.begin(write=True) as txn:
                for part in range(3):
                    txn.put(b"%06d.%d" % (number, part), b"%d " % number + os.urandom(300))
                # Pages are freed and used again.
                txn.delete(b"%06d.2" % (number - 7))
                txn.put(b"counter", b"%d" % number)
            acks.write(f"ack {number}\n")
            if mode == "nosync" and number % 20 == 0:
                # Nothing is ever flushed for LMDB: what else the machine does writes out, now and then.
                os.sync()
    os._exit(0)  # as a program that is killed: closing the environment would sync it


def verdict():
    with open(os.environ["LEYDEN_ACKS"]) as acks:
        promised = len(acks.read().split())
    try:
        with lmdb.open(PATH, map_size=SIZE, create=False) as env, env.begin() as txn:
            last = int(txn.get(b"counter"))
            records = dict(txn.cursor())
            entries = txn.stat()["entries"]
    except (lmdb.Error, TypeError, ValueError) as error:
        return f"lmdb: {error}"
    want = {b"counter"}
    for number in range(1, last + 1):
        want.update(b"%06d.%d" % (number, part) for part in range(3) if part < 2 or number + 7 > last)
    if records.keys() != want or entries != len(want):
        return f"{len(records.keys() ^ want)} records too many or too few"
    if any(not value.startswith(b"%d " % int(key[:6])) for key, value in records.items() if key != b"counter"):
        return "a record holds another's bytes"
    return f"lost {promised - last} acknowledged transactions" if last < promised else "ok"


def check():
    for _ in sys.stdin:
        # LMDB trusts its file: a process that a broken one kills must not take the server along.
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            os.write(write, verdict().encode())
            os._exit(0)
        os.close(write)
        with os.fdopen(read) as said:
            answer = said.read()
        status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
        print(answer if status == 0 else f"the process that reads it ends with {status}", flush=True)


if __name__ == "__main__":
    commands: dict[str, typing.Callable[..., None]] = {"setup": setup, "work": work, "check": check}
    commands[sys.argv[1]](*sys.argv[2:])
