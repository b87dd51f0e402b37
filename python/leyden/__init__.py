"""Leyden: a software-defined flash SSD whose power can be cut at any nanosecond.

Runs release the interpreter's lock, heed Ctrl-C, and take `progress`, a function that is called with the share that is done. Errors are
`ConfigError` and `RunError`, with the key, its place and a remedy.
"""

from __future__ import annotations

import json
import operator
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from leyden import _leyden
from leyden._config import Scenario, Value, cores, drives, settings, source, toml
from leyden._crashtest import crashtest, read_crashtest, record_files
from leyden._drive import FLUSH, READ, TRIM, WRITE, WRITE_ZEROES, Completions, Drive
from leyden._errors import ConfigError, LeydenError, RunError, translated
from leyden._search import Search, search
from leyden._sweep import merge, sweep, sweep_status, torture
from leyden._table import Table

__version__ = _leyden.__version__
__all__ = [
    "FLUSH",
    "READ",
    "TRIM",
    "WRITE",
    "WRITE_ZEROES",
    "Completions",
    "ConfigError",
    "Drive",
    "LeydenError",
    "Run",
    "RunError",
    "Search",
    "Table",
    "check",
    "compare",
    "crashtest",
    "lifetime",
    "merge",
    "policies",
    "read_crashtest",
    "read_record",
    "read_table",
    "record_files",
    "run",
    "search",
    "size",
    "sweep",
    "sweep_status",
    "torture",
    "trace",
    "worst_cases",
]

Progress = Callable[[float], object]


class Run:
    """A run's record, as `leyden run --json` prints it (docs/reference/record.md).

    >>> import leyden
    >>> run = leyden.run("bench/random-write", set={"workload.job.0.requests": 2000, "precondition.kind": "none"})
    >>> run["host.writes"], run["flash.erases"], len(run.series("waf")["value"]) == len(run.series("waf")["time_s"])
    (2000, 0, True)
    """

    def __init__(self, record: dict[str, Any]) -> None:
        self.record = record

    def __getitem__(self, key: str) -> Any:
        """The figure or part of the record with this dotted key."""
        value: Any = self.record
        for part in key.split("."):
            try:
                value = value[int(part) if isinstance(value, list) else part]
            except (KeyError, IndexError, TypeError, ValueError):
                raise KeyError(key) from None
        return value

    def series(self, key: str) -> dict[str, list[float]]:
        """What happened in each interval, by its key in the record's `series`: `time_s`, simulated seconds, and `value`. Keys of lists of
        tables have two parts: `programs.host`. `KeyError` if the record has no such series, or was saved without any (`--no-series`)."""
        if "series" not in self.record:
            raise KeyError(f"{key}: the record has no series")
        series = self.record["series"]
        name, _, part = key.partition(".")
        values = series[name]
        return {"time_s": list(series["time_s"]), "value": [value[part] for value in values] if part else list(values)}

    @property
    def warnings(self) -> list[str]:
        """What the run warns of."""
        return list(self.record["warnings"])

    @property
    def settled(self) -> bool | None:
        """Whether write amplification had settled before the run was measured; None if nothing waited for that."""
        settling = self.record["steadiness"].get("precondition")
        return settling["settled"] if settling else None

    def __repr__(self) -> str:
        host = self.record["host"]
        return f"<leyden.Run {self.record['name']}: {host['iops']:.0f} IOPS, digest {self.record['sim']['digest']}>"


def check(scenario: Scenario, *, set: Mapping[str, Value] | None = None) -> dict[str, Any]:
    """Checks a scenario, and returns it with every default filled in.

    Args:
        scenario: a file, the name of a bundled scenario, or a dict of its keys.
        set: overrides by dotted key. Values are TOML's: texts with units ("7 %", "8 MiB", "60 us"), numbers, lists, tables.

    >>> import leyden
    >>> leyden.check("hot-cold", set={"device.ftl.over_provisioning": "12 %"})["device"]["ftl"]["over_provisioning"]
    '12 %'
    """
    name, text = source(scenario)
    with translated():
        whole: dict[str, Any] = json.loads(_leyden.check(name, text, settings(set)))
        return whole


def run(
    scenario: Scenario,
    *,
    set: Mapping[str, Value] | None = None,
    seed: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Run:
    """Runs a scenario.

    Args:
        scenario, set: as for `check`.
        seed: of everything random; the scenario's own if not given.
        cache: begin with a preconditioned drive of the cache, where the same build has made it before.
        progress: called with the share that is done, 0 to 1, from this thread.

    Raises:
        ConfigError: the scenario, its drive or its trace is wrong.
        RunError: the run ended before its end.
        KeyboardInterrupt: nothing is kept.

    >>> import leyden
    >>> leyden.run("bench/random-write", set={"workload.job.0.requests": 500, "precondition.kind": "none"})["host.writes"]
    500
    """
    name, text = source(scenario)
    sets = settings(set) + ([f"seed={seed}"] if seed is not None else [])
    with translated():
        return Run(json.loads(_leyden.run(name, text, sets, drives(cache), progress)))


def compare(
    scenario: Scenario | Sequence[Scenario],
    *,
    vary: Mapping[str, Any] | None = None,
    devices: Sequence[str] = (),
    seeds: int | Sequence[int] = 1,
    set: Mapping[str, Value] | None = None,
    jobs: int | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> Table:
    """Runs every combination of scenarios, devices, varied keys and seeds, and returns a line for each.

    Args:
        scenario: one, or several: each is run with everything else.
        vary: values of keys. Seeds vary fastest, then the keys, the last in alphabetical order first.
        devices: scenarios whose drive takes the place of the scenario's own.
        seeds: their number, from the scenario's own on, or a list.
        jobs: runs made at once; as many as there are cores if not given. Results do not depend on it.
        set, cache, progress: as for `run`.

    A combination that cannot be run is a line whose `error` says why.

    >>> import leyden
    >>> t = leyden.compare("bench/random-write", vary={"device.nand.read": ["50 us", "60 us"]}, set={"workload.job.0.requests": 500,
    ...                    "precondition.kind": "none"})
    >>> t["config.device.nand.read_s"]
    [5e-05, 6e-05]
    """
    scenarios: Sequence[Scenario] = [scenario] if isinstance(scenario, (str, os.PathLike, Mapping)) else scenario
    plans: list[tuple[str | os.PathLike[str], str, str | None]] = []
    for one in scenarios:
        name, text = source(one)
        lines = [f"base = {toml(name)}", f"device = {toml(list(devices))}"]
        if isinstance(seeds, Sequence):
            lines.append(f"seeds = {toml(seeds)}")
        elif operator.index(seeds) != 1:
            lines.append(f"seeds = {operator.index(seeds)}")
        lines += ["[set]", *(f"{toml(key)} = {toml(value)}" for key, value in (set or {}).items())]
        lines += ["[grid]", *(f"{toml(key)} = {toml(_values(key, values))}" for key, values in (vary or {}).items())]
        plans.append(("compare", "\n".join(lines), text))
    if devices and any(base is not None for _, _, base in plans):
        raise ConfigError("a scenario that is a dict has its own drive\n  help: write it to a file, or leave `devices` out")
    with translated():
        return Table(_leyden.compare(plans, cores(jobs), drives(cache), progress))


def _values(key: str, values: Any) -> list[Any]:
    """The values of a varied key."""
    if isinstance(values, (str, Mapping)):
        raise TypeError(f"vary: `{key}` has one value; write a list of values")
    return list(values)


def size(
    scenario: Scenario,
    *,
    set: Mapping[str, Value] | None = None,
    commands: int = 100_000,
    jobs: int | None = None,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Finds the capacitors that a drive needs, and its losses with less, as `leyden size --json`.

    >>> import leyden
    >>> sizing = leyden.size("power-loss", commands=2000, set={"precondition.kind": "none"})
    >>> sizing["bank"]["parts"] > 0
    True
    """
    name, text = source(scenario)
    with translated():
        sizing: dict[str, Any] = json.loads(_leyden.size(name, text, settings(set), commands, cores(jobs), progress))
        return sizing


def worst_cases(scenario: Scenario, *, set: Mapping[str, Value] | None = None) -> dict[str, Any]:
    """Computes the bank of every protection, dump and kind of capacitor, and the weight of each assumption, as `leyden size --worst
    --json`. Runs nothing.

    >>> import leyden
    >>> banks = leyden.worst_cases("devices/tlc-datacenter", set={"size": "3.84 TB"})["banks"]
    >>> own = [bank for bank in banks if bank["own"] and bank["protection"] == "full" and bank["dump"] == "balanced"]
    >>> own[0]["part"], round(own[0]["capacitance_uf"] / 1000), "mF"
    ('tantalum_polymer', 382, 'mF')
    """
    name, text = source(scenario)
    with translated():
        worst: dict[str, Any] = json.loads(_leyden.worst_cases(name, text, settings(set)))
        return worst


def lifetime(
    scenario: Scenario,
    *,
    cycles: int | None = None,
    warranty_years: float = 5.0,
    set: Mapping[str, Value] | None = None,
    cache: bool = True,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Estimates endurance, as `leyden lifetime --json`.

    Args:
        cycles: erases that a block stands; the scenario's `device.nand.endurance_cycles` if not given.
        warranty_years: over which drive writes a day are rated.

    >>> import leyden
    >>> life = leyden.lifetime("bench/random-write", cycles=3000, set={"workload.job.0.requests": 100000, "precondition.kind": "none"})
    >>> life["years"] > 0
    True
    """
    name, text = source(scenario)
    with translated():
        life: dict[str, Any] = json.loads(_leyden.lifetime(name, text, settings(set), cycles, warranty_years, drives(cache), progress))
        return life


def trace(path: str | os.PathLike[str], *, format: str | None = None, progress: Progress | None = None) -> dict[str, Any]:
    """Profiles a block trace, as `leyden trace info`.

    Args:
        format: its name (docs/traces.md); found by the content if not given.
    """
    with translated():
        profile: dict[str, Any] = json.loads(_leyden.profile(path, format, progress))
        return profile


def policies() -> list[dict[str, Any]]:
    """The policies that a configuration can choose from, with their parameters.

    >>> import leyden
    >>> [folder["key"] for folder in leyden.policies()][:2]
    ['device.buffer.region', 'device.buffer.schedule']
    """
    folders: list[dict[str, Any]] = json.loads(_leyden.policies())
    return folders


def read_record(path: str | os.PathLike[str]) -> Run:
    """A run record that `leyden run --json` or `--out` has written."""
    record = json.loads(Path(path).read_text(encoding="utf-8"))
    if not isinstance(record, dict) or "record_version" not in record:
        raise ConfigError(f"{os.fspath(path)}: it is no run record\n  help: name a file that `leyden run --json` has written")
    return Run(record)


def read_table(path: str | os.PathLike[str]) -> Table:
    """A table that `leyden sweep merge` has written. pandas, Polars and DuckDB read such files, too."""
    with translated():
        return Table(_leyden.read_table(path))
