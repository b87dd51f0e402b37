"""Search for the best designs by several figures at once."""

from __future__ import annotations

import concurrent.futures
import os
import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import leyden
from leyden._config import Value
from leyden._errors import ConfigError
from leyden._sweep import sweep

#: Chosen points in a row, all tried before, after which a search ends.
_BARREN = 40
#: NSGA-II's population is no smaller: of few parents all children are alike.
_POPULATION = 8


class Search:
    """What a search has found.

    Attributes:
        points: each tried point as a dict: varied keys, objectives (means over its seeds), `seeds`, `error`, and `dominated_by`, the place
            in this list of a point that is better; None on the frontier.
        runs: the number of runs.
        study: Optuna's study, for its plots and importances.
    """

    def __init__(self, points: list[dict[str, Any]], runs: int, study: Any) -> None:
        self.points, self.runs, self.study = points, runs, study

    @property
    def frontier(self) -> list[dict[str, Any]]:
        """The points that no other dominates."""
        return [point for point in self.points if point["error"] is None and point["dominated_by"] is None]

    def __repr__(self) -> str:
        return f"<leyden.Search: {len(self.points)} points, {len(self.frontier)} on the frontier, {self.runs} runs>"


def search(
    base: str | os.PathLike[str],
    *,
    space: Mapping[str, Sequence[Value] | Mapping[str, Value]],
    minimize: Sequence[str] = (),
    maximize: Sequence[str] = (),
    runs: int,
    seeds: int = 1,
    set: Mapping[str, Value] | None = None,
    tolerance: float = 0.005,
    batch: int = 8,
    seed: int = 0,
    sampler: Any = None,
    executor: concurrent.futures.Executor | None = None,
    out: str | os.PathLike[str] | None = None,
    jobs: int | None = None,
    cache: bool = True,
    progress: Callable[[float], object] | None = None,
) -> Search:
    """Looks for the designs that are best by several figures at once. Needs Optuna (`pip install optuna`).

    Args:
        base, set: a scenario's file or name, and overrides by dotted key.
        space: the varied keys. A list of values, or a range as in a plan: `{"from": "1 MiB", "to": "64 MiB", "scale": "log", "step": "1 MiB"}`
            (`from` and `to` have one unit, and sizes a step).
        minimize, maximize: columns of the table of runs (docs/reference/metrics.md), such as `flash.waf`.
        runs: the most runs.
        seeds: runs of a point that is on the frontier. One that its first seed puts behind another is not run again.
        tolerance: figures within this share of each other count as equal.
        batch: points that are chosen at once.
        seed, sampler: of the choice of points; NSGA-II if no sampler of Optuna is given.
        executor, out, jobs, cache: as for `sweep`. The same call with the same `out` resumes an interrupted one.
        progress: called with the share of `runs` that is used.

    Raises:
        ConfigError: a key, a value or an objective is wrong.
        ImportError: Optuna is not installed.
    """
    objectives = [*minimize, *maximize]
    if not objectives or not space:
        raise ValueError("a search needs a space, and something to minimize or maximize")
    if runs < 1 or seeds < 1 or batch < 1:
        raise ValueError("runs, seeds and batch are 1 or more")
    import optuna  # optional

    optuna.logging.set_verbosity(optuna.logging.WARNING)
    first = int(leyden.check(base, set=set)["seed"])
    study = optuna.create_study(
        directions=[optuna.study.StudyDirection.MINIMIZE] * len(minimize) + [optuna.study.StudyDirection.MAXIMIZE] * len(maximize),
        sampler=sampler or optuna.samplers.NSGAIISampler(population_size=max(batch, _POPULATION), seed=seed),
    )
    tried = _Tried(base, set, objectives, len(minimize), tolerance, first, executor, out, jobs, cache)
    barren = 0
    while tried.runs < runs and barren < _BARREN:
        asked = []
        fresh: list[dict[str, Value]] = []
        for _ in range(batch):
            trial = study.ask()
            point = {key: _suggested(trial, key, values) for key, values in space.items()}
            asked.append((trial, point))
            if tried.place(point) is None and point not in fresh and len(fresh) < runs - tried.runs:
                fresh.append(point)
        barren = 0 if fresh else barren + batch
        tried.run(fresh, [first])
        tried.refuse_nothing()
        if seeds > 1:
            contenders = [point for point in tried.frontier() if tried.seeds_of(point) == 1]
            most = (runs - tried.runs) // (seeds - 1)
            tried.run(contenders[:most], list(range(first + 1, first + seeds)))
        for trial, point in asked:
            values = tried.means(point)
            study.tell(trial, values, state=None if values else optuna.trial.TrialState.FAIL)
        if progress is not None:
            progress(min(tried.runs / runs, 1.0))
    return Search(tried.told(), tried.runs, study)


def _suggested(trial: Any, key: str, values: Sequence[Value] | Mapping[str, Value]) -> Value:
    if not isinstance(values, Mapping):
        if isinstance(values, str) or not values:
            raise ConfigError(f"`{key}` has no list of values\n  help: write a list, or a range with `from` and `to`")
        return values[trial.suggest_categorical(key, list(range(len(values))))]
    unknown = [name for name in values if name not in ("from", "to", "scale", "step")]
    if unknown or "from" not in values or "to" not in values:
        raise ConfigError(f"`{key}` is no range\n  help: it has `from` and `to`, and may have `scale` and `step`")
    (least, unit), (most, other) = _quantity(key, values["from"]), _quantity(key, values["to"])
    step = _quantity(key, values["step"]) if "step" in values else None
    if unit != other or (step and step[1] != unit):
        raise ConfigError(f"`{key}` has a range of several units\n  help: write `from`, `to` and `step` in one unit")
    is_log = values.get("scale", "linear") == "log"
    # On a logarithmic scale Optuna takes no step: the value is rounded to one.
    value = trial.suggest_float(key, least, most, log=is_log, step=None if is_log or not step else step[0])
    if step:
        value = round(value / step[0]) * step[0]
    if isinstance(values["from"], int) and isinstance(values["to"], int):
        return int(round(value))
    return f"{value:.12g} {unit}" if unit else float(value)


def _quantity(key: str, value: Value) -> tuple[float, str]:
    found = re.fullmatch(r"\s*([0-9][0-9_.eE+-]*)\s*(\D*)", str(value))
    try:
        return float(found[1].replace("_", "")), found[2].strip()  # type: ignore[index]
    except (TypeError, ValueError):
        raise ConfigError(f"`{key}`: {value!r} is no number with a unit") from None


class _Tried:
    """Points, and the figures of their runs."""

    def __init__(
        self,
        base: str | os.PathLike[str],
        set: Mapping[str, Value] | None,
        objectives: list[str],
        minimized: int,
        tolerance: float,
        first: int,
        executor: concurrent.futures.Executor | None,
        out: str | os.PathLike[str] | None,
        jobs: int | None,
        cache: bool,
    ) -> None:
        self._base, self._set, self._objectives, self._tolerance = base, dict(set or {}), objectives, tolerance
        self._signs = [1.0] * minimized + [-1.0] * (len(objectives) - minimized)
        self._executor, self._out, self._jobs, self._cache = executor, out, jobs, cache
        self._points: list[dict[str, Value]] = []
        self._figures: list[list[list[float]]] = []
        self._errors: list[str | None] = []
        self._sweeps = 0
        self.runs = 0

    def place(self, point: dict[str, Value]) -> int | None:
        return self._points.index(point) if point in self._points else None

    def run(self, points: list[dict[str, Value]], seeds: list[int]) -> None:
        """Runs each point with each seed."""
        if not points:
            return
        self._sweeps += 1
        base = os.fspath(self._base)
        if os.path.exists(base):
            base = os.path.relpath(base)  # a plan's files travel if they are named relative to it
        plan = {"base": base, "seeds": seeds, "set": self._set, "points": points}
        out = None if self._out is None else Path(self._out, f"sweep-{self._sweeps:04}")
        table = sweep(plan, executor=self._executor, shards=len(points) if self._executor else None, out=out, jobs=self._jobs, cache=self._cache)
        self.runs += len(table)
        columns = [self._column(table, name) for name in self._objectives]
        errors = table["error"]
        for number, point in enumerate(points):
            place = self.place(point)
            if place is None:
                place = len(self._points)
                self._points.append(point)
                self._figures.append([])
                self._errors.append(None)
            for row in range(number * len(seeds), (number + 1) * len(seeds)):
                values = [column[row] for column in columns]
                if errors[row] is not None:
                    self._errors[place] = str(errors[row])
                elif any(value is None for value in values):
                    self._errors[place] = f"it has no {self._objectives[values.index(None)]}"
                else:
                    self._figures[place].append([float(value) for value in values])

    def refuse_nothing(self) -> None:
        """Refuses a space of which nothing can be run."""
        errors = [error for error in self._errors if error is not None]
        if errors and len(errors) == len(self._errors):
            leyden.check(self._base, set={**self._set, **self._points[0]})  # its message names the nearest key
            raise ConfigError(f"no point could be run: {errors[0]}")

    def _column(self, table: leyden.Table, name: str) -> list[Any]:
        if name in table.columns:
            return list(table[name])
        if all(error is not None for error in table["error"]):
            return [None] * len(table)  # without a run there are no figures
        raise ConfigError(f"a run has no figure `{name}`\n  help: docs/reference/metrics.md lists them")

    def seeds_of(self, point: dict[str, Value]) -> int:
        return len(self._figures[self._points.index(point)])

    def means(self, point: dict[str, Value]) -> list[float] | None:
        """The means of a point's figures; None if a run has failed, or none was made."""
        place = self.place(point)
        return None if place is None else self._means(place)

    def _means(self, place: int) -> list[float] | None:
        figures = self._figures[place]
        if self._errors[place] is not None or not figures:
            return None
        return [sum(column) / len(figures) for column in zip(*figures, strict=True)]

    def _dominates(self, one: list[float], other: list[float]) -> bool:
        """Worse in nothing and better in something, by more than the tolerance."""
        pairs = [(a * sign, b * sign, abs(b) * self._tolerance) for a, b, sign in zip(one, other, self._signs, strict=True)]
        return all(a <= b + slack for a, b, slack in pairs) and any(a < b - slack for a, b, slack in pairs)

    def _dominator(self, place: int) -> int | None:
        mine = self._means(place)
        for other in range(len(self._points)):
            theirs = self._means(other)
            if mine and theirs and other != place and self._dominates(theirs, mine):
                return other
        return None

    def frontier(self) -> list[dict[str, Value]]:
        places = [place for place in range(len(self._points)) if self._means(place) and self._dominator(place) is None]
        return [self._points[place] for place in places]

    def told(self) -> list[dict[str, Any]]:
        told = []
        for place, point in enumerate(self._points):
            means: Sequence[float | None] = self._means(place) or [None] * len(self._objectives)
            told.append(
                {
                    **point,
                    **dict(zip(self._objectives, means, strict=True)),
                    "seeds": len(self._figures[place]),
                    "error": self._errors[place],
                    "dominated_by": self._dominator(place),
                }
            )
        return told
