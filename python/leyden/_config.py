"""Scenarios and values as the native module takes them."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Union

from leyden import _leyden

#: What a key may have: a text with its unit, a number, a truth value, a list or a table. Not narrower, so that a dict of several kinds is
#: one for type checkers, too.
Value = Any
Scenario = Union[str, "os.PathLike[str]", Mapping[str, Value]]

#: Bytes that the cache of preconditioned drives may hold; the command line's limit.
_MOST_CACHED = 4 << 30


def toml(value: Value) -> str:
    """A value as TOML.

    >>> toml({"size": "8 MiB", "shares": [0.5, 1], "on": True})
    '{ "size" = "8 MiB", "shares" = [0.5, 1], "on" = true }'
    """
    if type(value) not in (bool, int, float) and hasattr(value, "item"):  # a number of numpy, which may be a float, too
        value = value.item()
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return repr(value)
    if isinstance(value, str):
        return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{toml(key)} = {toml(item)}" for key, item in value.items()) + " }"
    if isinstance(value, Sequence):
        return "[" + ", ".join(toml(item) for item in value) + "]"
    raise TypeError(f"a configuration holds texts, numbers, lists and tables, not {type(value).__name__}")


def settings(values: Mapping[str, Value] | None) -> list[str]:
    """Overrides as `KEY=VALUE`."""
    return [f"{key}={toml(value)}" for key, value in (values or {}).items()]


def source(scenario: Scenario) -> tuple[str, str | None]:
    """The name of a scenario, and its text if it is no file."""
    if isinstance(scenario, Mapping):
        return "scenario", "\n".join(f"{toml(key)} = {toml(value)}" for key, value in scenario.items())
    return os.fspath(scenario), None


def drives(cache: bool) -> tuple[Path, int, str] | None:
    """The cache of preconditioned drives, which the command line of the same build shares."""
    folder = cache_folder()
    if not cache or folder is None:
        return None
    return folder / "drives", _MOST_CACHED, exact_build()


def exact_build() -> str:
    """What tells this build from every other. A commit does, but not where files differ from it: there the module's own file does."""
    if "(" in _leyden.build and not _leyden.build.endswith("+)"):
        return _leyden.build
    made = os.stat(_leyden.__file__)
    return f"{_leyden.build} {made.st_size} {made.st_mtime_ns}"


def cache_folder() -> Path | None:
    """Where what can be made again is kept: the cache of the XDG base directories."""
    for name, below in (("XDG_CACHE_HOME", ""), ("HOME", ".cache")):
        folder = os.environ.get(name, "")
        if os.path.isabs(folder):
            return Path(folder) / below / "leyden"
    return None


def cores(jobs: int | None) -> int:
    """Runs made at once."""
    if jobs is not None:
        if jobs < 1:
            raise ValueError("jobs is 1 or more")
        return jobs
    affinity = getattr(os, "sched_getaffinity", None)
    return len(affinity(0)) if affinity else os.cpu_count() or 1
