#!/usr/bin/env python3
"""Clients that misbehave, beside an honest one: what does a served drive let them take?

    campaigns/clients.py [--leyden FILE] [--hostile N] [--random N] [--seconds S] [--memory MIB] [--seed N] [KIND...]

Of each kind N hostile clients stand beside one honest client (4 KiB at random, reads and writes in turn, one at a time).
A second server has an honest client alone. The two clients work in turns of a tenth of a second, so other work on the machine
slows both. Printed is the first one's speed over the second one's (median of three rounds), and the memory that the server took
for the hostile clients. Then N clients do at random whatever a socket allows, while two loops cut and restore the power.

Exits with 1 if the honest client fails or falls below 0.8 of its speed, if the memory of all clients exceeds --memory by more
than an eighth, or if the image is damaged or the server keeps threads of clients that are gone.
"""

import argparse
import atexit
import os
import random
import socket
import statistics
import struct
import subprocess
import sys
import tempfile
import threading
import time

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
READ, WRITE, FLUSH, TRIM, ZEROES = 0, 1, 3, 4, 6
MAGIC = 0x25609513


def exactly(conn: socket.socket, length: int) -> bytes:
    data = b""
    while len(data) < length:
        piece = conn.recv(length - len(data))
        if not piece:
            raise ConnectionError("the server has hung up")
        data += piece
    return data


def request(kind: int, offset: int, length: int, flags: int = 0, cookie: int = 7) -> bytes:
    return struct.pack(">IHHQQI", MAGIC, flags, kind, cookie, offset, length)


class Client:
    """A client that has negotiated, with simple replies."""

    def __init__(self, path: str) -> None:
        self.conn = socket.socket(socket.AF_UNIX)
        self.conn.settimeout(30)
        self.conn.connect(path)
        if exactly(self.conn, 18)[:8] != b"NBDMAGIC":
            raise ConnectionError("no greeting")
        self.conn.sendall(struct.pack(">I", 3) + b"IHAVEOPT" + struct.pack(">II", 1, 0))
        self.bytes, _ = struct.unpack(">QH", exactly(self.conn, 10))

    def ask(self, kind: int, offset: int, length: int, data: bytes = b"") -> bytes:
        self.conn.sendall(request(kind, offset, length) + data)
        _, error, _ = struct.unpack(">IIQ", exactly(self.conn, 16))
        if error:
            raise OSError(error, os.strerror(error))
        return exactly(self.conn, length) if kind == READ else b""


class Server:
    def __init__(self, leyden: str, folder: str, memory_mib: int, clients: int, name: str = "disk") -> None:
        self.leyden = leyden
        self.image = os.path.join(folder, f"{name}.leyden")
        self.socket = os.path.join(folder, f"{name}.sock")
        create = [leyden, "image", "create", self.image, "--size", "256 MiB", "--set", "device.buffer.region=none"]
        subprocess.run(create, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        serve = [leyden, "serve", self.image, "--nbd", f"unix:{self.socket}", "--latency", "off", "--log", "off"]
        limits = ["--memory", f"{memory_mib} MiB", "--connections", str(clients + 8)]
        self.process = subprocess.Popen([*serve, *limits], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        atexit.register(self.process.kill)
        while not os.path.exists(self.socket):
            if self.process.poll() is not None:
                raise SystemExit("the server did not start")
            time.sleep(0.05)

    def status(self, name: str) -> int:
        """A figure of /proc/PID/status: kibibytes, or a number."""
        with open(f"/proc/{self.process.pid}/status") as lines:
            return next(int(line.split()[1]) for line in lines if line.startswith(name + ":"))

    def end(self) -> bool:
        """Whether it ends by itself, and its image is whole."""
        self.process.terminate()
        ended = self.process.wait(60) in (0, 130)
        checked = subprocess.run([self.leyden, "image", "check", self.image], stdout=subprocess.DEVNULL)
        return ended and checked.returncode == 0


class Honest:
    """One that asks for 4 KiB after the other, and looks at what it gets."""

    def __init__(self, path: str, seed: int) -> None:
        self.client = Client(path)
        self.random = random.Random(seed)
        self.kept: dict[int, bytes] = {}

    def work(self, seconds: float) -> tuple[int, float]:
        """How many requests in how many seconds."""
        count, begin = 0, time.monotonic()
        while (now := time.monotonic()) < begin + seconds:
            unit = self.random.randrange(2_000)
            if unit in self.kept and count % 2:
                if self.client.ask(READ, unit * 4096, 4096) != self.kept[unit] * 4096:
                    raise SystemExit(f"unit {unit} is not what was written")
            else:
                byte = bytes([self.random.randrange(256)])
                self.client.ask(WRITE, unit * 4096, 4096, byte * 4096)
                self.kept[unit] = byte
            count += 1
        return count, now - begin


def compared(one: Honest, alone: Honest, seconds: float) -> float:
    """The speed of one over that of the other, in turns."""
    done, spent = [0, 0], [0.0, 0.0]
    while spent[0] < seconds:
        for at, honest in enumerate((one, alone)):
            count, took = honest.work(0.1)
            done[at] += count
            spent[at] += took
    return (done[0] / spent[0]) / (done[1] / spent[1])


def silent(path: str) -> list[socket.socket]:
    conn = socket.socket(socket.AF_UNIX)
    conn.settimeout(5)
    conn.connect(path)
    return [conn]


def half(path: str) -> list[socket.socket]:
    conns = silent(path)
    exactly(conns[0], 18)
    conns[0].sendall(b"\0\0\0\x03IHA")
    return conns


def idle(path: str) -> list[socket.socket]:
    return [Client(path).conn]


def greedy(path: str) -> list[socket.socket]:
    conn = Client(path).conn
    for cookie in range(3):
        conn.sendall(request(READ, 0, 32 << 20, cookie=cookie))
    return [conn]


def announce(path: str) -> list[socket.socket]:
    conn = Client(path).conn
    conn.sendall(request(WRITE, 0, 32 << 20) + bytes(100))
    return [conn]


def unread(path: str) -> list[socket.socket]:
    """Small reads without an end, none of which is taken."""
    conn = Client(path).conn
    conn.setblocking(False)
    try:
        while True:
            conn.sendall(request(READ, 0, 4096) * 64)
    except BlockingIOError:
        return [conn]


KINDS = {it.__name__: it for it in (silent, half, idle, greedy, announce, unread)}


def stand(kind: str, path: str, count: int) -> list[socket.socket]:
    conns = []
    for _ in range(count):
        try:
            conns += KINDS[kind](path)
        except OSError:  # it was sent away, which is one of the answers
            pass
    return conns


def let_in(path: str) -> int:
    """1 if one client more is served, within 30 s."""
    end = time.monotonic() + 30
    while time.monotonic() < end:
        try:
            late = Client(path)
            late.ask(READ, 0, 4096)
            late.conn.close()
            return 1
        except OSError:
            time.sleep(0.2)
    return 0


def hostile(args: argparse.Namespace, kind: str) -> bool:
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        server = Server(args.leyden, folder, args.memory, args.hostile)
        beside = Server(args.leyden, folder, args.memory, args.hostile, "alone")
        honest, alone = Honest(server.socket, args.seed), Honest(beside.socket, args.seed)
        compared(honest, alone, args.seconds / 2)
        before, ratios, most, came_late = server.status("VmRSS"), [], 0, 0
        for _ in range(3):
            conns = stand(kind, server.socket, args.hostile)
            ratios.append(compared(honest, alone, args.seconds))
            most = max(most, server.status("VmRSS") - before)
            came_late += let_in(server.socket)
            for conn in conns:
                conn.close()
            time.sleep(0.5)
        ratio, taken = statistics.median(ratios), most / 1024
        honest.client.conn.close()
        alone.client.conn.close()
        whole = server.end() and beside.end()
        good = whole and ratio >= 0.8 and taken <= args.memory * 9 / 8 and came_late == 3
        spread = " ".join(f"{it:.2f}" for it in ratios)
        verdict = "" if good else "  FAILED"
        print(f"{kind:9} {args.hostile} clients: honest at {ratio:.2f} ({spread}), {taken:.0f} MiB, {came_late} of 3 let in later{verdict}",
              flush=True)
        return good


def wild(path: str, seed: int, end: float) -> None:
    """Whatever a socket allows."""
    chance = random.Random(seed)
    while time.monotonic() < end:
        try:
            if chance.random() < 0.2:
                conn = silent(path)[0]
                conn.sendall(chance.randbytes(chance.randrange(1, 300)))
                conn.close()
                continue
            client = Client(path)
            client.conn.settimeout(2)
            for _ in range(chance.randrange(1, 40)):
                kind = chance.choice([READ, WRITE, FLUSH, TRIM, ZEROES, chance.randrange(65_536)])
                length = chance.choice([0, 1, 512, 4096, 65_536, chance.randrange(1 << 20), chance.randrange(1 << 32)])
                offset = chance.choice([chance.randrange(max(client.bytes, 1)), chance.randrange(1 << 64)]) & ~511
                data = b""
                if kind == WRITE:
                    data = bytes(min(length, 1 << 20) if chance.random() < 0.9 else chance.randrange(100))
                client.conn.sendall(request(kind, offset, length, chance.choice([0, 0, 1, chance.randrange(65_536)])) + data)
                if chance.random() < 0.7:
                    client.conn.recv(chance.randrange(1, 1 << 16))
            client.conn.close()
        except OSError:
            continue


def switch(server: Server, end: float) -> None:
    while time.monotonic() < end:
        for what in ("cut", "restore"):
            subprocess.run([server.leyden, what, server.image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        time.sleep(0.3)


def at_random(args: argparse.Namespace) -> bool:
    with tempfile.TemporaryDirectory(dir=args.folder) as folder:
        server = Server(args.leyden, folder, args.memory, args.random)
        Client(server.socket).ask(FLUSH, 0, 0)
        time.sleep(0.5)
        before, threads = server.status("VmRSS"), server.status("Threads")
        end = time.monotonic() + args.seconds * 10
        all_ = [threading.Thread(target=wild, args=(server.socket, args.seed + n, end)) for n in range(args.random)]
        all_ += [threading.Thread(target=switch, args=(server, end)) for _ in range(2)]
        for one in all_:
            one.start()
        for one in all_:
            one.join()
        taken = (server.status("VmHWM") - before) / 1024
        subprocess.run([server.leyden, "restore", server.image], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(100):
            if server.status("Threads") <= threads:
                break
            time.sleep(0.5)
        left = server.status("Threads") - threads
        honest = Honest(server.socket, args.seed)
        honest.work(1)
        honest.client.conn.close()
        whole = server.end()
        good = whole and left <= 0 and taken <= args.memory * 9 / 8
        print(f"{'random':9} {args.random} clients: {taken:.0f} MiB at most, {max(left, 0)} threads left, image "
              f"{'whole' if whole else 'NOT whole'}{'' if good else '  FAILED'}", flush=True)
        return good


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--leyden", default=os.path.join(ROOT, "target", "release", "leyden"))
    parser.add_argument("--hostile", type=int, default=256)
    parser.add_argument("--random", type=int, default=200)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--memory", type=int, default=256, help="MiB")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--folder", help="where images are made; the system's temporary folder if not given")
    parser.add_argument("kinds", nargs="*", metavar="KIND", help="all: " + ", ".join([*KINDS, "random"]))
    args = parser.parse_args()
    chosen = args.kinds or [*KINDS, "random"]
    unknown = [it for it in chosen if it not in KINDS and it != "random"]
    if unknown:
        parser.error(f"there is no kind {unknown[0]}: {', '.join([*KINDS, 'random'])}")
    results = [at_random(args) if kind == "random" else hostile(args, kind) for kind in chosen]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()
