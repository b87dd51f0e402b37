"""Commits 40 orders to SQLite and acknowledges each commit that has returned."""

import os
import sqlite3
import sys

db = sqlite3.connect(os.environ["LEYDEN_MOUNT"] + "/orders.db", isolation_level=None)
db.execute("pragma journal_mode=wal")
db.execute(f"pragma synchronous={sys.argv[1]}")
db.execute("create table if not exists orders(id integer primary key, note text)")
with open(os.environ["LEYDEN_ACK"], "a", buffering=1) as acks:
    for order in range(1, 41):
        db.execute("insert into orders values (?, ?)", (order, "paid " * 50))
        print("ack", order, file=acks)
os._exit(0)  # no clean close: it would write the log back into the database
