"""Checks that the database is whole and that every acknowledged order is in it."""

import os
import sqlite3
import sys

with open(os.environ["LEYDEN_ACKS"]) as acks:
    promised = {int(line) for line in acks}
db = sqlite3.connect(os.environ["LEYDEN_MOUNT"] + "/orders.db")
try:
    state = db.execute("pragma integrity_check").fetchone()[0]
    if state != "ok":
        sys.exit(f"integrity_check: {state}")
    found = {order for (order,) in db.execute("select id from orders")}
except sqlite3.Error as error:
    if promised:
        sys.exit(f"lost the table: {error}")
    found = set()
missing = promised - found
if missing:
    sys.exit(f"lost order {min(missing)} and {len(missing) - 1} more")
