"""A shop that keeps its orders in a file: the software under test.

    orders.py work COUNT [hasty]     takes orders; confirms each when it is safe, or before if it is hasty
    orders.py check                  looks for everything that was confirmed
"""

import os
import sys

ORDERS = os.path.join(os.environ["LEYDEN_MOUNT"], "orders")


def work(count, manner=""):
    with open(ORDERS, "a") as orders, open(os.environ["LEYDEN_ACK"], "w", buffering=1) as confirmed:
        folder = os.open(os.environ["LEYDEN_MOUNT"], os.O_DIRECTORY)
        for number in range(1, int(count) + 1):
            orders.write(f"{number}\n")
            orders.flush()
            if manner == "hasty":
                confirmed.write(f"ack {number}\n")
            os.fsync(orders.fileno())
            os.fsync(folder)
            if manner != "hasty":
                confirmed.write(f"ack {number}\n")


def check():
    with open(os.environ["LEYDEN_ACKS"]) as confirmed:
        promised = confirmed.read().split()
    try:
        with open(ORDERS) as orders:
            found = set(orders.read().split())
    except FileNotFoundError:
        found = set()
    missing = [number for number in promised if number not in found]
    if missing:
        print(f"lost order {missing[0]}")
        sys.exit(1)


if __name__ == "__main__":
    {"work": work, "check": check}[sys.argv[1]](*sys.argv[2:])
