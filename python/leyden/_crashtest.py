"""Crash tests of recorded software, here or on the workers of any `concurrent.futures.Executor`."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from leyden import _leyden
from leyden._bundle import FIRST_OPEN, Bundle, again, checksum_of, laid_out, received, submitted
from leyden._config import cores
from leyden._errors import ConfigError, LeydenError, translated

#: A worker's process: it imports the native module of this package, whatever else its interpreter finds.
_WORKER = "import sys; sys.path.insert(0, sys.argv[1]); from leyden import _leyden; _leyden.crashtest_work(sys.argv[2])"

#: What depends on the machine, or on who tried which state.
_MACHINES = ("seconds", "inferred")


def record_files(
    folder: str | os.PathLike[str],
    *,
    work: str,
    check: str,
    setup: str | None = None,
    rules: str = "xfs",
    check_server: bool = False,
    ack_lines: str | None = None,
    timeout_s: float = 30.0,
) -> dict[str, int]:
    """Records a program's calls on files for a crash test, as `leyden crashtest record --files`. Needs no root.

    Args:
        folder: a new folder for the recording and all results.
        work, check, setup: shell commands, run in this process's folder. `$LEYDEN_MOUNT` is where their files are; `leyden crashtest
            --help` lists the other variables.
        rules: the promises of files: `xfs`, `ext4`, `btrfs` or `posix`.
        check_server, ack_lines, timeout_s: as the command's options.

    Returns:
        The numbers of recorded `events`, `syncs` and `promises`.
    """
    if rules not in ("xfs", "ext4", "btrfs", "posix"):
        raise ConfigError(f"there are no rules `{rules}`\n  help: write xfs, ext4, btrfs or posix")
    plan: dict[str, Any] = {
        "fs": "none",
        "mkfs": [],
        "mount_options": None,
        "size_bytes": 0,
        "sector_bytes": 0,
        "setup": setup,
        "work": work,
        "ack_prefix": ack_lines,
        "check": check,
        "is_check_server": check_server,
        "fsck": False,
        "timeout_ms": int(timeout_s * 1000),
        "cwd": os.getcwd(),
        "files": rules,
    }
    with translated():
        events, syncs, promises = _leyden.crashtest_record(folder, json.dumps(plan), _how(None, False, 1))
    return {"events": events, "syncs": syncs, "promises": promises}


def crashtest(
    folder: str | os.PathLike[str],
    *,
    states: int = 500,
    model: str | Sequence[str] = "adversarial",
    seed: int = 1,
    atom: int | None = None,
    extract: bool = False,
    trust: bool = False,
    inputs: Sequence[str | os.PathLike[str]] = (),
    executor: concurrent.futures.Executor | None = None,
    batch: int = 200,
    jobs: int | None = None,
    progress: Callable[[float], object] | None = None,
) -> dict[str, Any]:
    """Cuts the power of a recorded run at many moments, and checks each state, as `leyden crashtest run --json`; adds a digest.

    Args:
        folder: a recording of `record_files` or `leyden crashtest record`. Results and findings are kept there, for `leyden crashtest
            show`, `replay` and `shrink`; findings are not explained.
        states: their number, of each model.
        model: `adversarial`, `realistic` or `lying`, or several of them.
        seed, atom, extract, trust: as the command's options.
        inputs: files that the check needs, below the folder in which the run was recorded. With an executor they travel with the
            recording; without any, workers need that folder.
        executor: its workers try batches of states; this machine if not given. Workers need this package and the checked software.
        batch: states of a task, the cost of a lost worker: another tries them again, or this process if no worker is left. Each batch
            starts processes.
        jobs: states at once; as many as there are cores without an executor, 1 with one.
        progress: called with the share that is done, 0 to 1.

    Digest and verdicts do not depend on the executor.

    Raises:
        ConfigError: there is no such recording, or it is not trusted.
        RunError: states could not be tried.
    """
    if states < 1 or batch < 1:
        raise ValueError("states and batch are 1 or more")
    models = [model] if isinstance(model, str) else list(model)
    with translated():
        plan, recording = json.loads(_leyden.crashtest_plan(folder, trust))
    spread = None
    with contextlib.ExitStack() as stack:
        if executor is not None:
            spread = _Batches(executor, *_bundle(Path(os.path.realpath(folder)), plan, Path(recording), inputs), atom, extract, jobs or 1)
            stack.callback(spread.cancel)
        how = _how(atom, extract, cores(jobs))
        with translated():
            text, digest = _leyden.crashtest_run(folder, models, states, seed, how, spread, batch, progress)
    summary: dict[str, Any] = json.loads(text)
    for part in (summary["control"], *summary["models"]):
        for key in _MACHINES:
            part.pop(key, None)
    return {**summary, "digest": digest}


def read_crashtest(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """The results of a recording's last run, as `leyden crashtest run --json` prints them."""
    path = Path(folder, "summary.json")
    try:
        summary: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except json.JSONDecodeError as error:
        raise ConfigError(f"{path}: {error}\n  help: run the crash test again") from None
    except FileNotFoundError:
        raise ConfigError(f"{path} is not there\n  help: `leyden.crashtest` or `leyden crashtest run` makes it") from None
    return summary


def _how(atom: int | None, extract: bool, jobs: int) -> tuple[str, list[str], int | None, bool, int]:
    package = os.path.dirname(os.path.dirname(os.path.abspath(_leyden.__file__)))
    return sys.executable, ["-I", "-S", "-c", _WORKER, package], atom, extract, jobs


class _Batches:
    """Batches of states on the workers of an executor, as the native module asks for them."""

    def __init__(
        self,
        executor: concurrent.futures.Executor,
        bundle: Bundle,
        contents: Mapping[str, Path],
        folder: Path,
        atom: int | None,
        extract: bool,
        jobs: int,
    ) -> None:
        self._executor, self._bundle, self._contents, self._folder = executor, bundle, contents, folder
        self._how = (atom, extract, jobs)
        self._open: dict[concurrent.futures.Future[tuple[list[str], str]], tuple[int, str]] = {}
        self._finished = 0

    def wants(self) -> bool:
        return len(self._open) < FIRST_OPEN + 4 * self._finished

    def submit(self, number: int, states: str) -> None:
        self._send(number, states, {})

    def _send(self, number: int, states: str, sent: dict[str, bytes]) -> None:
        task = submitted(self._executor, _try, self._bundle, sent, os.fspath(self._folder), states, *self._how)
        self._open[task] = number, states

    def wait(self) -> tuple[int, str]:
        while True:
            done, _ = concurrent.futures.wait(self._open, return_when=concurrent.futures.FIRST_COMPLETED)
            for task in done:
                number, states = self._open.pop(task)
                try:
                    lacking, outcomes = task.result()
                except LeydenError:
                    raise
                except Exception as error:
                    lacking, outcomes = self._again(error, number, states)
                if not lacking:
                    self._finished += 1
                    return number, outcomes
                self._send(number, states, {checksum: self._contents[checksum].read_bytes() for checksum in lacking})

    def _again(self, error: Exception, number: int, states: str) -> tuple[list[str], str]:
        """The batch of a lost worker, with all inputs: nobody knows what the next worker has."""
        sent = {checksum: file.read_bytes() for checksum, file in self._contents.items()}
        what = f"states from {number + 1} on"
        return again(self._executor, error, what, _try, self._bundle, sent, os.fspath(self._folder), states, *self._how)

    def cancel(self) -> None:
        for task in self._open:
            task.cancel()


def _bundle(folder: Path, plan: dict[str, Any], recording: Path, inputs: Sequence[str | os.PathLike[str]]) -> tuple[Bundle, dict[str, Path], Path]:
    """The recording in `crash`, and what its check needs in `cwd`."""
    sums, contents, copied = {}, {}, set()
    for name, file in [(f"crash/{recording.name}", recording), *_needed(Path(plan["cwd"]), inputs)]:
        checksum = checksum_of(file)
        sums[name] = checksum
        contents[checksum] = file
        if name.startswith("cwd/"):
            copied.add(name)  # the check may change it
    return Bundle(_leyden.build, "crash/plan.json", json.dumps(plan), sums, frozenset(copied)), contents, folder


def _needed(cwd: Path, inputs: Sequence[str | os.PathLike[str]]) -> Iterator[tuple[str, Path]]:
    for given in inputs:
        file = Path(os.path.realpath(cwd / given))
        if not file.is_relative_to(os.path.realpath(cwd)):
            raise ConfigError(f"{os.fspath(given)} is not below {cwd}, where the run was recorded\n  help: record where the check stands")
        name = f"cwd/{file.relative_to(os.path.realpath(cwd))}"
        if not file.is_file():
            raise ConfigError(f"{os.fspath(given)}: there is no such file below {cwd}")
        yield name, file


def _try(bundle: Bundle, sent: dict[str, bytes], home: str, states: str, atom: int | None, extract: bool, jobs: int) -> tuple[list[str], str]:
    """On a worker: the checksums of inputs that are not here, or else the outcomes of the states."""
    lacking, contents = received(bundle, sent)
    if lacking:
        return lacking, ""
    with laid_out(bundle, contents) as root:
        plan = json.loads(bundle.text)
        if bundle.copied:
            plan["cwd"] = os.fspath(root / "cwd")
            for name in bundle.copied:
                os.chmod(root / name, 0o755)
        elif not os.path.isdir(plan["cwd"]):
            raise ConfigError(f"a worker has no folder {plan['cwd']}\n  help: name what the check needs with inputs=")
        (root / bundle.path).write_text(json.dumps(plan), encoding="utf-8")
        with translated():
            outcomes = _leyden.crashtest_try(root / "crash", _how(atom, extract, jobs), states)
        # Where it was laid out says nothing of the software.
        for here, there in ((root / "crash", home), (root / "cwd", json.loads(bundle.text)["cwd"])):
            outcomes = outcomes.replace(json.dumps(os.fspath(here))[1:-1], json.dumps(os.fspath(there))[1:-1])
        shutil.rmtree(root / "crash" / ".room", ignore_errors=True)
        return [], outcomes
