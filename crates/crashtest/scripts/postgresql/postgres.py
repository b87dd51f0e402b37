#!/usr/bin/env python3
"""PostgreSQL under `leyden crashtest`: a setup, a work, and a check of one state.

    postgres.py setup [SETTING=VALUE ...]
    postgres.py work TRANSACTIONS
    postgres.py check

The check is a server. It lets PostgreSQL recover in single-user mode, reads every page (their checksums are compared), and looks
for all acknowledged transactions. The programs are found in PATH, or below /usr/lib/postgresql.
"""

import glob
import os
import re
import shutil
import subprocess
import sys
import typing

DATA = os.path.join(os.environ.get("LEYDEN_MOUNT", ""), "pg")
TMP = os.environ.get("LEYDEN_TMP", "/tmp")
SETTINGS = {
    "listen_addresses": "''", "unix_socket_directories": f"'{TMP}/sockets'", "shared_buffers": "'16MB'",
    "min_wal_size": "'32MB'", "max_wal_size": "'32MB'", "wal_recycle": "off", "autovacuum": "off",
    "bgwriter_delay": "'10ms'", "max_connections": "10", "logging_collector": "off",
}


def program(name):
    found = shutil.which(name) or next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"))[::-1]), None)
    return found or sys.exit(f"{name} is not installed")


def as_postgres(*command):
    return ["setpriv", "--reuid", "postgres", "--regid", "postgres", "--clear-groups", *command]


def run(*command, **more):
    done = subprocess.run(as_postgres(*command), capture_output=True, text=True, cwd=TMP, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.stderr or done.stdout}")


def sockets():
    os.chmod(TMP, 0o755)
    os.makedirs(f"{TMP}/sockets", exist_ok=True)
    shutil.chown(f"{TMP}/sockets", "postgres")


def setup(*settings):
    print("version", subprocess.run([program("postgres"), "--version"], capture_output=True, text=True).stdout.strip())
    sockets()
    os.makedirs(DATA)
    shutil.chown(DATA, "postgres")
    os.chmod(DATA, 0o700)
    run(program("initdb"), "-D", DATA, "-k", "--no-sync", "-A", "trust", "--wal-segsize=1")
    with open(f"{DATA}/postgresql.conf", "a") as conf:
        conf.writelines(f"{key} = {value}\n" for key, value in SETTINGS.items())
        conf.writelines(f"{setting.replace('=', ' = ', 1)}\n" for setting in settings)
    start()
    sql("create table t(number int primary key); "
        "create table wide(id int primary key, n int, pad text); "
        "insert into wide select i, 0, repeat('x', 700) from generate_series(1, 1500) i")
    run(program("pg_ctl"), "-D", DATA, "-m", "fast", "-w", "stop")


def start():
    run(program("pg_ctl"), "-D", DATA, "-l", f"{TMP}/sockets/log", "-w", "start")


def sql(text):
    run(program("psql"), "-h", f"{TMP}/sockets", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-qAtc", text)


def work(transactions):
    sockets()
    start()
    client = subprocess.Popen(
        as_postgres(program("psql"), "-h", f"{TMP}/sockets", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-qAt"),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd=TMP)
    with open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
        for number in range(1, int(transactions) + 1):
            checkpoint = "checkpoint;" if number % 150 == 0 else ""
            client.stdin.write(
                f"begin; insert into t values({number}); update wide set n = {number} where id in "
                f"(select 1 + (random() * 1499)::int from generate_series(1, 6)); commit; {checkpoint} "
                f"select {number};\n")
            client.stdin.flush()
            if client.stdout.readline().strip() != str(number):
                sys.exit("psql has ended")
            acks.write(f"ack {number}\n")
    os._exit(0)


def verdict():
    with open(os.environ["LEYDEN_ACKS"]) as acks:
        promised = len(acks.read().split())
    try:
        os.unlink(f"{DATA}/postmaster.pid")  # of a process that went with the power
    except OSError:
        pass
    queries = (f"select count(*) as found from t where number <= {promised}\n"
               "select sum(n), count(pad) from wide\n"
               "set enable_seqscan = off\n"
               "select count(*) from wide where id > 0\n"
               "select count(*) from t where number > 0\n")
    # -F: what it writes while it recovers is thrown away with the state, and need not be synced.
    command = as_postgres(program("postgres"), "--single", "-F", "-D", DATA, "postgres")
    done = subprocess.run(command, input=queries, capture_output=True, text=True, cwd="/", timeout=60)
    said = done.stdout + done.stderr
    wrong = re.search(r"(ERROR|FATAL|PANIC|WARNING:  page).*", said)
    if wrong or done.returncode != 0:
        return wrong.group(0) if wrong else f"postgres ends with {done.returncode}: {said[-300:]!r}"
    found = int(re.search(r'found = "(\d+)"', said).group(1))
    return "ok" if found >= promised else f"lost {promised - found} acknowledged transactions of {promised}"


def check():
    for _ in sys.stdin:
        print(verdict(), flush=True)


if __name__ == "__main__":
    commands: dict[str, typing.Callable[..., None]] = {"setup": setup, "work": work, "check": check}
    commands[sys.argv[1]](*sys.argv[2:])
