#!/usr/bin/env python3
"""Redis under `leyden crashtest` (Debian: redis-server): a setup, a work, and a check that stays.

    redis.py setup
    redis.py work WRITES [OPTION ...]    options of redis-server, like --appendfsync everysec
    redis.py check                       a line on standard input for each state, a line of answer

Each write sets a key and counts; it is acknowledged when Redis has answered.
"""

import os
import socket
import subprocess
import sys
import time

DATA = os.path.join(os.environ.get("LEYDEN_MOUNT", ""), "redis")
TMP = os.environ.get("LEYDEN_TMP", "/tmp")
SOCKET = f"{TMP}/redis.sock"
SERVER = ["redis-server", "--port", "0", "--unixsocket", SOCKET, "--dir", DATA, "--appendonly", "yes", "--save", "",
          "--logfile", f"{TMP}/redis.log", "--auto-aof-rewrite-min-size", "20kb"]


class Client:
    def __init__(self):
        self.socket = socket.socket(socket.AF_UNIX)
        self.socket.connect(SOCKET)
        self.lines = self.socket.makefile("rb")

    def ask(self, *words):
        words = [word if isinstance(word, bytes) else str(word).encode() for word in words]
        self.socket.sendall(b"*%d\r\n" % len(words) + b"".join(b"$%d\r\n%s\r\n" % (len(w), w) for w in words))
        return self.answer()

    def answer(self):
        line = self.lines.readline().rstrip()
        kind, rest = line[:1], line[1:]
        if kind == b"*":
            return [self.answer() for _ in range(int(rest))]
        if kind == b"$":
            return None if rest == b"-1" else self.lines.read(int(rest) + 2)[:-2]
        if kind in (b"-", b""):
            raise OSError(rest.decode() or "the server is gone")
        return rest


def start(*options):
    if os.path.exists(SOCKET):
        os.unlink(SOCKET)
    server = subprocess.Popen([*SERVER, *options], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    while server.poll() is None:
        try:
            client = Client()
            client.ask("GET", "count")
            return server, client
        except OSError:
            time.sleep(0.01)  # it is starting, or loading
    with open(f"{TMP}/redis.log", errors="replace") as log:
        said = [line.split("#", 1)[-1].strip() for line in log if "#" in line]
    return None, (said or ["it says nothing"])[-1]


def setup():
    print("version", subprocess.run(["redis-server", "--version"], capture_output=True, text=True).stdout.strip())
    os.makedirs(DATA)


def work(writes, *options):
    server, client = start(*(options or ("--appendfsync", "always")))
    if server is None:
        sys.exit(client)
    with open(os.environ["LEYDEN_ACK"], "w", buffering=1) as acks:
        for number in range(1, int(writes) + 1):
            client.ask("MSET", f"key{number}", f"{number} " * 40, "count", number)
            acks.write(f"ack {number}\n")
    client.ask("BGREWRITEAOF")
    time.sleep(0.3)
    os._exit(0)


def verdict():
    with open(os.environ["LEYDEN_ACKS"]) as acks:
        promised = len(acks.read().split())
    server, client = start("--appendfsync", "no")
    if server is None:
        return f"redis-server does not start: {client}"
    try:
        last = int(client.ask("GET", "count") or 0)
        for number in range(1, last + 1):
            if client.ask("GET", f"key{number}") != (f"{number} " * 40).encode():
                return f"key{number} is wrong"
    finally:
        server.kill()
        server.wait()
    return "ok" if last >= promised else f"lost {promised - last} acknowledged writes of {promised}"


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
