#!/usr/bin/env python3
"""Databases without their own protection against torn pages, on drives with and without atomic writes.

    campaigns/atomic_writes.py --leyden target/release/leyden --states 2000 --record atomic.json [ENGINE...]
    campaigns/atomic_writes.py --show docs/evidence/atomic-writes.json

InnoDB runs without doublewrite, PostgreSQL with full_page_writes=off, SQLite as it comes. Each is recorded on ext4 on a
drive that keeps or loses units of 4 KiB (plain), and on one with NAWUPF = 16 KiB (atomic), PostgreSQL on a protected buffer
too. Power is cut at moments of the recording, in states that the contract of a volatile cache allows, whatever protects the
buffer. Prints a table of Markdown. What is not installed is named and left out. Takes root, /dev/fuse and loop devices.

`setup`, `work` and `check ENGINE PAGE` are for the crash test itself. The check of InnoDB compares the checksums of all pages as
the cut left them; the server recovers where one is wrong, and at every 50th state. It looks for torn pages, and hardly for lost
transactions: the column of lost data says "-" there.
"""

import argparse
import importlib
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass
from typing import Any

from commands import needs_crashtest, open_folder

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crates", "crashtest", "scripts")
NO_REGION = ["--set", "device.buffer.region=none"]
FULL_REGION = ["--set", "device.buffer.region=full"]
DRIVES = {
    "plain": NO_REGION,
    "atomic, 16 KiB": [*NO_REGION, "--set", "device.atomic.nawupf=16 KiB"],
    # The page cache writes many pages by one command: more than a flash page takes capacitors.
    "full": FULL_REGION,
    "full, atomic, 1 MiB": [*FULL_REGION, "--set", "device.atomic.nawupf=1 MiB"],
}
WITHOUT = ["--skip-innodb-doublewrite", "--innodb-buffer-pool-size=24M"]
# Transactions between two moments at which InnoDB writes the pages of its tables over.
WRITE_EVERY = 10
RECOVER_EVERY = 50
# An engine, its protection here, its page sizes, and how many of the drives.
ENGINES = {
    "InnoDB": ("no doublewrite", [4096, 8192, 16384], 2),
    "PostgreSQL": ("full_page_writes=off", [8192], 4),
    "SQLite": ("write-ahead log", [4096, 8192, 16384], 2),
}


def kit(folder: str, name: str) -> Any:
    sys.path.insert(0, os.path.join(SCRIPTS, folder))
    return importlib.import_module(name)


class InnoDB:
    """MariaDB by the scripts of the crash test, with a table whose pages are written over."""

    def __init__(self, page: int) -> None:
        self.kit = kit("mariadb", "mariadb")
        self.install = [f"--innodb-page-size={page}", *self.kit.SERVER[-2:]]
        self.kit.SERVER += [f"--innodb-page-size={page}", *WITHOUT]

    def setup(self) -> None:
        done = subprocess.run(["mariadb-install-db", "--no-defaults", f"--datadir={self.kit.DATA}", "--user=root", "--skip-test-db",
                               "--auth-root-authentication-method=normal", *self.install], capture_output=True, text=True)
        if done.returncode != 0:
            sys.exit(done.stderr or done.stdout)
        version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True).stdout.split()
        print("version", version[2])
        server = self.kit.start() or sys.exit(self.kit.last_words())
        self.kit.sql("create database d; create table d.t(id int primary key, number int, pad varchar(400)) engine=innodb; "
                     "create table d.counter(value int) engine=innodb; insert into d.counter values (0); "
                     "create table d.wide(id int primary key, n int, pad varchar(700)) engine=innodb; "
                     "insert into d.wide with recursive s(i) as (select 1 union all select i + 1 from s where i < 1000) "
                     "select i, 0, repeat('x', 600) from s")
        server.terminate()
        server.wait()

    def work(self) -> None:
        self.kit.start() or sys.exit(self.kit.last_words())
        client = subprocess.Popen([*self.kit.CLIENT, "d"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert client.stdin and client.stdout
        with open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
            for number in range(1, 121):
                rows = ", ".join(f"({number * 3 + row}, {number}, repeat('x', 300))" for row in range(3))
                ids = ", ".join(str(1 + (number * 7919 + step * 104729) % 1000) for step in range(8))
                write = "" if number % WRITE_EVERY else "flush tables t, wide, counter for export; unlock tables; "
                client.stdin.write(f"begin; insert into t values {rows}; update counter set value = {number}; "
                                   f"update wide set n = {number} where id in ({ids}); commit; {write}select {number};\n")
                client.stdin.flush()
                if client.stdout.readline().strip() != str(number):
                    sys.exit("the client has ended")
                acks.write(f"ack {number}\n")
        os._exit(0)

    def has_torn_pages(self) -> bool:
        files = [os.path.join(self.kit.DATA, "ibdata1")]
        files += [os.path.join(self.kit.DATA, "d", name) for name in ("t.ibd", "wide.ibd", "counter.ibd")]
        return any(subprocess.run(["innochecksum", file], capture_output=True).returncode != 0 for file in files)

    def verdict(self, number: int) -> str:
        if number % RECOVER_EVERY and not self.has_torn_pages():
            return "ok"
        said: str = self.kit.verdict()
        return said


class PostgreSQL:
    def __init__(self, _: int) -> None:
        self.kit = kit("postgresql", "postgres")

    def setup(self) -> None:
        self.kit.setup("full_page_writes=off")

    def work(self) -> None:
        self.kit.work(600)

    def verdict(self, _: int) -> str:
        said: str = self.kit.verdict()
        return said


class SQLite:
    def __init__(self, page: int) -> None:
        self.kit, self.page = kit("sqlite", "sqlite"), page

    def setup(self) -> None:
        db = self.kit.sqlite3.connect(self.kit.PATH)
        db.execute(f"pragma page_size={self.page}")
        db.execute("vacuum")
        db.close()
        self.kit.setup("WAL", "FULL")

    def work(self) -> None:
        self.kit.work("WAL", "FULL", 300)

    def verdict(self, _: int) -> str:
        said: str = self.kit.verdict()
        return said


@dataclass
class Result:
    engine: str
    version: str
    protection: str
    page: int
    drive: str
    promises: int
    states: int
    damaged: int
    lost: int
    first: str
    control: str


def tried(args: argparse.Namespace, engine: str, page: int, drive: str, folder: str) -> Result | str:
    """What came of a row; the reason if it cannot be run."""
    me = f"exec {sys.executable} {os.path.abspath(__file__)}"
    out = os.path.join(folder, "crash")
    command = [args.leyden, "--quiet", "crashtest", "devices/tlc-datacenter", "--fs", "ext4",
               "--size", "256 MiB", *DRIVES[drive],
               *(f"--{what}={me} {what} {engine} {page}" for what in ("setup", "work", "check")), "--check-server",
               "--states", str(args.states), "--seed", str(args.seed), "--timeout", "120 s", "--out", out, "--json"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1, 6) or not done.stdout:
        return (done.stderr.strip().splitlines() or ["it says nothing"])[-1].strip()
    summary = json.loads(done.stdout)
    with open(os.path.join(out, "work.log"), errors="replace") as log:
        versions = [found.group() for line in log if line.startswith("version ") and (found := re.search(r"\d+(\.\d+)+", line))]
    model, control = summary["models"][0], summary["control"]
    counts = model["verdicts"]
    damaged = sum(count for verdict, count in counts.items() if verdict not in ("held", "skipped", "lost"))
    first = next((str(finding["said"]).splitlines()[0] for finding in model["findings"] if finding.get("said")), "")
    noticed = sum(count for verdict, count in control["verdicts"].items() if verdict not in ("held", "skipped"))
    return Result(engine, ", ".join(versions), ENGINES[engine][0], page, drive, summary["acks"], model["states"], damaged,
                  counts.get("lost", 0), first, f"{noticed} of {control['states']}")


def print_table(results: list[Result]) -> None:
    print("\n| engine, protection | page | drive | promises | states | damaged | lost | first damage |\n|---|---|---|---|---|---|---|---|")
    for it in results:
        first = it.first.replace("|", "\\|")[:90]
        lost = "-" if it.engine == "InnoDB" else it.lost
        print(f"| {it.engine} {it.version}, {it.protection} | {it.page // 1024} KiB | {it.drive} | {it.promises} | {it.states} | "
              f"{it.damaged} | {lost} | {first} |")


def campaign() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help="InnoDB, PostgreSQL, SQLite; all if not given")
    parser.add_argument("--leyden", default="target/release/leyden")
    parser.add_argument("--states", type=int, default=2000, help="of each row")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--record", help="keep the results as JSON in this new file")
    parser.add_argument("--show", metavar="RECORD", help="print the table of a record, and run nothing")
    args = parser.parse_args()
    if args.show:
        with open(args.show) as record:
            return print_table([Result(**result) for result in json.load(record)])
    args.leyden = os.path.abspath(args.leyden)
    needs_crashtest(args.leyden)
    wanted = [name.lower() for name in args.engines]
    rows = [(engine, page, drive) for engine, (_, pages, drives) in ENGINES.items() for page in pages
            for drive in list(DRIVES)[:drives] if not wanted or engine.lower() in wanted]
    results: list[Result] = []
    for engine, page, drive in rows:
        with open_folder("leyden-atomic-") as folder:
            result = tried(args, engine, page, drive, folder)
        if isinstance(result, str):
            print(f"left out: {engine}, {page}, {drive}: {result}", file=sys.stderr, flush=True)
            continue
        print(f"{engine}, {page}, {drive}: {result.damaged} damaged, {result.lost} lost of {result.states}", file=sys.stderr,
              flush=True)
        results.append(result)
    print_table(results)
    if args.record:
        with open(args.record, "x") as record:
            json.dump([asdict(result) for result in results], record, indent=1)
            record.write("\n")


def main() -> None:
    engines: dict[str, type[InnoDB] | type[PostgreSQL] | type[SQLite]] = {
        "InnoDB": InnoDB, "PostgreSQL": PostgreSQL, "SQLite": SQLite}
    match sys.argv[1:]:
        case [("setup" | "work" | "check") as what, engine, page]:
            of = engines[engine](int(page))
            if what == "check":
                for number, _ in enumerate(sys.stdin):
                    print(of.verdict(number), flush=True)
            else:
                getattr(of, what)()
        case _:
            campaign()


if __name__ == "__main__":
    main()
