#!/usr/bin/env python3
"""Mutants of the FTL, the buffer and the power model: which of them does neither torture nor a unit test find?

    campaigns/mutants.py [--every N] [--from N] [--only REGEX] [--seeds N]

A mutant is a function that returns at once with a constant (true, false, 0, 1, None, an empty vector, nothing), or a
condition that always holds or never does. They are written to a list of planted bugs (target/mutants.diff), and
`cargo xtask planted` looks for each: a tenth of the seeds, then the tests of its crates, then all seeds.

Survivors are printed. Those that campaigns/mutants.md lists are judged there; exits with 1 if another one survives.
"""

import argparse
import os
import re
import subprocess
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
LIST = os.path.join(ROOT, "target", "mutants.diff")
CRATES = ["ftl", "buffer", "power"]
FILES = [
    "crates/device/src/controller/power/cut.rs",
    "crates/device/src/controller/power/plan.rs",
    "crates/device/src/controller/power/restore.rs",
    "crates/device/src/conventional/dump.rs",
]
# Zoned drives have planted bugs of their own; victims, logs, and what is only counted promise nothing.
LEFT_OUT = re.compile(r"/zoned/|/zones/|/gc/|/logs/|(tests|twin|stats|laid|config|lead|zombies|sampled)\.rs$")
# What only checks, shows or measures.
NAMES_LEFT_OUT = {"new", "fmt", "default", "memory_bytes", "check"}
FUNCTION = re.compile(r"^\s*(?:pub(?:\([^)]*\))? )?fn (\w+)(?:<[^>]*>)?\(")
CONST_FUNCTION = re.compile(r"^(\s*)(?:pub(?:\([^)]*\))? )?const fn ")
CONDITION = re.compile(r"^(\s*(?:\} else )?if )(?!.*\blet\b)(.+) \{$")
VALUES = {
    "": ["()"],
    "bool": ["true", "false"],
    "u32": ["0", "1"],
    "u64": ["0", "1"],
    "usize": ["0", "1"],
    "Span": ["leyden_sim::Span::ZERO"],
}
JUDGED = re.compile(r"^\| (\S+) \| (.+?) \| .+ \|$")


class Mutant:
    """A change of one line of a file: what stands there instead while PLANTED is true."""

    def __init__(self, path, at, what, planted):
        self.path, self.at, self.what, self.planted = path, at, what, planted

    def name(self):
        return f"{self.path}:{self.at + 1}: {self.what}"

    def change(self, lines):
        """The lines of the list: as many around the mutant's as tell it apart."""
        stripped = [line.strip() for line in lines]
        for around in range(len(lines)):
            first, end = max(self.at - around, 0), min(self.at + around + 1, len(lines))
            here = stripped[first:end]
            if sum(stripped[at : at + len(here)] == here for at in range(len(lines))) == 1:
                break
        before = [f" {line}" for line in lines[first : self.at]]
        after = [f" {line}" for line in lines[self.at + 1 : end]]
        return [f"--- {self.path}", *before, f"-{lines[self.at]}", *(f"+{line}" for line in self.planted), *after]


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
        planted = [lines[at], f"if PLANTED {{ return {value}; }}"]
        yield Mutant(path, at, f"`{found[1]}` returns {value}", planted)


def conditions(path, lines, at, function):
    """Mutants of the condition in line `at`, if there is one."""
    found = CONDITION.match(lines[at])
    if not found or function in NAMES_LEFT_OUT:
        return
    for holds, how in (("always", "PLANTED || ({})"), ("never", "!PLANTED && ({})")):
        planted = [f"{found[1]}{how.format(found[2])} {{"]
        yield Mutant(path, at, f"`{function}` {holds} takes `if {found[2]}`", planted)


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
        for folder, _, files in os.walk(os.path.join(ROOT, "crates", crate, "src")):
            for file in files:
                path = os.path.relpath(os.path.join(folder, file), ROOT)
                if path.endswith(".rs") and not LEFT_OUT.search(path):
                    yield path
    yield from FILES


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read().split("\n")


def write_list(every, first, only, seeds):
    """Lists every `every`-th mutant from `first` on whose name matches `only`, in the order of files and lines. Returns
    them by their names in the list."""
    everything = [mutant for path in sorted(sources()) for mutant in mutants(path, read(path))]
    found = [mutant for mutant in everything if re.search(only, mutant.name())]
    chosen = {f"M{number}": mutant for number, mutant in enumerate(found[first::every], 1)}
    tests = " or ".join(f"test leyden-{crate} all" for crate in CRATES)
    finders = f"found by conventional {max(seeds // 10, 1)} or {tests} or conventional {seeds}"
    lines = []
    for name, mutant in chosen.items():
        lines += [f"bug {name}", mutant.name(), finders, *mutant.change(read(mutant.path)), ""]
    os.makedirs(os.path.dirname(LIST), exist_ok=True)
    with open(LIST, "w", encoding="utf-8") as file:
        file.write("\n".join(lines))
    print(f"{len(everything)} mutants, {len(chosen)} of them planted", flush=True)
    return chosen


def survivors():
    """The names of the mutants that nothing finds."""
    command = ["cargo", "xtask", "planted", "--tests", "--quiet", "--profile", "try", "--list", LIST]
    hunt = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True)
    ended = False
    for line in hunt.stdout:
        missed = re.match(r"NOT FOUND: (\w+)", line)
        ended = ended or line.startswith("planted: ")
        if missed:
            yield missed[1]
        elif not line.startswith("planted: "):
            sys.exit(line)
    hunt.wait()
    if not ended:
        sys.exit("the hunt did not end")


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
    args = parser.parse_args()
    planted = write_list(args.every, args.first, args.only, args.seeds)
    known, lived, new = judged(), 0, 0
    for name in survivors():
        mutant = planted[name]
        is_judged = (mutant.path, mutant.what) in known
        lived += 1
        new += not is_judged
        print(f"survives{', judged' if is_judged else ''}: {mutant.name()}", flush=True)
    print(f"found: {len(planted) - lived}, survive: {lived}, not judged: {new}")
    sys.exit(1 if new else 0)


main()
