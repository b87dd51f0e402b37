#!/usr/bin/env python3
"""SQLite under `leyden crashtest`: a setup, a work, and a check that stays.

    sqlite.py setup JOURNAL SYNCHRONOUS
    sqlite.py work JOURNAL SYNCHRONOUS TRANSACTIONS
    sqlite.py check JOURNAL                a line on standard input for each state, a line of answer

Each transaction inserts three rows and updates two counters; it is acknowledged when its commit has returned.
"""

import os
import sqlite3
import subprocess
import sys
import typing

MOUNT = os.environ.get("LEYDEN_MOUNT", "")
PATH = os.path.join(MOUNT, "data.db")


def connect(journal, synchronous):
    db = sqlite3.connect(PATH, isolation_level=None)
    db.execute(f"pragma journal_mode={journal}")
    db.execute(f"pragma synchronous={synchronous}")
    # Checkpoints of the write-ahead log, and so writes to the database, within the run.
    db.execute("pragma wal_autocheckpoint=50")
    return db


def setup(journal, synchronous):
    print("version SQLite", sqlite3.sqlite_version)
    db = connect(journal, "FULL")
    db.execute("create table t(id integer primary key, number integer, pad blob)")
    db.execute("create table counter(id integer primary key, value integer)")
    db.execute("insert into counter values (1, 0), (2, 0)")
    db.close()


def work(journal, synchronous, transactions):
    db = connect(journal, synchronous)
    with open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
        for number in range(1, int(transactions) + 1):
            db.execute("begin")
            for row in range(3):
                db.execute("insert into t values (?, ?, ?)", (number * 3 + row, number, os.urandom(300)))
            db.execute("update counter set value = ? where id = 1", (number,))
            db.execute("update counter set value = ? where id = 2", (number,))
            db.execute("commit")
            acks.write(f"ack {number}\n")
            if synchronous == "OFF" and number % 20 == 0:
                # Nothing is ever flushed for SQLite: what else the machine does writes out, now and then.
                subprocess.run(["sync", "-f", MOUNT], check=True)
    os._exit(0)  # as a program that is killed: closing the database would check it in


def verdict():
    with open(os.environ["LEYDEN_ACKS"]) as acks:
        promised = [int(line) for line in acks]
    try:
        db = sqlite3.connect(PATH, isolation_level=None)
        try:
            found = db.execute("pragma integrity_check").fetchone()[0]
            if found != "ok":
                return f"integrity_check: {found}".splitlines()[0]
            rows = dict(db.execute("select number, count(*) from t group by number"))
            counters = [value for value, in db.execute("select value from counter order by id")]
        finally:
            db.close()
    except sqlite3.Error as error:
        return f"sqlite: {error}"
    last = max(rows, default=0)
    if any(count != 3 for count in rows.values()) or counters != [last, last]:
        return "a transaction is there in part"
    if len(rows) != last:
        return "a transaction is missing before the last"
    lost = [number for number in promised if number > last]
    if lost:
        return f"lost {len(lost)} acknowledged transactions, from {lost[0]} on"
    return "ok"


def check(_journal):
    for _ in sys.stdin:
        print(verdict(), flush=True)


if __name__ == "__main__":
    commands: dict[str, typing.Callable[..., None]] = {"setup": setup, "work": work, "check": check}
    commands[sys.argv[1]](*sys.argv[2:])
