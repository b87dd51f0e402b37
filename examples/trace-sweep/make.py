"""Writes trace.csv: an hour of a key-value store, random updates of 8 KiB with a skew, and a log."""

import random

random.seed(7)
with open("trace.csv", "w") as trace:
    print("time_us,op,lba,len", file=trace)
    log = 0
    for number in range(200_000):
        time_us = number * 40
        page = int(18_000 * random.random() ** 2)
        print(f"{time_us},W,{page * 16},16", file=trace)
        if number % 8 == 0:
            print(f"{time_us + 5},W,{300_000 + log * 8},8", file=trace)
            print(f"{time_us + 9},F,0,0", file=trace)
            log = (log + 1) % 4_000
