#!/usr/bin/env python3
"""PostgreSQL and its replica under `leyden crashtest --files --drives 2`, each on a drive of its own.

    replica.py setup
    replica.py work TRANSACTIONS [SETTING=VALUE ...]    settings of both members, like fsync=off
    replica.py check                                    a line on standard input for each state, a line of answer

A commit waits until the replica has applied it, and is acknowledged then. After a power cut each member recovers without the
other: the replica is promoted, as if the primary were gone. Both must have what was acknowledged.
"""

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time

from postgres import as_postgres, program, run

MOUNT = os.environ.get("LEYDEN_MOUNT", "")
TMP = os.environ.get("LEYDEN_TMP", "/tmp")
PRIMARY, REPLICA = 1, 2
PATIENCE_S = 20
SETTINGS = {
    "listen_addresses": "'127.0.0.1'", "unix_socket_directories": "''", "shared_buffers": "'16MB'", "max_connections": "10",
    "min_wal_size": "'32MB'", "max_wal_size": "'32MB'", "wal_recycle": "off", "autovacuum": "off", "max_wal_senders": "4",
    "synchronous_commit": "remote_apply", "wal_retrieve_retry_interval": "'100ms'", "logging_collector": "off",
    "log_line_prefix": "''",
}  # fmt: skip


def data(member):
    return f"{MOUNT}/{member}/pg"


def tool(name):
    """A program of the same version as the server."""
    beside = os.path.join(os.path.dirname(os.path.realpath(program("postgres"))), name)
    return beside if os.path.exists(beside) else program(name)


def address(member):
    return ["-h", "127.0.0.1", "-p", str(5500 + member)]


def psql(member):
    return as_postgres(program("psql"), *address(member), "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-qAt")


def query(member, text):
    return subprocess.run([*psql(member), "-c", text], capture_output=True, text=True, cwd="/")


def ask(member, text):
    """The answer; None if there is none."""
    done = query(member, text)
    return done.stdout.strip() if done.returncode == 0 else None


def until(is_so, process):
    """Waits until it is so, the member ends, or patience does."""
    last = time.monotonic() + PATIENCE_S
    while not is_so() and process.poll() is None and time.monotonic() < last:
        time.sleep(0.02)
    return is_so()


@contextlib.contextmanager
def members(which, *settings):
    """Members that have been started; they may still recover."""
    processes = {}
    try:
        for member in which:
            options = [word for setting in (f"port={5500 + member}", *settings) for word in ("-c", setting)]
            with contextlib.suppress(OSError):
                os.unlink(f"{data(member)}/postmaster.pid")  # of a process that went with the power
            with open(f"{TMP}/member{member}.log", "w") as log:
                command = as_postgres(program("postgres"), "-D", data(member), *options)
                processes[member] = subprocess.Popen(command, stdout=log, stderr=log, stdin=subprocess.DEVNULL, cwd="/")
        yield processes
    finally:
        for process in processes.values():
            process.send_signal(signal.SIGQUIT)  # no checkpoint
        for process in processes.values():
            process.wait()


def last_words(member):
    with open(f"{TMP}/member{member}.log", errors="replace") as log:
        said = log.read().splitlines()
    wrong = [line for line in said if "PANIC" in line or ("FATAL" in line and "starting up" not in line)]
    return (wrong or said or ["it says nothing"])[-1][:300]


def setup():
    print("version", subprocess.run([program("postgres"), "--version"], capture_output=True, text=True).stdout.strip())
    os.chmod(TMP, 0o755)
    for member in (PRIMARY, REPLICA):
        os.makedirs(data(member))
        shutil.chown(data(member), "postgres")
        os.chmod(data(member), 0o700)
    run(tool("initdb"), "-D", data(PRIMARY), "-k", "--no-sync", "-A", "trust", "--wal-segsize=1")
    with open(f"{data(PRIMARY)}/postgresql.conf", "a") as conf:
        conf.writelines(f"{key} = {value}\n" for key, value in SETTINGS.items())
    with members([PRIMARY]) as started:
        if not until(lambda: ask(PRIMARY, "select 1"), started[PRIMARY]):
            sys.exit(f"the primary does not start: {last_words(PRIMARY)}")
        made = ask(PRIMARY, "create table t(number int primary key, pad text); select pg_create_physical_replication_slot('m2')")
        if made is None:
            sys.exit(f"the table cannot be made: {last_words(PRIMARY)}")
        run(tool("pg_basebackup"), *address(PRIMARY), "-D", data(REPLICA), "-R", "-S", "m2", "-c", "fast", "--no-sync")
    with open(f"{data(REPLICA)}/postgresql.auto.conf", "a") as conf:
        conf.write("primary_conninfo = 'host=127.0.0.1 port=5501 user=postgres application_name=m2'\n")
    with open(f"{data(PRIMARY)}/postgresql.auto.conf", "a") as conf:
        conf.write("synchronous_standby_names = 'm2'\n")


def work(transactions, *settings):
    with members([PRIMARY, REPLICA], *settings) as started:
        streams = "select 1 from pg_stat_replication where sync_state = 'sync'"
        if not until(lambda: ask(PRIMARY, streams), started[PRIMARY]):
            sys.exit(f"the replica does not follow: {last_words(REPLICA)}")
        client = subprocess.Popen(psql(PRIMARY), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, cwd="/")
        with open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
            for number in range(1, int(transactions) + 1):
                checkpoint = "checkpoint;" if number % 25 == 0 else ""
                client.stdin.write(f"insert into t values({number}, repeat('x', 700)); {checkpoint} select {number};\n")
                client.stdin.flush()
                if client.stdout.readline().strip() != str(number):
                    sys.exit(f"psql has ended: {last_words(PRIMARY)}")
                acks.write(f"ack {number}\n")


def found(member, process, promised):
    """The acknowledged transactions that a member has by itself, and what to say of it; None if it is broken."""
    if member == REPLICA and until(lambda: ask(member, "select 1"), process):
        ask(member, f"select pg_promote(true, {PATIENCE_S})")
    if not until(lambda: ask(member, "select 1 where not pg_is_in_recovery()"), process):
        state = "does not start" if process.poll() is not None else "does not answer"
        return None, f"member {member} {state}: {last_words(member)}"
    count = query(member, f"select count(*), count(pad) from t where number <= {promised}")
    if count.returncode != 0:
        return None, f"member {member} cannot be read: {count.stderr.strip().splitlines()[-1]}"
    own = int(count.stdout.split("|")[0])
    return own, f"member {member} has {own}"


def verdict():
    with open(os.environ["LEYDEN_ACKS"]) as acks:
        promised = len(acks.read().split())
    # What they write while they recover is thrown away with the state, and need not be synced.
    with members([PRIMARY, REPLICA], "fsync=off", "primary_conninfo=") as started:
        each = [found(member, process, promised) for member, process in started.items()]
    said = ", ".join(text for _, text in each)
    least = min((own for own, _ in each if own is not None), default=promised)
    if least < promised:
        return f"lost {promised - least} acknowledged transactions of {promised}: {said}"
    return "ok" if all(own is not None for own, _ in each) else f"a member is broken: {said}"


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
