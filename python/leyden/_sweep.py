"""Sweeps and campaigns, here or on the workers of any `concurrent.futures.Executor`."""

from __future__ import annotations

import concurrent.futures
import contextlib
import json
import os
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from leyden import _leyden
from leyden._bundle import FIRST_OPEN, Bundle, again, checksum_of, laid_out, received, same_build, submitted, write
from leyden._config import Value, cores, drives, toml
from leyden._errors import ConfigError, LeydenError, translated
from leyden._table import Table, read

Plan = str | os.PathLike[str] | Mapping[str, Value]
Progress = Callable[[float], object]


def sweep(
    plan: Plan,
    *,
    executor: concurrent.futures.Executor | None = None,
    shards: int | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    series: bool = False,
    retry_failed: bool = False,
    cache: bool = True,
    progress: Progress | None = None,
) -> Table:
    """Runs a plan (docs/sweep.md), and returns its table: the same bytes with any executor.

    Args:
        plan: a file, or a dict of its keys.
        executor: its workers run the shards: a `ProcessPoolExecutor`, `dask_client.get_executor()`, or any other. This process if not given.
        shards: number of parts; 1 without an executor, 64 with one, and never more than there are points.
        out: keep the parts, and `runs.parquet`, in this folder: a sweep that ended early goes on there.
        jobs: runs that a shard makes at once; as many as there are cores without an executor, 1 with one.
        series: keep the figures of each interval of each run, too, in `series.parquet`; needs `out`.
        retry_failed: run points again that failed; with an executor, the shards that have some.

    Inputs travel by checksum: a worker that has them is not sent them again. Workers need this package, of the same build.

    Raises:
        ConfigError: the plan is wrong, or `out` is of another plan or build.
        LeydenError: shards were not finished, since their workers failed; the others are kept in `out`.
    """
    if shards is not None and shards < 1:
        raise ValueError("shards is 1 or more")
    if series and out is None:
        raise ConfigError("series are kept in a folder\n  help: name one with out=")
    with contextlib.ExitStack() as stack:
        path, text = _plan_of(plan)
        folder = Path(out if out is not None else stack.enter_context(tempfile.TemporaryDirectory(prefix="leyden-")))
        with translated():
            points, _ = _leyden.plan_points(path, text)
        parts = min(shards or (64 if executor else 1), max(points, 1))
        if executor is None:
            threads = cores(jobs)
            for number in range(1, parts + 1):
                told = _share(progress, number - 1, parts)
                with translated():
                    _leyden.sweep_shard(path, text, f"{number}/{parts}", folder, threads, series, retry_failed, drives(cache), told)
        else:
            _spread(executor, path, text, parts, folder, jobs or 1, series, retry_failed, cache, progress)
        runs = folder / "runs.parquet"
        with translated():
            _leyden.sweep_merge(folder, runs, folder / "series.parquet" if series else None, False)
        return read(os.fspath(runs))


def merge(
    folder: str | os.PathLike[str],
    output: str | os.PathLike[str],
    *,
    series: str | os.PathLike[str] | None = None,
    partial: bool = False,
) -> Table:
    """Joins the shards' results in `folder` into the file `output`, and returns it, as `leyden sweep merge`."""
    with translated():
        _leyden.sweep_merge(folder, output, series, partial)
        return read(os.fspath(output))


def sweep_status(folder: str | os.PathLike[str]) -> dict[str, Any]:
    """How far a sweep is: its `shards`, those that are `whole`, and the numbers of those that are `missing`."""
    with translated():
        shards, whole, missing = _leyden.sweep_status(folder)
        return {"shards": shards, "whole": whole, "missing": missing}


def torture(
    seeds: int,
    *,
    start: int = 0,
    kind: str = "conventional",
    executor: concurrent.futures.Executor | None = None,
    batch: int = 500,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Cuts the power of random drives and checks every guarantee, as `leyden torture --json`, with the same digest for any executor.

    Args:
        seeds, start: the number of seeds, and the first.
        kind: `conventional`, `zoned` or `zoned_block`.
        executor: its workers run the batches; this process if not given.
        batch: seeds of a task, the cost of a lost worker: another runs them again, or this process if no worker is left.

    >>> import leyden
    >>> leyden.torture(4)["violations"]
    0
    """
    if seeds < 1 or batch < 1:
        raise ValueError("seeds and batch are 1 or more")
    if executor is None:
        with translated():
            summary: dict[str, Any] = json.loads(_leyden.torture(start, seeds, kind, cores(jobs), progress))
            return summary
    batches = [(at, min(batch, start + seeds - at), kind, jobs or 1, _leyden.build) for at in range(start, start + seeds, batch)]
    tasks = [submitted(executor, _torture_batch, *one) for one in batches]
    summaries = []
    try:
        for number, (task, one) in enumerate(zip(tasks, batches, strict=True)):
            try:
                text = task.result()
            except LeydenError:
                raise
            except Exception as error:
                text = again(executor, error, f"seeds {one[0]} to {one[0] + one[1] - 1}", _torture_batch, *one)
            summaries.append(json.loads(text))
            if progress is not None:
                progress((number + 1) / len(tasks))
    except BaseException:
        for task in tasks:
            task.cancel()
        raise
    return _summed(summaries)


def _torture_batch(start: int, seeds: int, kind: str, jobs: int, build: str) -> str:
    same_build(build)
    with translated():
        return _leyden.torture(start, seeds, kind, jobs, None)


def _summed(summaries: list[dict[str, Any]]) -> dict[str, Any]:
    """The summary of all batches. Digests of seeds add up in any order."""
    whole: dict[str, Any] = {}
    for summary in summaries:
        for key, value in summary.items():
            whole[key] = _added(whole.get(key), value)
    # A speed is one machine's.
    whole.pop("cuts_per_s", None)
    digest = sum(int(summary["digest"], 16) for summary in summaries) % 2**64
    whole["digest"] = f"{digest:016x}"
    return whole


def _added(left: Any, right: Any) -> Any:
    if left is None:
        return right
    if isinstance(right, dict):
        return {key: _added(left.get(key), right.get(key)) for key in {**left, **right}}
    if isinstance(right, (int, float, list)) and not isinstance(right, bool):
        return left + right
    return left if right is None else right


def _plan_of(plan: Plan) -> tuple[str, str]:
    """Where a plan stands, and its text."""
    if isinstance(plan, Mapping):
        return os.path.join(os.getcwd(), "plan"), "\n".join(f"{toml(key)} = {toml(value)}" for key, value in plan.items())
    path = os.path.abspath(os.fspath(plan))
    return path, Path(path).read_text(encoding="utf-8")


def _share(progress: Progress | None, number: int, of: int) -> Progress | None:
    return None if progress is None else lambda fraction: progress((number + fraction) / of)


def _spread(
    executor: concurrent.futures.Executor,
    path: str,
    text: str,
    parts: int,
    folder: Path,
    jobs: int,
    series: bool,
    retry_failed: bool,
    cache: bool,
    progress: Progress | None,
) -> None:
    """Has the shards run by the executor's workers, and keeps their parts in `folder`."""
    bundle, contents = _bundle(path, text)
    folder.mkdir(parents=True, exist_ok=True)
    open_: list[int] = []
    for number in range(1, parts + 1):
        if not (folder / f"part-{number:05}-of-{parts:05}.parquet").exists():
            open_.append(number)
            continue
        # Finished before: this looks whether it is of this plan and build.
        with translated():
            _, _, failed = _leyden.sweep_shard(path, text, f"{number}/{parts}", folder, 1, series, False, None, None)
        if failed and retry_failed:
            open_.append(number)

    def submit(number: int, sent: dict[str, bytes]) -> concurrent.futures.Future[tuple[list[str], dict[str, bytes]]]:
        return submitted(executor, _run_shard, bundle, sent, f"{number}/{parts}", jobs, series, cache)

    waiting: dict[concurrent.futures.Future[tuple[list[str], dict[str, bytes]]], int] = {}
    failures: list[str] = []
    todo, finished = list(reversed(open_)), 0
    try:
        while waiting or todo:
            # Few at first: each worker that lacks the inputs is sent them, and then has them for the others.
            while todo and len(waiting) < FIRST_OPEN + 4 * finished:
                number = todo.pop()
                waiting[submit(number, {})] = number
            done, _ = concurrent.futures.wait(waiting, return_when=concurrent.futures.FIRST_COMPLETED)
            for task in done:
                number = waiting.pop(task)
                try:
                    lacking, files = task.result()
                except ConfigError:
                    raise
                except Exception as error:
                    failures.append(f"shard {number}/{parts}: {type(error).__name__}: {error}")
                    finished += 1
                    continue
                if lacking:
                    waiting[submit(number, {checksum: contents[checksum].read_bytes() for checksum in lacking})] = number
                    continue
                for name, content in files.items():
                    write(folder / name, content)
                finished += 1
                if progress is not None:
                    progress(finished / len(open_))
    except BaseException:
        for task in waiting:
            task.cancel()
        raise
    if failures:
        raise LeydenError(
            f"{len(failures)} of {parts} shards were not finished: {failures[0]}\n"
            "  help: the others are kept if `out` names a folder; the same call resumes"
        )


def _run_shard(bundle: Bundle, sent: dict[str, bytes], shard: str, jobs: int, series: bool, cache: bool) -> tuple[list[str], dict[str, bytes]]:
    """On a worker: the checksums of inputs that are not here, or else the files of the shard's part."""
    lacking, contents = received(bundle, sent)
    if lacking:
        return lacking, {}
    with tempfile.TemporaryDirectory(prefix="leyden-") as folder, laid_out(bundle, contents) as root:
        out = Path(folder)
        with translated():
            _leyden.sweep_shard(root / bundle.path, bundle.text, shard, out, jobs, series, False, drives(cache), None)
        return [], {file.name: file.read_bytes() for file in out.glob("*.parquet")}


def _bundle(path: str, text: str) -> tuple[Bundle, dict[str, Path]]:
    with translated():
        files = [os.path.abspath(file) for file in _leyden.plan_files(path, text)]
    root = os.path.commonpath([os.path.dirname(path), *(os.path.dirname(file) for file in files)])
    sums: dict[str, str] = {}
    contents: dict[str, Path] = {}
    for file in files:
        checksum = checksum_of(Path(file))
        sums[os.path.relpath(file, root)] = checksum
        contents[checksum] = Path(file)
    # Scenarios are copied: what they extend is looked for beside them. Traces may be large.
    copied = frozenset(name for name in sums if name.endswith(".toml"))
    bundle = Bundle(_leyden.build, os.path.relpath(path, root), text, sums, copied)
    # A worker sees what stands below the bundle's folder, and nothing else.
    with laid_out(bundle, contents) as laid:
        real = os.path.realpath(laid)
        with translated():
            found = [os.path.abspath(file) for file in _leyden.plan_files(laid / bundle.path, text)]
        outside = [file for file in found if os.path.commonpath([real, os.path.realpath(os.path.dirname(file))]) != real]
    if outside:
        raise ConfigError(f"{outside[0]} is named by an absolute path, and a worker has no such file\n  help: name it relative to the plan")
    return bundle, contents
