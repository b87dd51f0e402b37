#!/usr/bin/env python3
"""Fuzzing with libFuzzer: each target for some time, from its committed seeds.

    campaigns/fuzz.py [--seconds S] [--jobs N] [--keep] [--sanitizer none|address] [TARGET...]

It takes cargo-fuzz (`cargo install cargo-fuzz --locked`) and a C++ compiler. Without a nightly toolchain the one of the repository
builds the targets: coverage takes no unstable option, and `--sanitizer address` is built with RUSTC_BOOTSTRAP=1.

Printed for each target: the edges that its seeds reach, the edges reached at the end, executions, and executions a second.
`--keep` writes the inputs that reached something new, minimised, to fuzz/corpus-seeds/found/TARGET, at most 48 files and 16 KiB
of each target.

Exits with 1 if a target failed (the input is kept in fuzz/artifacts), and with 77 if cargo-fuzz or a C++ compiler is missing.
"""

import argparse
import concurrent.futures
import os
import re
import shutil
import subprocess
import sys
import tempfile
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
FUZZ = os.path.join(ROOT, "fuzz")
SEEDS = os.path.join(FUZZ, "corpus-seeds")
FOUND = os.path.join(SEEDS, "found")
OTHER_SEEDS = {"run_record": "record", "torture_seed_file": "seed_file", "torture_campaign_state": "campaign_state"}
KEPT_BYTES_MOST = 16 << 10
KEPT_FILES_MOST = 48


@dataclass
class Result:
    target: str
    seeds_edges: int
    edges: int
    executions: int
    seconds: float
    failed: bool


def targets() -> list[str]:
    names = (name.removesuffix(".rs") for name in sorted(os.listdir(os.path.join(FUZZ, "fuzz_targets"))))
    return list(names)


def seeds_of(target: str) -> list[str]:
    """Folders with seeds of a target."""
    if target == "trace_any":
        formats = (it.removeprefix("trace_") for it in targets() if it.startswith("trace_"))
        folders = [os.path.join(SEEDS, it) for it in formats]
    else:
        folders = [os.path.join(SEEDS, OTHER_SEEDS.get(target, target.removeprefix("trace_")))]
    folders += [os.path.join(FUZZ, "corpus", target), os.path.join(FOUND, target)]
    return [it for it in folders if os.path.isdir(it)]


def host() -> str:
    triple = subprocess.run(["rustc", "-vV"], capture_output=True, text=True, check=True).stdout
    return next(line.split()[1] for line in triple.splitlines() if line.startswith("host:"))


def binary(target: str) -> str:
    return os.path.join(FUZZ, "target", host(), "release", target)


def last(pattern: str, text: str) -> int:
    found = re.findall(pattern, text)
    return int(found[-1]) if found else 0


def run(target: str, seconds: int, keep: bool) -> Result:
    artifacts = os.path.join(FUZZ, "artifacts", target)
    os.makedirs(artifacts, exist_ok=True)
    with tempfile.TemporaryDirectory(dir="/dev/shm" if os.path.isdir("/dev/shm") else None) as folder:
        corpus = os.path.join(folder, "corpus")
        os.mkdir(corpus)
        limits = ["-timeout=20", "-rss_limit_mb=2048", "-print_final_stats=1", f"-artifact_prefix={artifacts}/"]
        environment = {**os.environ, "TMPDIR": folder}
        begin = [binary(target), *limits, corpus, *seeds_of(target)]
        first = subprocess.run([*begin, "-runs=0"], capture_output=True, text=True, errors="replace", env=environment)
        fuzzed = subprocess.run(
            [*begin, f"-max_total_time={seconds}"], capture_output=True, text=True, errors="replace", env=environment
        )
        if fuzzed.returncode != 0:
            print(f"{target}:\n" + "\n".join(fuzzed.stderr.splitlines()[-30:]), file=sys.stderr)
        if keep and fuzzed.returncode == 0:
            keep_found(target, corpus, folder, environment)
    executions = last(r"stat::number_of_executed_units: (\d+)", fuzzed.stderr)
    took = last(r"Done \d+ runs in (\d+) second", fuzzed.stderr)
    edges = last(r"cov: (\d+)", fuzzed.stderr)
    return Result(target, last(r"cov: (\d+)", first.stderr), edges, executions, took, fuzzed.returncode + first.returncode != 0)


def keep_found(target: str, corpus: str, folder: str, environment: dict[str, str]) -> None:
    """The inputs that reach most that the seeds do not, as many as are kept."""
    seeds = [it for it in seeds_of(target) if not it.startswith(FOUND)]
    kept = os.path.join(folder, "kept")
    os.mkdir(kept)
    old = os.path.join(FOUND, target)
    merged = [corpus, *([old] if os.path.isdir(old) else [])]
    # Into a copy of the seeds: what they reach is not kept again.
    for path in (os.path.join(one, name) for one in seeds for name in os.listdir(one)):
        shutil.copy(path, os.path.join(kept, "seed-" + os.path.basename(path)))
    control = os.path.join(folder, "control")
    merge = ["-set_cover_merge=1", f"-merge_control_file={control}", kept, *merged]
    subprocess.run([binary(target), *merge], capture_output=True, env=environment)
    reached, features = features_of(control)
    chosen: list[str] = []
    left = KEPT_BYTES_MOST
    while features and len(chosen) < KEPT_FILES_MOST:
        best = max(features, key=lambda it: (len(features[it] - reached), -os.path.getsize(it)))
        new = features.pop(best) - reached
        if not new:
            break
        if os.path.getsize(best) <= left:
            chosen.append(best)
            left -= os.path.getsize(best)
            reached |= new
    found = {os.path.basename(it): open(it, "rb").read() for it in chosen}
    shutil.rmtree(old, ignore_errors=True)
    os.makedirs(old)
    for name, data in found.items():
        with open(os.path.join(old, name), "wb") as file:
            file.write(data)


def features_of(control: str) -> tuple[set[int], dict[str, set[int]]]:
    """What seeds reach, and what each other input reaches, by the control file of a merge."""
    with open(control) as file:
        files_count, seeds_count = int(file.readline()), int(file.readline())
        names = [file.readline().rstrip("\n") for _ in range(files_count)]
        rows = [line.split() for line in file if line.startswith("FT ")]
    reached: set[int] = set()
    features = {}
    for _, number, *found in rows:
        if int(number) < seeds_count:
            reached.update(map(int, found))
        else:
            features[names[int(number)]] = set(map(int, found))
    return reached, features


def build(sanitizer: str) -> None:
    has_nightly = subprocess.run(["cargo", "+nightly", "--version"], capture_output=True).returncode == 0
    cargo = ["cargo", "+nightly"] if has_nightly else ["cargo"]
    needs = [[*cargo, "fuzz", "--version"], ["c++", "--version"]]
    if not all(shutil.which(it[0]) and subprocess.run(it, capture_output=True).returncode == 0 for it in needs):
        print("LEFT OUT: fuzzing takes cargo-fuzz (cargo install cargo-fuzz --locked) and a C++ compiler")
        sys.exit(77)
    subprocess.run(["cargo", "build", "--quiet", "--workspace", "--example", "fuzz_seeds"], check=True, cwd=ROOT)
    built = os.path.join(os.environ.get("CARGO_TARGET_DIR", os.path.join(ROOT, "target")), "debug", "examples", "fuzz_seeds")
    subprocess.run([built, os.path.join(FUZZ, "corpus")], check=True)
    unstable = {} if has_nightly or sanitizer == "none" else {"RUSTC_BOOTSTRAP": "1"}
    # C below Rust (zstd) is checked, too: the compiler's calls are those of the runtime that rustc links.
    instrumented = {} if sanitizer == "none" else {"CFLAGS_" + host().replace("-", "_"): f"-fsanitize={sanitizer}"}
    environment = {**os.environ, **unstable, **instrumented}
    subprocess.run([*cargo, "fuzz", "build", "-s", sanitizer], check=True, cwd=ROOT, env=environment)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=int, default=600, help="for each target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at once")
    parser.add_argument("--sanitizer", choices=["none", "address"], default="none", help="none is faster by an order of magnitude")
    parser.add_argument("--keep", action="store_true", help="keep what reached something new")
    parser.add_argument("targets", nargs="*", metavar="TARGET", help="all, if none is named")
    args = parser.parse_args()
    chosen = args.targets or targets()
    unknown = [it for it in chosen if it not in targets()]
    if unknown:
        parser.error(f"there is no target {unknown[0]}: {', '.join(targets())}")
    build(args.sanitizer)
    print(f"{'target':24} {'seeds':>7} {'edges':>7} {'executions':>13} {'a second':>9}")
    with concurrent.futures.ThreadPoolExecutor(args.jobs) as pool:
        results = []
        for it in pool.map(lambda target: run(target, args.seconds, args.keep), chosen):
            results.append(it)
            rate = it.executions / max(it.seconds, 1)
            verdict = "  FAILED" if it.failed else ""
            print(f"{it.target:24} {it.seeds_edges:7} {it.edges:7} {it.executions:13,} {rate:9,.0f}{verdict}", flush=True)
    total, failed = sum(it.executions for it in results), [it.target for it in results if it.failed]
    print(f"{total:,} executions of {len(results)} targets, {len(failed)} failed")
    sys.exit(1 if failed else 0)


if __name__ == "__main__":
    main()
