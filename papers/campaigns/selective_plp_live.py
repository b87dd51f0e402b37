#!/usr/bin/env python3
"""Selective-PLP measured live: RocksDB's own db_bench on modelled zoned drives, beside the same in virtual time.

    papers/campaigns/selective_plp_live.py --build build --libraries target/release --realtime
    papers/campaigns/selective_plp_live.py --build build --libraries target/release --puts 1_000_000 --repeats 1 --json live.json

Figures 10 to 13 and the paper's six claims, with the drive's regions `none`, `selective` and `full` in turn. All times are the
drive's, which runs at `--speed` of real time in fillseq, and at `--overwrite-speed` in overwrite, where the host is needed less.
`--realtime` gives db_bench, and with it the drive, a real-time priority (`chrt`, as root): other work of the machine then
hardly disturbs. Half an hour as it stands, most of it waiting.

In virtual time each run is replayed as the plugin has recorded that very run (`trace:FILE`): what RocksDB's threads asked of
their files, and their processor time between. What the plugin takes of a put is measured by region, on drives without latency.
Prints Markdown. Exits with 77 if this machine cannot do it.
"""

import argparse
import json
import os
import random
import re
import shutil
import socket
import statistics
import subprocess
import sys
import tempfile
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "campaigns"))

from commands import lacks, run

BUFFERS = [64, 128, 256, 512]
REGIONS = [8, 16, 32, 64, 128]
DUMPED = [32, 64, 128, 256]
MODES = ["none", "selective", "full"]
# Of the paper, section 5.1; its compression is not told, and tables as large as memtables are what it counts on.
PAPER = ["--key_size=100", "--value_size=800", "--write_buffer_size=8388608", "--target_file_size_base=8388608",
         "--compression_type=none"]
PAIR = 900
# What db_bench says if it is not told.
DELAYED = 8 << 20
# Microseconds of the drive's time that a put is made to take at least, to see what a slow host makes of the claims.
SLOW_PUTS = [25.6, 51.2]
# Log appends that share a write where a recording is replayed (`workload.recorded.puts_per_append`).
AT_ONCE = 4
REALTIME = ["chrt", "--rr", "10"]


class Bench:
    """Runs on fresh drives."""

    def __init__(self, args, folder):
        self.args, self.folder, self.image = args, folder, os.path.join(folder, "drive.leyden")
        self.leyden = os.path.join(args.libraries, "leyden")
        self.first = REALTIME if args.realtime else []
        self.environment = {**os.environ, "LD_LIBRARY_PATH": f"{args.build}:{args.libraries}"}

    def speed(self, benchmark):
        return self.args.overwrite_speed if benchmark == "overwrite" else self.args.speed

    def settings(self, region, buffer, protected, dump="balanced"):
        settings = [f"device.buffer.region={region}", f"device.buffer.size={buffer} MiB", f"device.power.dump={dump}"]
        if region == "selective":
            settings.append(f"device.buffer.protected_size={protected} MiB")
        return settings

    def create(self, *cell):
        settings = self.settings(*cell)
        if cell[0] != "none":
            # For single records of the log; they are in the protected region. Without protection there are none.
            settings.append("device.zoned.zrwa.count=4")
        # A power cut leaves the socket.
        for path in [self.image, self.door()]:
            if os.path.exists(path):
                os.remove(path)
        run(*self.first, self.leyden, "image", "create", "--drive", "devices/zns",
            *(part for setting in settings for part in ("--set", setting)), self.image)
        run(*self.first, f"{self.args.build}/leyden-fs", "mkfs", self.image, env=self.environment)

    def door(self):
        return self.image + ".sock"

    def command(self, benchmarks, puts, speed, options="", more=()):
        # RocksDB slows writers down by the host's clock: db_bench's 8 MiB a second of the drive's time.
        rate = round(DELAYED * speed) if speed > 0 else DELAYED
        return [*self.first, "env", "LD_PRELOAD=libleyden_rocksdb.so", "db_bench",
                f"--fs_uri=leyden:{self.image}?speed:{speed}{options}", "--db=/bench", f"--benchmarks={benchmarks}",
                f"--num={puts}", f"--seed={self.args.seed}", f"--delayed_write_rate={rate}", *PAPER, *more]

    def bench(self, benchmarks, puts, speed, options="", more=()):
        """Puts a second of the host's time by benchmark, and by tenths of the last one."""
        command = self.command(benchmarks, puts, speed, options, [f"--stats_interval={puts // 10}", *more])
        done = subprocess.run(command, env=self.environment, capture_output=True, text=True, check=False)
        text = done.stdout + done.stderr
        found = re.findall(r"^(\w+) +: +[\d.]+ micros/op (\d+) ops/sec", text, re.M)
        if done.returncode or [name for name, _ in found] != benchmarks.split(","):
            sys.exit(f"{' '.join(command)}: {done.returncode}\n{text[-2000:]}")
        tenths = re.findall(r"ops and \(([\d.]+),[\d.]+\) ops/second", text)[-10:]
        return {name: float(rate) for name, rate in found}, [float(rate) for rate in tenths]

    def live(self, benchmark, cell, trace):
        """Puts a second of the drive's time, and by tenths. Overwrite has a store to write over."""
        self.create(*cell)
        speed = self.speed(benchmark)
        benchmarks = "fillseq,overwrite" if benchmark == "overwrite" else benchmark
        rates, tenths = self.bench(benchmarks, self.args.puts, speed, f",trace:{trace}")
        return rates[benchmark] / speed, [rate / speed for rate in tenths]

    def untimed(self, region, trace):
        """Microseconds of the host that a put of fillseq takes with a drive without latency."""
        self.create(region, 512, 32)
        rates, _ = self.bench("fillseq", self.args.puts, 0, f",trace:{trace}")
        return 1e6 / rates["fillseq"]

    def slow(self, region, put_us):
        """Puts a second of fillseq, when the host makes one in so many microseconds of the drive's time at most."""
        self.create(region, 128, 32)
        speed = self.args.speed
        limit = f"--benchmark_write_rate_limit={PAIR / put_us * 1e6 * speed:.0f}"
        rates, _ = self.bench("fillseq", self.args.puts // 2, speed, more=[limit])
        return rates["fillseq"] / speed

    def begun(self, benchmarks, puts, speed, *cell):
        """db_bench on a new drive that can be asked and cut."""
        self.create(*cell)
        command = self.command(benchmarks, puts, speed, ",control:on,at_cut:die")
        bench = subprocess.Popen(command, env=self.environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        while self.status() is None:
            if bench.poll() is not None:
                sys.exit(f"{' '.join(command)}: {bench.returncode}")
            time.sleep(0.01)
        return bench

    def cuts(self, region, buffer, protected, dump, rng):
        """What some power cuts at random moments of fillseq took, each of a new run."""
        reports = []
        for _ in range(self.args.cuts):
            bench = self.begun("fillseq", 10_000_000, self.args.speed, region, buffer, protected, dump)
            # Several memtables at least: before that there is nothing to protect.
            time.sleep(rng.uniform(1, 3) / self.args.speed)
            reports.append(json.loads(run(self.leyden, "cut", self.image, "--json")))
            bench.wait()
        return reports

    def peak(self, region, buffer):
        """The most capacitance that a power cut would have needed at any of many moments, in microfarads: of both
        benchmarks, for capacitors must be enough for both."""
        speed = self.args.overwrite_speed
        bench = self.begun("fillseq,overwrite", self.args.puts, speed, region, buffer, 32)
        most = 0
        while bench.poll() is None:
            time.sleep(0.02 / speed)
            status = self.status() or {}
            most = max(most, status.get("if_cut_now", {}).get("capacitance_nf", 0))
        if most == 0:
            sys.exit(f"{self.image}: the drive does not tell what a power cut would need")
        return most / 1000

    def status(self):
        """What the drive says of itself; `None` if it is not open yet, or not any more."""
        try:
            with socket.socket(socket.AF_UNIX) as door:
                door.connect(self.door())
                door.sendall(b'{"ask":"status"}\n')
                return json.loads(door.makefile().readline() or "null")
        except OSError:
            return None

    def virtual(self, benchmark, cell, put_us, trace):
        """A live run again in virtual time, of the calls that were recorded in it: the record of the run."""
        skip = self.args.puts if benchmark == "overwrite" else 0
        settings = [*self.settings(*cell), f"workload.recorded.path={trace}",
                    f"workload.recorded.skip={skip}", f"workload.recorded.puts={self.args.puts}",
                    f"workload.recorded.put_time={put_us * 1000:.0f} ns",
                    f"workload.recorded.puts_per_append={AT_ONCE}",
                    f"workload.recorded.work={self.speed(benchmark) * 100:g} %"]
        return json.loads(run(self.leyden, "--quiet", "run", f"selective-plp/{benchmark}-recorded", "--json",
                              *(part for setting in settings for part in ("--set", setting))))


def cpu_us_of_put(trace, of):
    """Processor time of a put in a recording: of the first benchmark, or of the second one's half."""
    logs, puts = set(), []
    with open(trace) as file:
        for line in file:
            fields = line.split()
            if len(fields) == 8 and fields[3] == "c" and fields[7].endswith(".log"):
                logs.add(fields[4])
            elif len(fields) == 7 and fields[3] == "a" and fields[4] in logs:
                puts.append((int(fields[5]), int(fields[2])))
    begins = sum(count for count, _ in puts) / 2 if of == "overwrite" else 0
    at, of_puts, ns = 0, 0, 0
    for count, spent in puts:
        if at >= begins:
            of_puts, ns = of_puts + count, ns + spent
        at += count
    return ns / of_puts / 1000


class Progress:
    """What is being done, on a terminal."""

    def __init__(self, count):
        self.count, self.done = count, 0

    def step(self, what):
        self.done += 1
        if sys.stderr.isatty():
            print(f"{what}, {self.done} of {self.count}    ", end="\r", file=sys.stderr)


def cells_of():
    cells = [(benchmark, mode, buffer, 32) for buffer in BUFFERS for benchmark in ["fillseq", "overwrite"]
             for mode in MODES]
    return cells + [("fillseq", "selective", region + 32, region) for region in REGIONS if region != 32]


def measure(args, bench):
    """All that is measured live. Repeats are interleaved: what the machine does meanwhile meets all cells alike."""
    kept = {"puts": args.puts, "speed": args.speed, "overwrite_speed": args.overwrite_speed, "seed": args.seed,
            "live": {}, "tenths": {}, "untimed_us": {}, "slow": {}, "peak_uf": {}, "cuts": {}}
    cells = cells_of()
    progress = Progress(args.repeats * (len(cells) + len(MODES) * (1 + len(SLOW_PUTS)) + 4) + 2 * len(DUMPED))

    def note(of, key, value):
        kept[of].setdefault(key, []).append(value)

    for repeat in range(args.repeats):
        for cell in cells:
            progress.step("live")
            rate, tenths = bench.live(cell[0], cell[1:], bench.args.traces(key_of(cell), repeat))
            note("live", key_of(cell), rate)
            kept["tenths"].setdefault(key_of(cell), tenths)
        for mode in MODES:
            progress.step("untimed")
            note("untimed_us", mode, bench.untimed(mode, bench.args.traces(f"untimed/{mode}", repeat)))
            for put_us in SLOW_PUTS:
                progress.step("slowed")
                note("slow", f"{mode}/{put_us:g}", bench.slow(mode, put_us))
        for mode in ["selective", "full"]:
            for buffer in [64, 512]:
                progress.step("capacitance")
                note("peak_uf", f"{mode}/{buffer}", bench.peak(mode, buffer))
    rng = random.Random(args.seed)
    for region in DUMPED:
        for dump in ["in_place", "balanced"]:
            progress.step("power cuts")
            cuts = bench.cuts("selective", region + 32, region, dump, rng)
            kept["cuts"][f"{region}/{dump}"] = {
                "dump_ms": [cut["dump_ns"] / 1e6 for cut in cuts],
                "dumped_mib": [cut["dumped_bytes"] / 2**20 for cut in cuts]}
    return kept


def in_virtual_time(args, bench, kept):
    """The first live run of each cell again: puts a second, and the most capacitance that was needed."""
    # Of the untimed runs the least: what disturbs them makes them longer.
    plugin_us = {mode: min(us - cpu_us_of_put(args.traces(f"untimed/{mode}", repeat), "fillseq")
                           for repeat, us in enumerate(kept["untimed_us"][mode])) for mode in MODES}
    kept.update({"plugin_us": plugin_us, "put_us": {}, "virtual": {}, "virtual_peak_uf": {}, "worst_uf": {}})
    command_us = 0

    def again(key, benchmark, cell):
        trace = args.traces(key, 0)
        us = (cpu_us_of_put(trace, benchmark) + plugin_us[cell[0]]) * bench.speed(benchmark)
        if cell[0] != "none":
            # Live each put is a command; replayed, some share one.
            us += command_us * (1 - 1 / AT_ONCE)
        return us, bench.virtual(benchmark, cell, us, trace)

    _, record = again("fillseq/full/512/32", "fillseq", ("full", 512, 32))
    command_us = record["host"]["write_latency_us"]["p50"]
    for benchmark, *cell in cells_of():
        key = key_of([benchmark, *cell])
        kept["put_us"][key], record = again(key, benchmark, cell)
        kept["virtual"][key] = [record["zones"]["store"]["puts_per_s"]]
        drive = f"{cell[0]}/{cell[1]}"
        if drive in kept["peak_uf"] and cell[2] == 32:
            peak = record["power"]["capacitance_uf"]
            kept["virtual_peak_uf"][drive] = [max(peak, *kept["virtual_peak_uf"].get(drive, [0]))]
            kept["worst_uf"][drive] = [record["power"]["worst"]["capacitance_uf"]]


def key_of(cell):
    return "/".join(map(str, cell))


def spread(values):
    """The mean, and half of the way from the least to the most."""
    mean = statistics.mean(values)
    return f"{mean:,.0f} ±{(max(values) - min(values)) / 2 / max(mean, 1e-9):.1%}"


def ratio(of, to):
    return statistics.mean(of) / statistics.mean(to)


def tables(kept):
    live, virtual = kept["live"], kept["virtual"]
    for benchmark, figure in [("fillseq", 10), ("overwrite", 11)]:
        print(f"Figure {figure}, {benchmark}: puts a second live, over virtual time\n")
        print("| buffer | None | Selective | Full | live / virtual: None | Selective | Full |")
        print("|---|---|---|---|---|---|---|")
        for buffer in BUFFERS:
            keys = [f"{benchmark}/{mode}/{buffer}/32" for mode in MODES]
            print(f"| {buffer} MiB | {' | '.join(spread(live[key]) for key in keys)} | "
                  f"{' | '.join(f'{ratio(live[key], virtual[key]):.3f}' for key in keys)} |")
        print()
    print("overwrite by tenths, 128 MiB, puts a second\n")
    for mode in MODES:
        print(f"- {mode}: {', '.join(f'{rate:,.0f}' for rate in kept['tenths'][f'overwrite/{mode}/128/32'])}")
    print("\nFigure 12, fillseq, Selective: puts a second by region, 32 MiB beside it\n")
    print("| region | live | in virtual time |\n|---|---|---|")
    for region in REGIONS:
        key = f"fillseq/selective/{region + 32}/{region}"
        print(f"| {region} MiB | {spread(live[key])} | {statistics.mean(virtual[key]):,.0f} |")
    print("\nfillseq with a slower host, 128 MiB: puts a second\n")
    print("| a put takes at least | None | Selective | Full | Selective / None | Selective / Full |")
    print("|---|---|---|---|---|---|")
    for put_us in SLOW_PUTS:
        none, selective, full = (kept["slow"][f"{mode}/{put_us:g}"] for mode in MODES)
        print(f"| {put_us:g} us | {spread(none)} | {spread(selective)} | {spread(full)} | "
              f"{ratio(selective, none):.3f} | {ratio(selective, full):.3f} |")
    print("\nThe most capacitance that a cut would have needed in fillseq and overwrite, uF\n")
    print("| | live | in virtual time | the drive at worst |\n|---|---|---|---|")
    for key, peaks in kept["peak_uf"].items():
        print(f"| {key} MiB | {spread(peaks)} | {kept['virtual_peak_uf'][key][0]:,.0f} | {kept['worst_uf'][key][0]:,.0f} |")
    print("\nFigure 13: power cuts at random moments of fillseq, Selective, 32 MiB beside the region\n")
    print("| region | in place, ms | balanced, ms | cut by | MiB dumped |\n|---|---|---|---|---|")
    for region in DUMPED:
        of = {dump: kept["cuts"][f"{region}/{dump}"] for dump in ["in_place", "balanced"]}
        ms = {dump: cuts["dump_ms"] for dump, cuts in of.items()}
        print(f"| {region} MiB | {spread(ms['in_place'])} | {spread(ms['balanced'])} | "
              f"{1 - ratio(ms['balanced'], ms['in_place']):.3f} | {statistics.mean(of['balanced']['dumped_mib']):.1f} |")
    print()


def claims(kept):
    """What was measured of each claim, live and in virtual time."""
    def over_buffers(of, benchmark, to, fold):
        keys = [(f"{benchmark}/selective/{b}/32", f"{benchmark}/{to}/{b}/32") for b in BUFFERS]
        return fold([ratio(of[key], of[other]) for key, other in keys])

    def both(measured):
        return [[measured(kept["live"])], [measured(kept["virtual"])]]

    def needed(of, key):
        return [ratio(of[key.format("selective", b)], of[key.format("full", b)]) for b in [512, 64]]

    shares = [1 - ratio(kept["cuts"][f"{region}/balanced"]["dump_ms"], kept["cuts"][f"{region}/in_place"]["dump_ms"])
              for region in DUMPED]
    return [
        ("fillseq_vs_none", (1.03, 1.60), *both(lambda of: over_buffers(of, "fillseq", "none", statistics.mean))),
        ("fillseq_vs_full", (0.93, 1.10), *both(lambda of: over_buffers(of, "fillseq", "full", statistics.mean))),
        ("overwrite_vs_none", (0.99, 1.40), *both(lambda of: over_buffers(of, "overwrite", "none", max))),
        ("capacitance_vs_full", (0.05, 0.52), needed(kept["peak_uf"], "{}/{}"),
         needed(kept["virtual_peak_uf"], "{}/{}")),
        ("saturates_at_32mib", (0.95, 1.06),
         *both(lambda of: ratio(of["fillseq/selective/160/128"], of["fillseq/selective/64/32"]))),
        ("balanced_flush_latency_cut", (0.85, 0.995), [statistics.mean(shares)], None),
    ]


def table_of_claims(kept):
    kept["claim"] = {}
    print("| claim | accepted | live | in virtual time | live / virtual | |\n|---|---|---|---|---|---|")
    for name, (least, most), live, virtual in claims(kept):
        verdict = "holds" if all(least <= value <= most for value in live) else "differs"
        kept["claim"][name] = {"live": live, "verdict": verdict}
        shown = " to ".join(f"{value:.3f}" for value in live)
        beside = "- | -"
        if virtual:
            kept["claim"][name]["virtual"] = virtual
            shares = " to ".join(f"{of / to:.3f}" for of, to in zip(live, virtual))
            beside = f"{' to '.join(f'{value:.3f}' for value in virtual)} | {shares}"
        print(f"| {name} | {least} to {most} | {shown} | {beside} | {verdict} |")


def traces_in(folder):
    """Where the recording of a run is."""
    def path(key, repeat):
        return os.path.join(folder, f"{key.replace('/', '-')}.{repeat}.files")
    return path


def parsed():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="where the plugin was built")
    parser.add_argument("--libraries", default="target/release", help="where leyden and libleyden.so are")
    parser.add_argument("--puts", type=int, default=300_000, help="of a benchmark (the paper: 3,000,000)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cuts", type=int, default=3, help="power cuts of each cell of figure 13")
    parser.add_argument("--speed", type=float, default=1, help="the drive's time over real time")
    parser.add_argument("--overwrite-speed", type=float, default=2, help="the same in overwrite")
    parser.add_argument("--realtime", action="store_true", help="run db_bench, and the drive in it, with chrt, as root")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="a file for all that was measured; the runs' recordings go beside it")
    parser.add_argument("--again", help="such a file: only the virtual time and the tables are made anew")
    args = parser.parse_args()
    args.build, args.libraries = os.path.abspath(args.build), os.path.abspath(args.libraries)
    needed = [(f"{args.build}/libleyden_rocksdb.so", "build integrations/rocksdb"),
              (f"{args.libraries}/leyden", "build leyden"), (shutil.which("db_bench"), "rocksdb-tools")]
    if args.realtime:
        needed.append((shutil.which("chrt"), "util-linux"))
    for path, what in needed:
        if not path or not os.path.exists(path):
            lacks(f"{path or what} is missing: {what}")
    if args.realtime and subprocess.run([*REALTIME, "true"], capture_output=True, check=False).returncode:
        lacks("no real-time priority here: run it as root, or without --realtime")
    return args


def main():
    args = parsed()
    # In memory, if there is a place: the host's disk is no part of the drive.
    place = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="leyden-live-", dir=place) as folder:
        kept_in = args.again or args.json
        traces = os.path.splitext(kept_in)[0] + ".traces" if kept_in else folder
        os.makedirs(traces, exist_ok=True)
        args.traces = traces_in(os.path.abspath(traces))
        bench = Bench(args, folder)
        if args.again:
            with open(args.again) as file:
                kept = json.load(file)
            for key in ["puts", "speed", "overwrite_speed", "seed"]:
                setattr(args, key, kept[key])
        else:
            kept = measure(args, bench)
        keep(kept_in, kept)
        in_virtual_time(args, bench, kept)
    tables(kept)
    table_of_claims(kept)
    keep(kept_in, kept)
    return 0


def keep(path, kept):
    if path:
        with open(path, "w") as out:
            json.dump(kept, out, indent=1)


if __name__ == "__main__":
    sys.exit(main())
