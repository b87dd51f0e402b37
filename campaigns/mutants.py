#!/usr/bin/env python3
"""Mutants of the FTL, the buffer and the power model: which of them does neither torture nor a unit test find?

    campaigns/mutants.py [--every N] [--from N] [--only REGEX] [--seeds N] [--jobs N]

A mutant is a function that returns at once with a constant (true, false, 0, 1, None, an empty vector, nothing), or a
condition that always holds or never does. All are built into one copy of the repository (target/mutants), where the
variable MUTANT says which is alive. Each is given a tenth of the seeds, then the unit tests, then all seeds.

Survivors are printed. Those that campaigns/mutants.md lists are judged there; exits with 1 if another one survives.
"""

import argparse
import os
import re
import resource
import shutil
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
COPY = os.path.join(ROOT, "target", "mutants")
CRATES = ["ftl", "buffer", "power"]
FILES = [
    "crates/device/src/controller/power/cut.rs",
    "crates/device/src/controller/power/plan.rs",
    "crates/device/src/controller/power/restore.rs",
    "crates/device/src/conventional/dump.rs",
]
# Zoned drives have canaries of their own; victims, logs, and what is only counted promise nothing.
LEFT_OUT = re.compile(r"/zoned/|/zones/|/gc/|/logs/|(tests|twin|stats|laid|config|lead|zombies|sampled)\.rs$")
# What only checks, shows or measures.
NAMES_LEFT_OUT = {"new", "fmt", "default", "memory_bytes", "check"}
FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?fn (\w+)(?:<[^>]*>)?\(")
CONST_FUNCTION = re.compile(r"^(\s*)(?:pub(?:\([^)]*\))? )?const fn ")
CONDITION = re.compile(r"^(\s*(?:\} else )?if )(?!.*\blet\b)(?!.*is_planted)(.+) \{$")
VALUES = {
    "": ["()"],
    "bool": ["true", "false"],
    "u32": ["0", "1"],
    "u64": ["0", "1"],
    "usize": ["0", "1"],
    "Span": ["leyden_sim::Span::ZERO"],
}
# What takes so much more processor time than without a mutant goes round for ever: found.
TOO_LONG = 10
JUDGED = re.compile(r"^\| (\S+) \| (.+?) \| .+ \|$")
SWITCH = """
/// True if this mutant is alive.
#[inline]
pub fn mutant(n: u32) -> bool {
    static ALIVE: std::sync::OnceLock<u32> = std::sync::OnceLock::new();
    *ALIVE.get_or_init(|| std::env::var("MUTANT").ok().and_then(|it| it.parse().ok()).unwrap_or(0)) == n
}
"""


class Mutant:
    """A change of one line of a file, which a number switches on."""

    def __init__(self, path, at, what, change):
        self.path, self.at, self.what, self.change = path, at, what, change

    def name(self):
        return f"{self.path}:{self.at + 1}: {self.what}"


def values(result):
    """What a function of this result type may return at once."""
    if result.startswith("Option<"):
        return ["None"]
    if result.startswith("Vec<"):
        return ["Vec::new()"]
    return VALUES.get(result, [])


def result_of(signature, name):
    """The result type of a function, by its signature."""
    depth, begin = 0, signature.index("(", signature.index("fn " + name))
    for at in range(begin, len(signature)):
        depth += {"(": 1, ")": -1}.get(signature[at], 0)
        if depth == 0:
            rest = signature[at + 1 :].split(" where ")[0].strip().removesuffix("{").strip()
            return rest.removeprefix("->").strip()
    return None


def returns(path, lines, begin):
    """Mutants of the function that begins in line `begin`, if one does."""
    found = FUNCTION.match(lines[begin])
    if not found or found[1] in NAMES_LEFT_OUT:
        return
    at = begin
    while not lines[at].rstrip().endswith(("{", ";", "}")):
        at += 1
    if not lines[at].rstrip().endswith("{"):
        return
    signature = " ".join(line.strip() for line in lines[begin : at + 1])
    for value in values(result_of(signature, found[1])):

        def change(line, number, value=value):
            return f"{line}\nif leyden_sim::mutant({number}) {{ return {value}; }}"

        yield Mutant(path, at, f"`{found[1]}` returns {value}", change)


def conditions(path, lines, at, function):
    """Mutants of the condition in line `at`, if there is one."""
    found = CONDITION.match(lines[at])
    if not found or function in NAMES_LEFT_OUT:
        return
    for holds, how in (("always", "leyden_sim::mutant({}) || ({})"), ("never", "!leyden_sim::mutant({}) && ({})")):

        def change(line, number, how=how):
            # Another mutant may have been planted in the condition already.
            head, condition = CONDITION.match(line).groups()
            return f"{head}{how.format(number, condition)} {{"

        yield Mutant(path, at, f"`{function}` {holds} takes `if {found[2]}`", change)


def mutants(path, lines):
    """Every mutant of a file."""
    function, skip_until = None, None
    for at, line in enumerate(lines):
        if line.startswith("#[cfg(test)]"):
            return
        if skip_until is not None:
            skip_until = None if line == skip_until else skip_until
            continue
        constant = CONST_FUNCTION.match(line)
        if constant:
            # What runs while it is compiled cannot ask for a variable.
            skip_until = None if line.rstrip().endswith("}") else constant[1] + "}"
            continue
        named = FUNCTION.match(line)
        function = named[1] if named else function
        yield from returns(path, lines, at)
        yield from conditions(path, lines, at, function)


def sources():
    for crate in CRATES:
        for folder, _, files in os.walk(os.path.join(COPY, "crates", crate, "src")):
            for file in files:
                path = os.path.relpath(os.path.join(folder, file), COPY)
                if path.endswith(".rs") and not LEFT_OUT.search(path):
                    yield path
    yield from FILES


def read(path):
    with open(os.path.join(COPY, path), encoding="utf-8") as file:
        return file.read()


def write(path, text):
    with open(os.path.join(COPY, path), "w", encoding="utf-8") as file:
        file.write(text)


def copy_repository():
    os.makedirs(COPY, exist_ok=True)
    for entry in os.listdir(COPY):
        path = os.path.join(COPY, entry)
        if entry != "target":
            shutil.rmtree(path) if os.path.isdir(path) else os.remove(path)
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, check=True, capture_output=True, text=True)
    for path in listed.stdout.splitlines():
        to = os.path.join(COPY, path)
        os.makedirs(os.path.dirname(to), exist_ok=True)
        shutil.copy2(os.path.join(ROOT, path), to)


def plant(every, first, only):
    """Copies the repository, and plants every `every`-th mutant from `first` on whose name matches `only`, in the
    order of files and lines. Returns them by number."""
    copy_repository()
    everything = [mutant for path in sorted(sources()) for mutant in mutants(path, read(path).split("\n"))]
    found = [mutant for mutant in everything if re.search(only, mutant.name())]
    chosen = dict(enumerate(found[first::every], 1))
    for path in sorted({mutant.path for mutant in chosen.values()}):
        lines = read(path).split("\n")
        for number, mutant in chosen.items():
            if mutant.path == path:
                first, *rest = lines[mutant.at].split("\n")
                lines[mutant.at] = "\n".join([mutant.change(first, number), *rest])
        write(path, "\n".join(lines))
    write("crates/sim/src/lib.rs", read("crates/sim/src/lib.rs") + SWITCH)
    print(f"{len(everything)} mutants, {len(chosen)} of them planted", flush=True)
    return chosen


def build():
    """The programs that may find a mutant: unit tests, and torture."""
    target = os.path.join(COPY, "target")
    env = dict(os.environ, CARGO_TARGET_DIR=target, RUSTFLAGS="-Awarnings")
    packages = [word for crate in CRATES for word in ("--package", f"leyden-{crate}")]
    tests = ["cargo", "test", "--release", "--locked", "--no-run", "--lib", "--tests", *packages]
    built = subprocess.run(tests, cwd=COPY, env=env, capture_output=True, text=True)
    if built.returncode != 0:
        sys.exit(built.stderr)
    units = re.findall(r"Executable .*\((.*)\)", built.stderr)
    example = ["cargo", "build", "--release", "--locked", "--package", "leyden-torture", "--example", "torture_cost"]
    subprocess.run(example, cwd=COPY, env=env, check=True)
    return [os.path.join(COPY, unit) for unit in units], os.path.join(target, "release", "examples", "torture_cost")


def steps(units, torture, seeds):
    """The commands that may find a mutant, and what to call each."""
    yield "torture", [torture, str(max(seeds // 10, 1))]
    for unit in units:
        yield "a unit test", [unit, "-q"]
    yield "torture", [torture, str(seeds)]


def run(command, number, cpu_s):
    """The exit code of a command with a mutant alive, which may take so many seconds of processor time."""
    # A property test must not keep what fails with one mutant, and try it with the next.
    env = dict(os.environ, MUTANT=str(number), RUST_BACKTRACE="0", PROPTEST_DISABLE_FAILURE_PERSISTENCE="1")
    limited = ["prlimit", f"--cpu={cpu_s}", "--core=0", *command]
    return subprocess.run(limited, env=env, cwd=COPY, capture_output=True).returncode


def limits(commands):
    """Seconds of processor time that each command may take: many times what it does without a mutant."""
    for _, command in commands:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        if run(command, 0, "unlimited") != 0:
            sys.exit(f"without any mutant {command[0]} fails already")
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        took = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
        yield int(took * TOO_LONG) + 2


def finder(number, commands, cpu_s):
    """What finds the mutant; None if nothing does."""
    for (by, command), limit in zip(commands, cpu_s):
        code = run(command, number, limit)
        if code in (-signal.SIGXCPU, -signal.SIGKILL):
            return "time"
        if code != 0:
            return by
    return None


def judged():
    """The survivors that have been judged: file and what was changed."""
    with open(os.path.join(ROOT, "campaigns", "mutants.md"), encoding="utf-8") as file:
        rows = (JUDGED.match(line.rstrip()) for line in file)
        return {(row[1], row[2].replace("\\|", "|")) for row in rows if row}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--every", type=int, default=1, help="plant every N-th mutant (1)")
    parser.add_argument("--from", type=int, default=0, dest="first", help="leave out so many before the first (0)")
    parser.add_argument("--only", default="", help="plant those whose name matches this (all)")
    parser.add_argument("--seeds", type=int, default=1000, help="seeds of torture for each (1000)")
    parser.add_argument("--jobs", type=int, default=os.cpu_count(), help="how many at once (one a core)")
    args = parser.parse_args()
    planted = plant(args.every, args.first, args.only)
    units, torture = build()
    commands = list(steps(units, torture, args.seeds))
    cpu_s = list(limits(commands))
    known, counts, new = judged(), {}, 0
    with ThreadPoolExecutor(args.jobs) as pool:
        found = pool.map(lambda number: finder(number, commands, cpu_s), planted)
        for mutant, by in zip(planted.values(), found):
            counts[by or "nothing"] = counts.get(by or "nothing", 0) + 1
            if by is None:
                is_judged = (mutant.path, mutant.what) in known
                new += not is_judged
                print(f"survives{', judged' if is_judged else ''}: {mutant.name()}", flush=True)
    print("found by " + ", ".join(f"{by}: {count}" for by, count in sorted(counts.items())))
    sys.exit(1 if new else 0)


main()
