#!/usr/bin/env python3
"""Selective-PLP measured live: RocksDB's own db_bench on modelled zoned drives, beside the same in virtual time.

    campaigns/selective_plp_live.py --build build --libraries target/release
    campaigns/selective_plp_live.py --build build --libraries target/release --puts 200_000 --repeats 5 --json live.json

Figures 10 to 13 and five of the paper's six claims, with the drive's regions `none`, `selective` and `full` in turn. Drives run
at `--speed` of real time, and all times are the drive's: so a slow host is made faster, and a busy one disturbs less.
Twenty-five minutes as it stands, most of them waiting.

In virtual time the same work is replayed as the plugin has recorded it (`trace:FILE`): what RocksDB's threads asked of
their files, and their processor time between. The host's share of a put is what a put takes live with 512 MiB of
protected buffer, where nothing waits.
Prints Markdown. Exits with 77 if this machine cannot do it.
"""

import argparse
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

from commands import lacks, run

BUFFERS = [64, 128, 256, 512]
REGIONS = [8, 16, 32, 64, 128]
DUMPED = [32, 64, 128, 256]
MODES = ["none", "selective", "full"]
# Of the paper, section 5.1; its compression is not told, and tables as large as memtables are what it counts on.
PAPER = ["--key_size=100", "--value_size=800", "--write_buffer_size=8388608", "--target_file_size_base=8388608",
         "--compression_type=none"]


# What db_bench says if it is not told.
DELAYED = 8 << 20


class Bench:
    """Runs on fresh drives."""

    def __init__(self, args, folder):
        self.args, self.image = args, os.path.join(folder, "drive.leyden")
        self.leyden = os.path.join(args.libraries, "leyden")
        self.environment = {**os.environ, "LD_LIBRARY_PATH": f"{args.build}:{args.libraries}"}

    def settings(self, region, buffer, protected, dump):
        settings = [f"device.buffer.region={region}", f"device.buffer.size={buffer} MiB", f"device.power.dump={dump}"]
        if region == "selective":
            settings.append(f"device.buffer.protected_size={protected} MiB")
        return settings

    def create(self, *cell):
        settings = self.settings(*cell)
        if cell[0] != "none":
            # For single records of the log; they are in the protected region. Without protection there are none.
            settings.append("device.zoned.zrwa.count=4")
        if os.path.exists(self.image):
            os.remove(self.image)
        run(self.leyden, "image", "create", "--drive", "devices/zns",
            *(part for setting in settings for part in ("--set", setting)), self.image)
        run(f"{self.args.build}/leyden-fs", "mkfs", self.image, env=self.environment)

    def command(self, benchmarks, puts, options, speed=None):
        speed = self.args.speed if speed is None else speed
        uri = f"leyden:{self.image}?speed:{speed}{options}"
        # RocksDB slows writers down by the host's clock: db_bench's 8 MiB a second of the drive's time.
        rate = round(DELAYED * speed) if speed > 0 else DELAYED
        return ["db_bench", f"--fs_uri={uri}", "--db=/bench", f"--benchmarks={benchmarks}", f"--num={puts}",
                f"--seed={self.args.seed}", f"--delayed_write_rate={rate}", *PAPER]

    def preloaded(self):
        return {**self.environment, "LD_PRELOAD": "libleyden_rocksdb.so"}

    def live(self, benchmarks, region, buffer, protected=32):
        """Puts a second of the drive's time, by benchmark."""
        self.create(region, buffer, protected, "balanced")
        text = run(*self.command(benchmarks, self.args.puts, ""), env=self.preloaded())
        found = re.findall(r"^(\w+) +: +[\d.]+ micros/op (\d+) ops/sec", text, re.M)
        if [name for name, _ in found] != benchmarks.split(","):
            sys.exit(f"db_bench did not tell of {benchmarks}:\n{text[-2000:]}")
        return {name: float(rate) / self.args.speed for name, rate in found}

    def cuts(self, region, buffer, protected, dump, rng):
        """What some power cuts at random moments of fillseq took, each of a new run."""
        reports = []
        for _ in range(self.args.cuts):
            self.create(region, buffer, protected, dump)
            command = self.command("fillseq", 10_000_000, ",control:on,at_cut:die")
            bench = subprocess.Popen(command, env=self.preloaded(), stdout=subprocess.DEVNULL,
                                     stderr=subprocess.DEVNULL)
            # Several memtables at least: before that there is nothing to protect.
            time.sleep(rng.uniform(1, 3) / self.args.speed)
            reports.append(json.loads(run(self.leyden, "cut", self.image, "--json")))
            bench.wait()
        return reports

    def recorded(self):
        """What RocksDB asks of its files in one such run, as the plugin writes it down. No latency: processor time only."""
        self.create("selective", 128, 32, "balanced")
        trace = os.path.join(os.path.dirname(self.image), "recorded.files")
        command = self.command("fillseq,overwrite", self.args.puts, f",trace:{trace}", speed=0)
        run(*command, env=self.preloaded())
        with open(trace) as file:
            text = file.read()
        os.remove(trace)
        return text

    def virtual(self, benchmark, put_us, trace, region, buffer, protected=32):
        """The same in virtual time, of the recorded calls in the file `trace`."""
        skip = self.args.puts if benchmark == "overwrite" else 0
        settings = [*self.settings(region, buffer, protected, "balanced"), f"workload.recorded.path={trace}",
                    f"workload.recorded.skip={skip}", f"workload.recorded.puts={self.args.puts}",
                    f"workload.recorded.put_time={put_us * 1000:.0f} ns",
                    f"workload.recorded.work={self.args.speed * 100:g} %"]
        text = run(self.leyden, "--quiet", "run", f"selective-plp/{benchmark}-recorded", "--json",
                   *(part for setting in settings for part in ("--set", setting)))
        return json.loads(text)["zones"]["store"]["puts_per_s"]


def spread(values):
    """The mean, and half of the way from the least to the most."""
    mean = statistics.mean(values)
    return f"{mean:,.0f} ±{(max(values) - min(values)) / 2 / mean:.0%}"


def ratio(of, to):
    return statistics.mean(of) / statistics.mean(to)


def measure(args, bench):
    """Live runs, interleaved: what the machine does meanwhile meets all cells alike."""
    cells = [("fillseq,overwrite", mode, buffer, 32) for buffer in BUFFERS for mode in MODES]
    cells += [("fillseq", "selective", region + 32, region) for region in REGIONS if region != 32]
    rates = {}
    for repeat in range(args.repeats):
        for number, (benchmarks, *cell) in enumerate(cells):
            if sys.stderr.isatty():
                print(f"live, repeat {repeat + 1}, run {number + 1} of {len(cells)}", end="\r", file=sys.stderr)
            for name, rate in bench.live(benchmarks, *cell).items():
                rates.setdefault((name, *cell), []).append(rate)
    return rates


def in_virtual_time(bench, rates, recorded, folder):
    """Every live cell again. The host's share of a put is that of live runs that wait for nothing: the largest buffer,
    all of it protected."""
    trace = os.path.join(folder, "live.files")
    with open(trace, "w") as file:
        file.write(recorded)
    virtual = {}
    for benchmark in ["fillseq", "overwrite"]:
        put_us = 1e6 / statistics.mean(rates[benchmark, "full", BUFFERS[-1], 32])
        print(f"A put of {benchmark} takes the host {put_us:.1f} us of the drive's time.\n")
        for cell in rates:
            if cell[0] == benchmark:
                virtual[cell] = bench.virtual(benchmark, put_us, trace, *cell[1:])
    return virtual


def tables(rates, virtual):
    for benchmark, figure in [("fillseq", 10), ("overwrite", 11)]:
        print(f"Figure {figure}, {benchmark}: puts a second; ratios live (virtual time)\n")
        print("| buffer | None | Selective | Full | Selective / None | Selective / Full |\n|---|---|---|---|---|---|")
        for buffer in BUFFERS:
            of = {mode: rates[benchmark, mode, buffer, 32] for mode in MODES}
            also = {mode: [virtual[benchmark, mode, buffer, 32]] for mode in MODES}
            ratios = [f"{ratio(of['selective'], of[to]):.3f} ({ratio(also['selective'], also[to]):.3f})"
                      for to in ["none", "full"]]
            print(f"| {buffer} MiB | {' | '.join(spread(of[mode]) for mode in MODES)} | {' | '.join(ratios)} |")
        print()
    print("Figure 12, fillseq, Selective: puts a second by region, 32 MiB beside it\n")
    print("| region | live | in virtual time |\n|---|---|---|")
    for region in REGIONS:
        cell = ("fillseq", "selective", region + 32, region)
        print(f"| {region} MiB | {spread(rates[cell])} | {virtual[cell]:,.0f} |")
    print()


def dumps(args, bench):
    """Figure 13, and the energy of the regions of figure 10: reports of power cuts by cell."""
    rng = random.Random(args.seed)
    found = {}
    for region in DUMPED:
        for dump in ["in_place", "balanced"]:
            found[region, dump] = bench.cuts("selective", region + 32, region, dump, rng)
    return found


def table_of_dumps(found):
    """Returns the share of a dump's time that balanced flush saves."""
    print("Figure 13: power cuts at random moments of fillseq, Selective, 32 MiB beside the region\n")
    print("| region | in place, ms | balanced, ms | cut by | MiB dumped |\n|---|---|---|---|---|")
    shares = []
    for region in DUMPED:
        ms = {dump: [cut["dump_ns"] / 1e6 for cut in found[region, dump]] for dump in ["in_place", "balanced"]}
        shares.append(1 - ratio(ms["balanced"], ms["in_place"]))
        dumped = statistics.mean(cut["dumped_bytes"] for cut in found[region, "balanced"]) / 2**20
        print(f"| {region} MiB | {spread(ms['in_place'])} | {spread(ms['balanced'])} | {shares[-1]:.3f} | "
              f"{dumped:.1f} |")
    print()
    return statistics.mean(shares)


def energies(args, bench):
    """The most that a power cut took of the capacitors."""
    rng = random.Random(args.seed + 1)
    return {(mode, buffer): max(cut["energy_nj"] for cut in bench.cuts(mode, buffer, 32, "balanced", rng))
            for mode in ["selective", "full"] for buffer in [64, 512]}


def claims(rates, virtual, dump_share, energy):
    def over_buffers(benchmark, to, fold, of):
        return fold([ratio(of(benchmark, "selective", b, 32), of(benchmark, to, b, 32)) for b in BUFFERS])

    def live(*cell):
        return rates[cell]

    def also(*cell):
        return [virtual[cell]]

    def wide(of):
        return ratio(of("fillseq", "selective", 160, 128), of("fillseq", "selective", 64, 32))

    rows = [
        ("selective_plp.fillseq_vs_none", (1.03, 1.60),
         *(over_buffers("fillseq", "none", statistics.mean, of) for of in [live, also])),
        ("selective_plp.fillseq_vs_full", (0.93, 1.10),
         *(over_buffers("fillseq", "full", statistics.mean, of) for of in [live, also])),
        ("selective_plp.overwrite_vs_none", (0.99, 1.40),
         *(over_buffers("overwrite", "none", max, of) for of in [live, also])),
        ("selective_plp.saturates_at_32mib", (0.95, 1.06), wide(live), wide(also)),
        ("selective_plp.balanced_flush_latency_cut", (0.85, 0.995), dump_share, None),
    ]
    print("| claim | accepted | live | in virtual time | live / virtual | |\n|---|---|---|---|---|---|")
    for name, (least, most), measured, of_virtual in rows:
        verdict = "holds" if least <= measured <= most else "differs"
        beside = f"{of_virtual:.3f} | {measured / of_virtual:.3f}" if of_virtual else "- | -"
        print(f"| {name} | {least} to {most} | {measured:.3f} | {beside} | {verdict} |")
    # Capacitance is for the worst moment, and some random ones are no measure of it.
    for buffer in [512, 64]:
        drawn = energy["selective", buffer] / energy["full", buffer]
        print(f"\nMost energy that a cut drew, Selective over Full, {buffer} MiB: {drawn:.3f}")


def cell_of(text):
    return tuple(int(part) if part.isdigit() else part for part in text.split())


def keyed(values, key):
    return {key(cell): value for cell, value in values.items()}


def text_of(cell):
    return " ".join(map(str, cell))


def keep(args, recorded, rates, found, energy):
    """What was measured, before anything is made of it."""
    if args.json:
        kept = {"puts": args.puts, "speed": args.speed, "seed": args.seed, "recorded": recorded,
                **{of: keyed(values, text_of) for of, values in [("live", rates), ("cuts", found), ("energy", energy)]}}
        with open(args.json, "w") as out:
            json.dump(kept, out, indent=1)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--build", default="build", help="where the plugin was built")
    parser.add_argument("--libraries", default="target/release", help="where leyden and libleyden.so are")
    parser.add_argument("--puts", type=int, default=60_000, help="of a run (the paper: 3,000,000)")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--cuts", type=int, default=3, help="power cuts of each cell of figure 13")
    parser.add_argument("--speed", type=float, default=0.2, help="the drive's time over real time")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--json", help="a file for all that was measured live")
    parser.add_argument("--again", help="such a file: only the virtual time and the tables are made anew")
    args = parser.parse_args()
    args.build, args.libraries = os.path.abspath(args.build), os.path.abspath(args.libraries)
    for path, what in [(f"{args.build}/libleyden_rocksdb.so", "build integrations/rocksdb"),
                       (f"{args.libraries}/leyden", "build leyden-cli"), (shutil.which("db_bench"), "rocksdb-tools")]:
        if not path or not os.path.exists(path):
            lacks(f"{path or 'db_bench'} is missing: {what}")
    with tempfile.TemporaryDirectory(prefix="leyden-live-") as folder:
        bench = Bench(args, folder)
        if args.again:
            with open(args.again) as file:
                kept = json.load(file)
            args.puts, args.speed, args.seed = kept["puts"], kept["speed"], kept["seed"]
            rates, found, energy = (keyed(kept[of], cell_of) for of in ["live", "cuts", "energy"])
            recorded = kept["recorded"]
        else:
            recorded, rates = bench.recorded(), measure(args, bench)
            found, energy = dumps(args, bench), energies(args, bench)
            keep(args, recorded, rates, found, energy)
        virtual = in_virtual_time(bench, rates, recorded, folder)
    tables(rates, virtual)
    claims(rates, virtual, table_of_dumps(found), energy)
    return 0


if __name__ == "__main__":
    sys.exit(main())
