#!/usr/bin/env python3
"""Test suites of others against served drives, in a guest with a stock kernel: blktests, nvme-cli, zonefs-tools, fio.

    campaigns/conformance.py --leyden target/try/leyden --blktests DIR --nvme-cli DIR --zonefs-tools DIR --fio DIR --record FILE
    campaigns/conformance.py --show docs/evidence/conformance.json

DIR is a checkout of the project; suites without one are left out. Helpers in C are compiled in a copy. Prints a table of
Markdown, each failure and each reason for a skipped test; `--record` keeps all results as JSON. The guest is that of
`integrations/nvme/guest.sh build`. Exit code 1: a test has failed whose reason is not known; 77: nothing can be run.
"""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, dataclass

from commands import lacks

DRIVES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "integrations", "nvme", "drives")
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
# Failures with a reason outside of the drive, which was looked at.
UUID = "it asks for a UUID, and these drives have an NGUID"
KNOWN: dict[tuple[str, str], str] = {
    **{("blktests-target", f"nvme/{test}"): UUID for test in ("004", "008", "022", "027")},
    ("blktests-devices", "nvme/067"): "its helper is compiled where liburing is",
    ("nvme-cli", "TestNVMeGetMandatoryFeatures.test_get_mandatory_features"):
        "it asks for features 08h and 09h, which fabrics prohibit; a PCI drive has them",
    ("zonefs-tools", "0401"): "`mkswap` refuses the file; on the kernel's null_blk, too",
}


@dataclass
class Result:
    suite: str
    version: str
    test: str
    # "passed", "failed" or "skipped"
    result: str
    reason: str = ""


@dataclass
class Suite:
    # As `drives --suite` knows it.
    name: str
    # The option with its checkout.
    checkout: str
    # What is copied of that, and how it is compiled.
    parts: list[str]
    build: str
    parse: Callable[[str], list[tuple[str, str, str]]]
    # More options of `drives`.
    drive: tuple[str, ...] = ()


def blktests(out: str) -> list[tuple[str, str, str]]:
    """`zbd/001 => nvme0n2 (title)   [passed]`, and reasons in the lines behind."""
    found = []
    lines = out.splitlines()
    zoned = re.search(r"^@zoned (\S+)$", out, re.MULTILINE)
    for place, line in enumerate(lines):
        told = re.match(r"(\S+/(?:\d+|\*+)) (?:=> (\S+) )?(.*?)\s*\[(passed|failed|not run)\]$", line)
        if not told:
            continue
        test, disk, _, verdict = told.groups()
        behind = []
        for after in lines[place + 1:]:
            if not after.startswith("    "):
                break
            if not re.search(r"\s\.\.\.\s", after):  # a measurement
                behind.append(after.strip())
        result = {"passed": "passed", "failed": "failed"}.get(verdict, "skipped")
        if result == "failed":
            behind = [line for line in behind if re.match(r"[+-](?![+-])", line)]
        reason = "; ".join(behind) if result != "passed" else ""
        kind = " (zoned)" if zoned and disk == zoned[1] else ""
        found.append((test + kind, result, re.sub(r"/dev/nvme\w+", "the disk", reason)))
    return found


def nvme_cli(out: str) -> list[tuple[str, str, str]]:
    """The report that the suite writes as JSON."""
    report = json.JSONDecoder().raw_decode(out[out.index('{\n  "'):])[0]
    outcomes = {"pass": "passed", "skip": "skipped"}
    found = []
    for test in next(value for value in report.values() if isinstance(value, list)):
        said = (test.get("message") or "").strip().splitlines() or [""]
        found.append((f"{test['class']}.{test['name']}", outcomes.get(test["outcome"], "failed"), said[-1]))
    return found


def zonefs_tools(out: str) -> list[tuple[str, str, str]]:
    """`  Test 0001:  title   ... PASS`."""
    words = {"PASS": "passed", "skip": "skipped", "FAIL": "failed"}
    lines = re.findall(r"^  Test (\d+):\s+(.*?)\s+\.\.\. (PASS|skip|FAIL)\s*$", COLOUR.sub("", out), re.MULTILINE)

    def reason(title: str, word: str) -> str:
        if word == "skip" and re.search("cnv|conv", title, re.IGNORECASE):
            return "it wants conventional zones"
        return "" if word == "PASS" else title

    return [(test, words[word], reason(title, word)) for test, title, word in lines]


def fio(out: str) -> list[tuple[str, str, str]]:
    """`Running test 01 ... PASS`."""
    words = {"PASS": "passed", "SKIP": "skipped", "FAIL": "failed"}
    lines = re.findall(r"^Running test (\d+) \.\.\. (PASS|SKIP|FAIL) *(.*)$", COLOUR.sub("", out), re.MULTILINE)
    return [(test, words[word], reason.strip()) for test, word, reason in lines]


TOOLS = "for tool in zio zopen; do cc -O1 -D_GNU_SOURCE -o tests/tools/$tool tests/tools/$tool.c || exit 1; done"
SUITES = [
    Suite("blktests-devices", "blktests", ["."], "make -s -C src", blktests),
    # nvme/029 sends 1,025 blocks with one command, and a command has 1 MiB at most.
    Suite("blktests-target", "blktests", ["."], "make -s -C src", blktests, ("--plain", "device.ftl.mapping_unit=512 B")),
    Suite("nvme-cli", "nvme_cli", ["tests"], "", nvme_cli),
    Suite("zonefs-tools", "zonefs_tools", ["tests"], TOOLS, zonefs_tools),
    Suite("fio", "fio", ["t/zbd"], "", fio),
]


def version_of(checkout: str) -> str:
    told = subprocess.run(["git", "-C", checkout, "describe", "--always", "--tags"], capture_output=True, text=True)
    return told.stdout.strip() or "not told"


def run(args: argparse.Namespace, suite: Suite, checkout: str) -> list[Result]:
    with tempfile.TemporaryDirectory(prefix="leyden-conformance-") as folder:
        for part in suite.parts:
            shutil.copytree(os.path.join(checkout, part), os.path.join(folder, part), dirs_exist_ok=True, symlinks=True,
                            ignore=shutil.ignore_patterns(".git", "results"))
        if suite.build:
            built = subprocess.run(["sh", "-c", suite.build], cwd=folder, capture_output=True, text=True)
            if built.returncode != 0:
                sys.exit(f"{suite.name} cannot be built: {built.stderr[-1000:]}")
        command = [DRIVES, "--leyden", args.leyden, *suite.drive, "--suite", folder, suite.name]
        done = subprocess.run(command, capture_output=True, text=True, errors="replace",
                              env={**os.environ, "SECONDS_MOST": str(args.seconds)})
        if done.returncode == 77:
            lacks(done.stderr.strip())
    if args.logs:
        with open(os.path.join(args.logs, f"{suite.name}.log"), "w") as log:
            log.write(done.stdout + done.stderr)
    out = done.stdout.replace("\r", "")
    if "@ended" not in out:
        sys.exit(f"{suite.name} did not end (code {done.returncode}):\n{(out + done.stderr)[-2000:]}")
    version = version_of(checkout)
    results = [Result(suite.name, version, *line) for line in suite.parse(out)]
    if not any(it.result == "passed" for it in results):
        sys.exit(f"{suite.name}: no test has passed:\n{(out + done.stderr)[-2000:]}")
    return results


def print_table(results: list[Result]) -> int:
    """Prints the table; returns the number of failures without a known reason."""
    print("| suite | version | passed | failed | skipped |\n|---|---|---|---|---|")
    for suite in dict.fromkeys(it.suite for it in results):
        of = [it for it in results if it.suite == suite]
        counts = Counter(it.result for it in of)
        print(f"| {suite} | {of[0].version} | {counts['passed']} | {counts['failed']} | {counts['skipped']} |")
    failed = [it for it in results if it.result == "failed"]
    if failed:
        print("\n| failed | reason |\n|---|---|")
    unknown = 0
    for it in failed:
        known = KNOWN.get((it.suite, it.test.removesuffix(" (zoned)")))
        unknown += known is None
        print(f"| {it.suite} {it.test} | {known or 'NOT KNOWN: ' + it.reason[:200]} |")
    reasons: dict[tuple[str, str], list[str]] = {}
    for it in results:
        if it.result == "skipped":
            reasons.setdefault((it.suite, it.reason), []).append(it.test)
    if reasons:
        print("\n| skipped | tests | reason |\n|---|---|---|")
    for (suite, reason), tests in reasons.items():
        print(f"| {suite} | {', '.join(tests)} | {reason} |")
    return unknown


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    for option in dict.fromkeys(suite.checkout for suite in SUITES):
        parser.add_argument("--" + option.replace("_", "-"), metavar="DIR", help="its checkout")
    parser.add_argument("--leyden", default="target/try/leyden")
    parser.add_argument("--only", choices=[suite.name for suite in SUITES], help="this suite alone")
    parser.add_argument("--seconds", type=int, default=1800, help="the most for a suite")
    parser.add_argument("--logs", metavar="DIR", help="keep each suite's output in this folder")
    parser.add_argument("--record", help="keep the results as JSON in this new file")
    parser.add_argument("--show", metavar="RECORD", help="print the table of a record, and run nothing")
    args = parser.parse_args()
    if args.show:
        with open(args.show) as record:
            sys.exit(print_table([Result(**result) for result in json.load(record)]) > 0)
    for suite in SUITES:
        checkout = getattr(args, suite.checkout)
        if checkout and not all(os.path.isdir(os.path.join(checkout, part)) for part in suite.parts):
            parser.error(f"{checkout} is no checkout of {suite.checkout.replace('_', '-')}")
    if args.record and os.path.exists(args.record):
        parser.error(f"{args.record} exists: name a new file")
    args.leyden = os.path.abspath(args.leyden)
    results: list[Result] = []
    for suite in SUITES:
        checkout = getattr(args, suite.checkout)
        if not checkout or args.only not in (None, suite.name):
            print(f"left out: {suite.name}", file=sys.stderr, flush=True)
            continue
        of = run(args, suite, checkout)
        print(f"{suite.name}: {dict(Counter(it.result for it in of))}", file=sys.stderr, flush=True)
        results += of
    if not results:
        lacks("a checkout")
    unknown = print_table(results)
    if args.record:
        with open(args.record, "x") as record:
            json.dump([asdict(result) for result in results], record, indent=1)
            record.write("\n")
    sys.exit(unknown > 0)


if __name__ == "__main__":
    main()
