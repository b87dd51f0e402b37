#!/usr/bin/env python3
"""DuckDB under `leyden crashtest` (PyPI: duckdb): a setup, a work, and a check that stays.

    duck.py setup
    duck.py work TRANSACTIONS
    duck.py check                     a line on standard input for each state, a line of answer

Each transaction inserts three rows and updates a counter; it is acknowledged when its commit has returned.
"""

import os
import sys
import typing

import duckdb

PATH = os.path.join(os.environ.get("LEYDEN_MOUNT", ""), "data.duckdb")


def connect():
    # Checkpoints of the write-ahead log, and so writes to the database, within the run.
    return duckdb.connect(PATH, config={"threads": 1, "memory_limit": "200MB", "checkpoint_threshold": "40KB"})


def setup():
    print("version DuckDB", duckdb.__version__)
    with connect() as db:
        db.execute("create table t(id integer primary key, number integer, pad varchar)")
        db.execute("create table counter(value integer)")
        db.execute("insert into counter values (0)")


def work(transactions):
    db = connect()
    with open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
        for number in range(1, int(transactions) + 1):
            db.execute("begin")
            for row in range(3):
                db.execute("insert into t values (?, ?, ?)", (number * 3 + row, number, os.urandom(150).hex()))
            db.execute("update counter set value = ?", (number,))
            db.execute("commit")
            acks.write(f"ack {number}\n")
    os._exit(0)  # as a program that is killed: closing the database would check it in


def verdict():
    with open(os.environ["LEYDEN_ACKS"]) as acks:
        promised = len(acks.read().split())
    try:
        with connect() as db:
            rows = dict(db.execute("select number, count(distinct pad) from t group by number").fetchall())
            counters = db.execute("select value from counter").fetchall()
    except duckdb.Error as error:
        return f"duckdb: {error}".replace("\n", "; ")
    last = max(rows, default=0)
    if any(count != 3 for count in rows.values()) or counters != [(last,)] or len(rows) != last:
        return "a transaction is there in part"
    return f"lost {promised - last} acknowledged transactions of {promised}" if last < promised else "ok"


def check():
    for _ in sys.stdin:
        print(verdict(), flush=True)


if __name__ == "__main__":
    commands: dict[str, typing.Callable[..., None]] = {"setup": setup, "work": work, "check": check}
    commands[sys.argv[1]](*sys.argv[2:])
