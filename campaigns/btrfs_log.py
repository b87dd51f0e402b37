#!/usr/bin/env python3
"""What the log of Btrfs keeps of names: calls on a real file system, and its files after a power cut behind the last of them.

Each line of crates/crashtest/src/files/test/btrfs.txt has calls, and behind `=>` the files that were left. Tests hold the
rules of Btrfs against them; a `~>` stands where the rules allow more. `--record` writes the file anew by the kernel of this
machine; else each line that differs is told.

    campaigns/btrfs_log.py
    campaigns/btrfs_log.py --record

Takes root. Ends with 1 if a line differs, and with 77 if this machine cannot make a Btrfs.
"""

import argparse
import ctypes
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

from commands import lacks, run

CASES = Path(__file__).resolve().parent.parent / "crates/crashtest/src/files/test/btrfs.txt"
# No transaction ends by itself meanwhile.
COMMIT_S = 300
IMAGE_BYTES = 256 << 20


def synced(path: Path) -> None:
    opened = os.open(path, os.O_RDONLY)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def swapped(one: Path, other: Path) -> None:
    # renameat2(2): AT_FDCWD, RENAME_EXCHANGE
    done = ctypes.CDLL(None, use_errno=True).renameat2(-100, bytes(one), -100, bytes(other), 2)
    if done != 0:
        raise OSError(ctypes.get_errno(), f"{one} and {other}")


CALLS: dict[str, Callable[..., object]] = {
    "put": lambda path, text: path.write_text(text),
    "mkdir": lambda path: path.mkdir(),
    "rmdir": lambda path: path.rmdir(),
    "rm": lambda path: path.unlink(),
    "fsync": synced,
}
MOVES: dict[str, Callable[[Path, Path], object]] = {"mv": os.rename, "ln": os.link, "swap": swapped}


def call(top: Path, words: list[str]) -> None:
    if words[0] in MOVES:
        MOVES[words[0]](top / words[1], top / words[2])
    else:
        CALLS[words[0]](top / words[1], *words[2:])


def made(top: Path, calls: str) -> None:
    for words in calls.split(";"):
        call(top, words.split())


def left(top: Path) -> str:
    """Folders, and files with their bytes."""
    paths = sorted(top.rglob("*"))
    return " ".join(f"{path.relative_to(top)}/" if path.is_dir() else f"{path.relative_to(top)}={path.read_text()}" for path in paths)


def draw(seed: int) -> str:
    """Calls on few names that succeed in this order, the last one a sync."""
    rng = random.Random(seed)
    # Files by number, and where they are; folders have none.
    names: dict[str, int | None] = {"d": None, "d/a": 1, "d/b": 2, "t": 3, "e": None}
    calls, newest = [], 3
    for _ in range(rng.randint(3, 9)):
        files = [name for name, file in names.items() if file is not None]
        folders = [name for name, file in names.items() if file is None]
        target = rng.choice(["", *(f"{folder}/" for folder in folders)]) + rng.choice("abtxd")
        is_free = names.get(target, 0) is not None
        what = rng.choices(["put", "mv", "ln", "rm", "mkdir", "mvdir", "fsync"], [4, 5, 2, 2, 1, 1, 6])[0]
        if what == "put" and is_free:
            newest += 1
            names.setdefault(target, newest)
            calls.append(f"put {target} {newest}")
        elif what == "mv" and files and is_free:
            name = rng.choice(files)
            if names.get(target) != names[name]:
                names[target] = names.pop(name)
                calls.append(f"mv {name} {target}")
        elif what == "ln" and files and target not in names:
            name = rng.choice(files)
            names[target] = names[name]
            calls.append(f"ln {name} {target}")
        elif what == "rm" and files:
            name = rng.choice(files)
            del names[name]
            calls.append(f"rm {name}")
        elif what == "mkdir" and target not in names:
            names[target] = None
            calls.append(f"mkdir {target}")
        elif what == "mvdir" and folders and target not in names:
            name = rng.choice(folders)
            if not f"{target}/".startswith(f"{name}/"):
                moved = {path: file for path, file in names.items() if path == name or path.startswith(f"{name}/")}
                names = {path: file for path, file in names.items() if path not in moved}
                names |= {target + path.removeprefix(name): file for path, file in moved.items()}
                calls.append(f"mv {name} {target}")
        elif what == "fsync":
            calls.append(f"fsync {rng.choice([*files, *files, *folders, '.'])}")
    name = rng.choice([name for name, file in names.items() if file is not None] or ["."])
    return "; ".join([*calls, f"fsync {name}"])


def mounted(image: Path, top: Path, action: Callable[[], str]) -> str:
    run("mount", "-o", f"loop,commit={COMMIT_S}", str(image), str(top))
    try:
        return action()
    finally:
        run("umount", str(top))


def cut(folder: Path, setup: str, calls: str) -> str:
    """The files that a power cut leaves right behind the last call."""
    image, copy, top = folder / "image", folder / "copy", folder / "top"
    top.mkdir(exist_ok=True)
    with image.open("wb") as new:
        new.truncate(IMAGE_BYTES)
    run("mkfs.btrfs", "-q", "-f", str(image))

    def work() -> str:
        made(top, setup)
        run("sync", "-f", str(top))
        made(top, calls)
        run("cp", "--sparse=always", str(image), str(copy))
        return ""

    mounted(image, top, work)
    return mounted(copy, top, lambda: left(top))


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--record", action="store_true", help="write what this kernel leaves")
    parser.add_argument("--drawn", type=int, default=0, metavar="N", help="and N works that are drawn")
    parser.add_argument("--seed", type=int, default=1, help="the first one's (default: 1)")
    args = parser.parse_args()
    if os.geteuid() != 0:
        lacks("this takes root")
    if shutil.which("mkfs.btrfs") is None:
        lacks("there is no mkfs.btrfs (btrfs-progs)")
    if "btrfs" not in Path("/proc/filesystems").read_text():
        subprocess.run("modprobe -q btrfs", shell=True, check=False)
    if "btrfs" not in Path("/proc/filesystems").read_text():
        lacks("this kernel has no Btrfs")
    lines, differ, setup = [], 0, ""
    with tempfile.TemporaryDirectory(prefix="leyden-btrfs-") as folder:
        drawn = [draw(args.seed + number) for number in range(args.drawn)]
        for line in [*CASES.read_text().splitlines(), *drawn]:
            if line.startswith("setup:"):
                setup = line.removeprefix("setup:")
            elif line and not line.startswith("#"):
                mark = "~>" if "~>" in line else "=>"
                calls, _, known = (part.strip() for part in line.partition(mark))
                found = cut(Path(folder), setup, calls)
                if known and known != found:
                    differ += 1
                    print(f"{calls}\n  known: {known}\n  left:  {found}")
                line = f"{calls} {mark} {found}"
            lines.append(line)
    cases = sum(">" in line for line in lines)
    print(f"Linux {os.uname().release}: {cases} works, {differ} differ")
    if args.record:
        CASES.write_text("\n".join(lines) + "\n")
        return 0
    return 1 if differ else 0


if __name__ == "__main__":
    sys.exit(main())
