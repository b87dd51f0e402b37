#!/usr/bin/env python3
"""MariaDB under `leyden crashtest` (Debian: mariadb-server): a setup, a work, and a check that stays.

    mariadb.py setup
    mariadb.py work TRANSACTIONS [OPTION ...]    options of mariadbd, like --innodb-flush-log-at-trx-commit=2
    mariadb.py check                             a line on standard input for each state, a line of answer

Each transaction inserts three rows and updates a counter; it is acknowledged when its commit has returned.
"""

import os
import subprocess
import sys
import time

DATA = os.path.join(os.environ.get("LEYDEN_MOUNT", ""), "mysql")
TMP = os.environ.get("LEYDEN_TMP", "/tmp")
SOCKET = f"{TMP}/mariadb.sock"
CLIENT = ["mariadb", "--no-defaults", "--user=root", f"--socket={SOCKET}", "--batch", "--skip-column-names",
          "--unbuffered"]
SERVER = ["mariadbd", "--no-defaults", f"--datadir={DATA}", f"--socket={SOCKET}", "--skip-networking",
          f"--pid-file={TMP}/mariadb.pid", "--skip-grant-tables", "--user=root", "--innodb-log-file-size=8M",
          "--innodb-buffer-pool-size=16M", "--innodb-data-file-path=ibdata1:8M:autoextend"]


def start(*options):
    server = subprocess.Popen([*SERVER, *options], stdout=subprocess.DEVNULL, stderr=open(f"{TMP}/mariadb.err", "w"))
    for _ in range(600):
        if subprocess.run([*CLIENT, "-e", "select 1"], capture_output=True).returncode == 0:
            return server
        if server.poll() is not None:
            break
        time.sleep(0.05)
    server.kill()
    server.wait()
    return None


def last_words():
    with open(f"{TMP}/mariadb.err", errors="replace") as log:
        lines = log.read().splitlines()
    wrong = [line for line in lines if "[ERROR]" in line]
    return (wrong or lines or ["it says nothing"])[0]


def sql(text):
    done = subprocess.run([*CLIENT, "-e", text], capture_output=True, text=True)
    return done.stdout.split("\n")[:-1] if done.returncode == 0 else sys.exit(done.stderr)


def setup():
    version = subprocess.run(["mariadbd", "--version"], capture_output=True, text=True).stdout.split()
    print("version MariaDB", version[2] if len(version) > 2 else "")
    command = ["mariadb-install-db", "--no-defaults", f"--datadir={DATA}", "--user=root", "--skip-test-db",
               "--auth-root-authentication-method=normal", *SERVER[-3:]]
    done = subprocess.run(command, capture_output=True, text=True)
    if done.returncode != 0:
        sys.exit(done.stderr or done.stdout)
    server = start() or sys.exit(last_words())
    sql("create database d; create table d.t(id int primary key, number int, pad varchar(400)) engine=innodb; "
        "create table d.counter(value int) engine=innodb; insert into d.counter values (0)")
    server.terminate()
    server.wait()


def work(transactions, *options):
    start(*options) or sys.exit(last_words())
    client = subprocess.Popen([*CLIENT, "d"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    with open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
        for number in range(1, int(transactions) + 1):
            rows = ", ".join(f"({number * 3 + row}, {number}, repeat('x', 300))" for row in range(3))
            client.stdin.write(f"begin; insert into t values {rows}; update counter set value = {number}; commit; "
                               f"select {number};\n")
            client.stdin.flush()
            if client.stdout.readline().strip() != str(number):
                sys.exit("the client has ended")
            acks.write(f"ack {number}\n")
    os._exit(0)


def verdict():
    with open(os.environ["LEYDEN_ACKS"]) as acks:
        promised = len(acks.read().split())
    server = start()
    if server is None:
        return f"mariadbd does not start: {last_words()}"
    try:
        checked = subprocess.run([*CLIENT, "-e", "check table d.t, d.counter; select value from d.counter; "
                                  "select count(*) from d.t; select coalesce(max(number), 0) from d.t"],
                                 capture_output=True, text=True)
    finally:
        server.kill()
        server.wait()
    lines = checked.stdout.split("\n")[:-1]
    if checked.returncode != 0:
        return checked.stderr.strip().split("\n")[0]
    wrong = [line for line in lines if "\t" in line and not line.endswith("\tOK")]
    if wrong:
        return wrong[0]
    counter, rows, last = (int(line) for line in lines[-3:])
    if counter != last or rows != 3 * last:
        return f"a transaction is there in part: counter {counter}, {rows} rows, last {last}"
    return "ok" if last >= promised else f"lost {promised - last} acknowledged transactions of {promised}"


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
