"""Work that is promised something, and can say whether it was kept."""

import contextlib
import os
import pwd
import shutil
import signal
import sqlite3
import subprocess
import sys
import threading
import time

from stack import Broken, Power, need, said


class Files:
    """Files that are written, synced and renamed; and noise that is not synced."""

    @staticmethod
    def need():
        pass

    def __init__(self, mount, folder, rng):
        self.mount, self.rng = mount, rng
        self.kept, self.next, self.stopped = {}, 0, False

    def prepare(self):
        pass

    def promised(self):
        return len(self.kept)

    def run(self, begun):
        self.stopped = False
        try:
            with contextlib.closing(Power(self.mount)) as power:
                while not self.stopped:
                    # A number is never used again: what was written and not heard of may be there, too.
                    self.next += 1
                    self.write(self.next, power)
                    begun.set()
        except OSError:
            pass  # the power is gone
        begun.set()

    def write(self, number, power):
        name = os.path.join(self.mount, f"kept{number % 200}")
        size = self.rng.choice([1, 100, 4096, 5000, 40_000])
        text = f"{number} ".encode() * (size // len(f"{number} ") + 1)
        file = os.open(name + ".new", os.O_CREAT | os.O_TRUNC | os.O_WRONLY)
        try:
            os.write(file, text)
            os.fsync(file)
        finally:
            os.close(file)
        os.rename(name + ".new", name)
        # The rename is promised when its folder has been synced.
        folder = os.open(self.mount, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
        if power.is_on():
            self.kept[number % 200] = (number, len(text))
        noise = os.path.join(self.mount, f"noise{number % 7}")
        with open(noise, "wb") as out:
            out.write(os.urandom(50_000))

    def stop(self):
        self.stopped = True

    def check(self):
        for slot, (number, length) in self.kept.items():
            path = os.path.join(self.mount, f"kept{slot}")
            try:
                text = open(path, "rb").read()
            except OSError as error:
                raise Broken(f"{path}: {error}") from error
            first = int(text.split()[0]) if text.split() else -1
            # A newer one may be there, whose promise had not been heard yet.
            if first < number or (first == number and len(text) != length):
                raise Broken(f"{path} holds {first}, {number} was synced")
        return len(self.kept)


class Fio:
    """fio writes a file with checksums and syncs it; a second job is at work when the power goes."""

    @staticmethod
    def need():
        need("fio")

    def __init__(self, mount, folder, rng):
        self.mount, self.rounds, self.noise, self.stopped = mount, 0, None, False

    def prepare(self):
        pass

    def promised(self):
        return self.rounds

    def job(self, name, seed, *more):
        return [
            "fio", "--name=verify", f"--filename={os.path.join(self.mount, name)}", "--size=6m", "--bs=4k",
            "--rw=randwrite", "--ioengine=psync", "--verify=crc32c", "--verify_fatal=1", f"--randseed={seed}", *more,
        ]

    def run(self, begun):
        self.stopped = False
        job = self.job("kept", self.rounds + 1, "--do_verify=0", "--end_fsync=1")
        done = subprocess.run(job, capture_output=True, text=True, cwd="/tmp")
        if done.returncode == 0:
            self.rounds += 1
        if not self.stopped:
            # In one process: a forked job would outlive the one that is killed.
            job = self.job("noise", 7, "--do_verify=0", "--time_based", "--runtime=60", "--fsync=8", "--thread")
            self.noise = subprocess.Popen(job, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, cwd="/tmp")
            begun.set()
            self.noise.wait()
        begun.set()

    def stop(self):
        self.stopped = True
        if self.noise and self.noise.poll() is None:
            self.noise.kill()

    def check(self):
        done = subprocess.run(self.job("kept", self.rounds, "--verify_only"), capture_output=True, text=True,
                              cwd="/tmp")
        if done.returncode != 0:
            raise Broken(f"fio verify: {(done.stdout + done.stderr)[-500:]}")
        return self.rounds


class Sqlite:
    """Transactions of SQLite; each is told of when it has been committed."""

    mode, synchronous = "WAL", "FULL"

    @staticmethod
    def need():
        pass

    def __init__(self, mount, folder, rng):
        self.path = os.path.join(mount, "data.db")
        self.child, self.acknowledged = None, 0

    def prepare(self):
        db = sqlite3.connect(self.path, isolation_level=None)
        db.execute(f"pragma journal_mode={self.mode}")
        db.execute("create table t(id integer primary key, twin integer, pad blob)")
        db.close()
        said("sync", "-f", os.path.dirname(self.path))

    def promised(self):
        return self.acknowledged

    def run(self, begun):
        code = f"""
import sqlite3, sys, os
sys.path.insert(0, {os.path.dirname(os.path.abspath(__file__))!r})
from stack import Power
power = Power({os.path.dirname(self.path)!r})
db = sqlite3.connect({self.path!r}, isolation_level=None, timeout=30)
db.execute("pragma journal_mode={self.mode}"); db.execute("pragma synchronous={self.synchronous}")
n = {self.acknowledged}
while True:
    n += 1
    db.execute("begin")
    for i in range(3):
        db.execute("insert or replace into t values(?,?,?)", (n * 3 + i, n, os.urandom(300)))
    db.execute("commit")
    if not power.is_on():
        break
    sys.stdout.write(f"{{n}}\\n"); sys.stdout.flush()
"""
        self.child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE,
                                      stderr=subprocess.DEVNULL, text=True)
        for line in self.child.stdout:
            self.acknowledged = int(line)
            begun.set()
        self.child.wait()
        begun.set()

    def stop(self):
        if self.child and self.child.poll() is None:
            self.child.kill()

    def check(self):
        try:
            db = sqlite3.connect(self.path, isolation_level=None)
            verdict = db.execute("pragma integrity_check").fetchone()[0]
            if verdict != "ok":
                raise Broken(f"integrity_check: {verdict}")
            rows = dict(db.execute("select twin, count(*) from t group by twin"))
            db.close()
        except sqlite3.Error as error:
            raise Broken(f"sqlite: {error}") from error
        for number in range(1, self.acknowledged + 1):
            if rows.get(number) != 3:
                raise Broken(f"transaction {number} of {self.acknowledged} has {rows.get(number, 0)} rows of 3")
        if any(count != 3 for count in rows.values()):
            raise Broken("a transaction is there in part")
        # What was committed and not heard of stays, and is written again.
        return self.acknowledged


class SqliteDelete(Sqlite):
    mode, synchronous = "DELETE", "EXTRA"


class SqliteOff(Sqlite):
    mode, synchronous = "WAL", "OFF"


class Postgres:
    """Transactions of PostgreSQL by four clients; each is told of when it has been committed."""

    settings: dict[str, str] = {}
    # Checkpoints one after the other: pages are on their way to the drive most of the time.
    checkpoints = False

    @staticmethod
    def need():
        need("postgres", "initdb", "psql", "pgbench", "runuser")
        try:
            pwd.getpwnam("postgres")
        except KeyError:
            from stack import skip
            skip("there is no user postgres")

    def __init__(self, mount, folder, rng):
        self.mount, self.folder = mount, folder
        self.data = os.path.join(mount, "pg")
        self.sockets = os.path.join(folder, "pgsock")
        self.server, self.clients, self.acknowledged, self.stopped = None, [], {}, False

    def as_postgres(self, *command):
        return ["runuser", "-u", "postgres", "--", *command]

    def prepare(self):
        for path in (self.data, self.sockets):
            os.makedirs(path, exist_ok=True)
            shutil.chown(path, "postgres")
        os.chmod(self.data, 0o700)
        said(*self.as_postgres(shutil.which("initdb"), "-D", self.data, "-k", "--no-sync"))
        settings = {
            "listen_addresses": "''", "unix_socket_directories": f"'{self.sockets}'", "shared_buffers": "16MB",
            "min_wal_size": "32MB", "max_wal_size": "32MB", "checkpoint_timeout": "30s", "bgwriter_delay": "10ms",
            "wal_recycle": "off", "autovacuum": "off", **self.settings,
        }
        with open(os.path.join(self.data, "postgresql.conf"), "a") as conf:
            conf.writelines(f"{key} = {value}\n" for key, value in settings.items())
        self.start()
        self.sql("create table t(client int, number int, primary key(client, number))")
        self.sql("create table wide(id int primary key, n int, pad text)")
        self.sql("insert into wide select i, 0, repeat('x', 700) from generate_series(1, 4000) i")
        self.sql("checkpoint")
        self.halt()
        said("sync", "-f", self.mount)

    def start(self):
        log = open(os.path.join(self.folder, "postgres.log"), "ab")
        self.server = subprocess.Popen(self.as_postgres(shutil.which("postgres"), "-D", self.data),
                                       stdout=log, stderr=log, start_new_session=True)
        until = time.monotonic() + 60
        while True:
            ready = said(*self.as_postgres("psql", "-h", self.sockets, "-d", "postgres", "-Atc", "select 1"),
                         check=False)
            if ready.returncode == 0:
                return
            if self.server.poll() is not None or time.monotonic() > until:
                tail = open(os.path.join(self.folder, "postgres.log")).read()[-1500:]
                raise Broken(f"PostgreSQL does not start: {tail}")
            time.sleep(0.05)

    def halt(self, how=signal.SIGINT):
        if not self.server:
            return
        pid_file = os.path.join(self.data, "postmaster.pid")
        try:
            pid = int(open(pid_file).readline())
            os.kill(pid, how)
        except (OSError, ValueError):
            pass
        if how == signal.SIGKILL:
            said("pkill", "-KILL", "-u", "postgres", check=False)
        try:
            self.server.wait(30)
        except subprocess.TimeoutExpired:
            said("pkill", "-KILL", "-u", "postgres", check=False)
            self.server.wait(30)
        self.server = None

    def sql(self, text, check=True):
        done = said(*self.as_postgres("psql", "-h", self.sockets, "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-Atc",
                                      text), check=False)
        if check and done.returncode != 0:
            raise Broken(f"PostgreSQL: {done.stderr.strip()[-500:]}")
        return done.stdout

    def promised(self):
        return sum(self.acknowledged.values())

    def run(self, begun):
        self.stopped = False
        if not self.server:
            self.start()

        def client(number):
            process = subprocess.Popen(
                self.as_postgres("psql", "-h", self.sockets, "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-At"),
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
            self.clients.append(process)
            try:
                while not self.stopped:
                    n = self.acknowledged.get(number, 0) + 1
                    process.stdin.write(
                        f"begin; insert into t values({number},{n}) on conflict do nothing;"
                        f"update wide set n=n+1 where id in (select 1+(random()*3999)::int from generate_series(1,8));"
                        f"commit; select {n};\n")
                    process.stdin.flush()
                    for line in process.stdout:
                        if line.strip() == str(n):
                            self.acknowledged[number] = n
                            begun.set()
                            break
                    else:
                        return
            except OSError:
                pass  # the power is gone

        def checkpoints():
            while not self.stopped:
                if said(*self.as_postgres("psql", "-h", self.sockets, "-d", "postgres", "-Atc", "checkpoint"),
                        check=False).returncode != 0:
                    return

        threads = [threading.Thread(target=client, args=(number,), daemon=True) for number in range(4)]
        if self.checkpoints:
            threads.append(threading.Thread(target=checkpoints, daemon=True))
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        begun.set()

    def stop(self):
        self.stopped = True
        self.halt(signal.SIGKILL)
        for process in self.clients:
            if process.poll() is None:
                process.kill()
        self.clients = []

    def check(self):
        pid_file = os.path.join(self.data, "postmaster.pid")
        if os.path.exists(pid_file):
            os.unlink(pid_file)  # as after a power failure, its process is gone
        self.start()
        for number, last in self.acknowledged.items():
            count = self.sql(f"select count(*) from t where client={number} and number<={last}").strip()
            if int(count) != last:
                raise Broken(f"client {number} was told of {last} transactions, {count} are there")
        # All pages are read, and their checksums compared.
        self.sql("set enable_indexscan=off; select sum(n) from wide")
        self.sql("set enable_seqscan=off; select count(*) from wide where id > 0")
        self.halt()
        return self.promised()


class PostgresFsyncOff(Postgres):
    settings = {"fsync": "off"}


class PostgresTorn(Postgres):
    settings = {"full_page_writes": "off"}
    checkpoints = True


class PostgresBusy(Postgres):
    checkpoints = True


class Mixed:
    """Files, fio and SQLite at once."""

    @staticmethod
    def need():
        Fio.need()

    def __init__(self, mount, folder, rng):
        self.parts = [part(mount, folder, rng) for part in (Files, Fio, Sqlite)]

    def prepare(self):
        for part in self.parts:
            part.prepare()

    def promised(self):
        return sum(part.promised() for part in self.parts)

    def run(self, begun):
        begins = [threading.Event() for _ in self.parts]
        threads = [threading.Thread(target=part.run, args=(begin,), daemon=True)
                   for part, begin in zip(self.parts, begins)]
        for thread in threads:
            thread.start()
        for begin in begins:
            begin.wait()
        begun.set()
        for thread in threads:
            thread.join()

    def stop(self):
        for part in self.parts:
            part.stop()

    def check(self):
        return sum(part.check() for part in self.parts)


WORKS = {
    "mixed": Mixed,
    "files": Files,
    "fio": Fio,
    "sqlite-wal": Sqlite,
    "sqlite-delete": SqliteDelete,
    "sqlite-off": SqliteOff,
    "postgres": Postgres,
    "postgres-fsync-off": PostgresFsyncOff,
    "postgres-torn": PostgresTorn,
    "postgres-busy": PostgresBusy,
}
