#!/usr/bin/env python3
"""Storage engines under power cuts at the level of files: a table of what survives, by what the files promise.

    campaigns/engines.py --leyden target/release/leyden --states 10000 --record engines.json [ENGINE...]
    campaigns/engines.py --show docs/evidence/engines.json

Each setting of each engine is recorded once for each of the rules xfs, ext4, btrfs and posix, and its check tries states of that
recording. Prints two tables of Markdown: the results, and what the first state that broke had lost. What is not installed is
named and left out; `--record` keeps everything as JSON after each result, and goes on with a record that is there. Takes /dev/fuse, and no root but
for PostgreSQL.
"""

import argparse
import json
import os
import re
import subprocess
import sys
from dataclasses import asdict, dataclass, field

from commands import needs_crashtest, open_folder

SCRIPTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "crates", "crashtest", "scripts")
RULES = ["xfs", "ext4", "btrfs", "posix"]


@dataclass
class Setting:
    engine: str
    name: str
    setup: str
    work: str
    check: str
    build: str = ""
    # What the engine's documentation says of this setting.
    promise: str = "durable"
    stays: bool = True
    # A state takes a tenth of a second or more: the time is bounded, not the states.
    slow: bool = False


def sqlite(journal: str, synchronous: str, promise: str) -> Setting:
    script = f"{SCRIPTS}/sqlite/sqlite.py"
    return Setting("SQLite", f"{journal}, {synchronous}", f"{script} setup {journal} {synchronous}",
                   f"{script} work {journal} {synchronous} 200", f"exec {script} check {journal}", promise=promise)


def lmdb(mode: str, promise: str) -> Setting:
    script = f"{SCRIPTS}/lmdb/lightning.py"
    return Setting("LMDB", mode, f"{script} setup", f"{script} work {mode} 200", f"exec {script} check", promise=promise)


def redis(policy: str, promise: str) -> Setting:
    script = f"{SCRIPTS}/redis/redis.py"
    return Setting("Redis", f"appendfsync {policy}", f"{script} setup", f"{script} work 100 --appendfsync {policy}",
                   f"exec {script} check", promise=promise)


def postgresql(name: str, settings: str, promise: str) -> Setting:
    script = f"{SCRIPTS}/postgresql/postgres.py"
    return Setting("PostgreSQL", name, f"{script} setup {settings}", f"{script} work 200", f"exec {script} check",
                   promise=promise, slow=True)


def mariadb(name: str, options: str, promise: str) -> Setting:
    script = f"{SCRIPTS}/mariadb/mariadb.py"
    return Setting("MariaDB", name, f"{script} setup", f"{script} work 60 {options}", f"exec {script} check",
                   promise=promise, slow=True)


def git(option: str, name: str, promise: str) -> Setting:
    script = f"{SCRIPTS}/git/git.sh"
    return Setting("git", name, f"{script} setup {option}", f"{script} work 20", f"{script} check", promise=promise,
                   stays=False, slow=True)


def built(engine: str, source: str, build: str, name: str, work: str, promise: str) -> Setting:
    program = f"./{source.split('/')[0]}"
    return Setting(engine, name, f"{program} setup", f"{program} {work}", f"exec {program} check",
                   build=f"{build} -o {program} {SCRIPTS}/{source}", promise=promise)


def rocksdb(name: str, work: str, promise: str) -> Setting:
    made = built("RocksDB", "rocksdb/rocksdb.cc", "c++ -std=c++17 -O1", name, work, promise)
    made.build += " -lrocksdb"
    return made


def leveldb(name: str, work: str, promise: str) -> Setting:
    made = built("LevelDB", "leveldb/leveldb.cc", "c++ -std=c++17 -O1", name, work, promise)
    made.build += " -lleveldb"
    return made


def gdbm() -> Setting:
    made = built("GDBM", "gdbm/gdbm.c", "cc -O1", "gdbm_sync", "work 100", "durable if nothing was under way")
    made.build += " -lgdbm"
    return made


def in_go(engine: str, name: str, work: str, promise: str) -> Setting:
    folder = f"{SCRIPTS}/{engine.lower()}"
    build = f"cp {SCRIPTS}/go/main.go {folder}/* . && {{ go mod tidy && go build -o store . ; }} 2>build.log"
    return Setting(engine, name, "./store setup", f"./store {work}", "exec ./store check", build=build, promise=promise)


def in_rust(engine: str, name: str, work: str, promise: str) -> Setting:
    folder = f"{SCRIPTS}/{engine}"
    build = f"cp {SCRIPTS}/rust/main.rs {folder}/store.rs . && cp {folder}/manifest.toml Cargo.toml && cargo build --release --quiet"
    program = "./target/release/store"
    return Setting(engine, name, f"{program} setup", f"{program} {work}", f"exec {program} check",
                   build=f"{build} --target-dir target", promise=promise)


def duckdb() -> Setting:
    build = f"cp {SCRIPTS}/duckdb/duck.py . && python3 -m pip install --quiet --target . duckdb==2.0.1"
    return Setting("DuckDB", "as it comes", "./duck.py setup", "./duck.py work 60", "exec ./duck.py check", build=build,
                   slow=True)


ATOMIC = "atomic, the last may be lost"
NOTHING = "nothing after a power cut"
SETTINGS = [
    sqlite("WAL", "FULL", "durable"),
    sqlite("WAL", "NORMAL", ATOMIC),
    sqlite("WAL", "OFF", NOTHING),
    sqlite("DELETE", "EXTRA", "durable"),
    sqlite("DELETE", "FULL", "durable but for the last in rare cases"),
    sqlite("DELETE", "NORMAL", "as FULL; damage in rare cases"),
    sqlite("DELETE", "OFF", NOTHING),
    sqlite("TRUNCATE", "FULL", "durable"),
    sqlite("PERSIST", "FULL", "durable"),
    lmdb("sync", "durable"),
    lmdb("nometasync", ATOMIC),
    lmdb("nosync", NOTHING),
    leveldb("sync", "work 400", "durable"),
    leveldb("no sync", "work 400 nosync", "the last may be lost"),
    rocksdb("sync", "work 400", "durable"),
    rocksdb("no sync", "work 400 nosync", "the last may be lost"),
    in_go("bbolt", "as it comes", "work 100", "durable"),
    in_go("Pebble", "Sync", "work 200", "durable"),
    in_go("Pebble", "NoSync", "work 200 nosync", "the last may be lost"),
    in_go("Badger", "SyncWrites", "work 200", "durable"),
    in_rust("redb", "as it comes", "work 100", "durable"),
    in_rust("redb", "Durability::None", "work 100 nosync", "the last may be lost"),
    in_rust("sled", "flush", "work 100", "durable after flush"),
    in_rust("fjall", "SyncAll", "work 200", "durable"),
    in_rust("fjall", "no sync", "work 200 nosync", "the last may be lost"),
    duckdb(),
    redis("always", "every write is synced"),
    redis("everysec", "all but the last second"),
    gdbm(),
    postgresql("as it comes", "", "durable"),
    postgresql("full_page_writes=off", "full_page_writes=off", "damage if pages of 8 KiB tear"),
    postgresql("fsync=off", "fsync=off", NOTHING),
    mariadb("as it comes", "", "durable"),
    mariadb("flush_log_at_trx_commit=2", "--innodb-flush-log-at-trx-commit=2", "all but the last second"),
    mariadb("doublewrite off", "--skip-innodb-doublewrite", "damage if pages of 16 KiB tear"),
    git("", "as it comes", "best effort"),
    git("core.fsync=all", "core.fsync=all", "every file is synced"),
]


@dataclass
class Result:
    engine: str
    version: str
    setting: str
    promise: str
    rules: str
    promises: int
    syncs: int
    states: int
    lost: int
    broken: int
    first: int
    lies_noticed: str
    states_a_second: float
    # Of the first state that broke, made small: what was said, and what is lost.
    findings: list[dict[str, object]] = field(default_factory=list)


def run(args: argparse.Namespace, setting: Setting, rules: str, folder: str) -> Result | str:
    """What came of a setting; the reason if it cannot be run."""
    if setting.build:
        build = subprocess.run(["sh", "-c", setting.build], cwd=folder, capture_output=True, text=True)
        if build.returncode != 0:
            said = build.stderr.strip().splitlines()
            return f"cannot be built: {said[0] if said else setting.build}"
    out = os.path.join(folder, "crash")
    command = [args.leyden, "--quiet", "crashtest", f"--files={rules}", "--setup", setting.setup, "--work", setting.work,
               "--check", setting.check, "--states", str(args.states), "--seed", str(args.seed), "--out", out, "--json"]
    if setting.stays:
        command.append("--check-server")
    if setting.slow:
        command += ["--budget", f"{args.budget} s"]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    if done.returncode not in (0, 1, 6) or not done.stdout:
        return (done.stderr.strip().splitlines() or ["it says nothing"])[-1].strip()
    summary = json.loads(done.stdout)
    with open(os.path.join(out, "work.log"), errors="replace") as log:
        versions = [found.group() for line in log if line.startswith("version ") and (found := re.search(r"\d+(\.\d+)+", line))]
    model = summary["models"][0]
    counts = model["verdicts"]
    lost = counts.get("lost", 0)
    broken = sum(count for verdict, count in counts.items() if verdict not in ("held", "skipped", "lost"))
    control = summary["control"]
    noticed = sum(count for verdict, count in control["verdicts"].items() if verdict not in ("held", "skipped"))
    first = min((finding["first"] for finding in model["findings"]), default=0)
    findings = [{key: finding.get(key) for key in ("verdict", "count", "first", "said", "lost")} for finding in model["findings"][:1]]
    for finding in findings:
        finding["said"] = str(finding["said"]).replace(os.path.join(out, ".room/mnt"), "$LEYDEN_MOUNT")
    return Result(setting.engine, ", ".join(versions), setting.name, setting.promise, rules, summary["acks"], summary["flushes"],
                  model["states"], lost, broken, first, f"{noticed} of {control['states']}",
                  round(model["states"] / max(model["seconds"], 1e-9)), findings)


def cell(result: Result | None) -> str:
    if result is None:
        return "-"
    parts = [f"{result.lost} lost" if result.lost else "", f"{result.broken} broken" if result.broken else ""]
    return ", ".join(part for part in parts if part) or "held"


def print_tables(results: list[Result]) -> None:
    shown = [rules for rules in RULES if any(it.rules == rules for it in results)]
    print("\n| engine | setting | its documentation promises | promises, syncs | states | " + " | ".join(shown) + " |")
    print("|---|---|---|---|---|" + "---|" * len(shown))
    told = dict.fromkeys((result.engine, result.setting) for result in results)
    for engine, setting in told:
        by_rules = {it.rules: it for it in results if (it.engine, it.setting) == (engine, setting)}
        one = next(iter(by_rules.values()))
        name = f"{engine} {one.version}".strip()
        cells = " | ".join(cell(by_rules.get(rules)) for rules in shown)
        states = sorted({it.states for it in by_rules.values()})
        tried = f"{states[0]}" if len(states) == 1 else f"{states[0]}-{states[-1]}"
        print(f"| {name} | {setting} | {one.promise} | {one.promises}, {one.syncs} | {tried} | {cells} |")
    print("\n| engine, setting, rules | what the check says | what is lost |\n|---|---|---|")
    for result in results:
        for finding in result.findings[:1]:
            said = (str(finding["said"]).splitlines() or [""])[0].replace("|", "\\|")[:100]
            taken = finding["lost"] if isinstance(finding["lost"], list) else []
            lost = "; ".join(str(line).removeprefix("lost: ") for line in taken[:2]) or "nothing of its own"
            print(f"| {result.engine}, {result.setting}, {result.rules} | {said} | {lost} |")


def keep(path: str, results: list[Result]) -> None:
    """The record on disk is always a whole one."""
    with open(f"{path}.new", "w") as record:
        json.dump([asdict(result) for result in results], record, indent=1)
        record.write("\n")
    os.replace(f"{path}.new", path)


def in_order(results: list[Result]) -> list[Result]:
    settings = [(setting.engine, setting.name) for setting in SETTINGS]
    return sorted(results, key=lambda it: (settings.index((it.engine, it.setting)), RULES.index(it.rules)))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("engines", nargs="*", metavar="ENGINE", help="SQLite, LMDB, ...; all if not given")
    parser.add_argument("--leyden", default="target/release/leyden")
    parser.add_argument("--states", type=int, default=1000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--budget", type=int, default=60, help="seconds of states that are slow to try")
    parser.add_argument("--record", help="keep the results as JSON in this file; what it has is not run again")
    parser.add_argument("--show", metavar="RECORD", help="print the tables of a record, and run nothing")
    args = parser.parse_args()
    if args.show:
        with open(args.show) as record:
            return print_tables([Result(**result) for result in json.load(record)])
    wanted = [name.lower() for name in args.engines]
    unknown = set(wanted) - {setting.engine.lower() for setting in SETTINGS}
    if unknown:
        parser.error(f"there is no engine {', '.join(sorted(unknown))}")
    args.leyden = os.path.abspath(args.leyden)
    needs_crashtest(args.leyden, "--files")
    results: list[Result] = []
    if args.record and os.path.exists(args.record):
        with open(args.record) as record:
            results = [Result(**result) for result in json.load(record)]
    for setting in SETTINGS:
        if wanted and setting.engine.lower() not in wanted:
            continue
        for rules in RULES:
            if any((it.engine, it.setting, it.rules) == (setting.engine, setting.name, rules) for it in results):
                continue
            with open_folder("leyden-engines-") as folder:
                result = run(args, setting, rules, folder)
            if isinstance(result, str):
                print(f"left out: {setting.engine}, {setting.name}: {result}", file=sys.stderr, flush=True)
                break
            print(f"{setting.engine}, {setting.name}, {rules}: {cell(result)} of {result.states}, {result.states_a_second:.0f} states/s",
                  file=sys.stderr, flush=True)
            results = in_order([*results, result])
            if args.record:
                keep(args.record, results)
    print_tables(results)


if __name__ == "__main__":
    main()
