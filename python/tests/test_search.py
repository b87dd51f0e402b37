"""Searches for designs."""

from __future__ import annotations

import concurrent.futures
from pathlib import Path
from typing import Any

import leyden
import pytest

pytest.importorskip("optuna")

SPACE = {
    "device.buffer.size": {"from": "1 MiB", "to": "8 MiB", "scale": "log", "step": "1 MiB"},
    "device.ftl.gc.victim": ["greedy", "cost_benefit"],
}
OPTIONS: dict[str, Any] = {
    "space": SPACE,
    "minimize": ["flash.waf", "config.device.buffer.size_bytes"],
    "maximize": ["host.iops"],
    "set": {"workload.job.0.requests": 1500, "precondition.kind": "none"},
    "cache": False,
}


def test_all_points_of_a_small_space_are_found_and_judged() -> None:
    found = leyden.search("bench/random-write", runs=60, seeds=2, **OPTIONS)
    # Eight sizes and two policies; figures without garbage collection do not depend on the policy.
    assert 8 <= len(found.points) <= 16 and found.runs <= 60
    sizes = {point["device.buffer.size"] for point in found.frontier}
    assert sizes <= {f"{size} MiB" for size in range(1, 9)} and len(sizes) >= 4
    for point in found.points:
        # Judged again, by the slow rule on the told figures.
        def beats(one: dict[str, Any], other: dict[str, Any]) -> bool:
            pairs = [(one[key], other[key]) for key in OPTIONS["minimize"]] + [(-one["host.iops"], -other["host.iops"])]
            slack = [0.005 * abs(b) for _, b in pairs]
            return all(a <= b + s for (a, b), s in zip(pairs, slack, strict=True)) and any(a < b - s for (a, b), s in zip(pairs, slack, strict=True))

        assert (point["dominated_by"] is not None) == any(beats(other, point) for other in found.points)
        assert point["seeds"] == 2 or point["dominated_by"] is not None


def test_a_search_goes_on_and_does_not_depend_on_who_runs_it(tmp_path: Path) -> None:
    here = leyden.search("bench/random-write", runs=16, batch=4, out=tmp_path / "a", **OPTIONS)
    begun = sorted(path.name for path in (tmp_path / "a").iterdir())
    again = leyden.search("bench/random-write", runs=16, batch=4, out=tmp_path / "a", **OPTIONS)
    assert sorted(path.name for path in (tmp_path / "a").iterdir()) == begun
    with concurrent.futures.ThreadPoolExecutor(2) as workers:
        there = leyden.search("bench/random-write", runs=16, batch=4, out=tmp_path / "b", executor=workers, **OPTIONS)
    assert here.points == again.points == there.points
    assert leyden.search("bench/random-write", runs=16, batch=4, seed=9, **OPTIONS).points != here.points


def test_wrong_spaces_and_objectives_are_refused() -> None:
    def refused(match: str, **changed: Any) -> None:
        with pytest.raises(leyden.ConfigError, match=match):
            leyden.search("bench/random-write", runs=4, **{**OPTIONS, **changed})

    refused("no figure `flash.wav`", minimize=["flash.wav"])
    refused("several units", space={"device.buffer.size": {"from": "1 KiB", "to": "8 MiB"}})
    refused("no range", space={"device.buffer.size": {"from": "1 KiB", "until": "8 MiB"}})
    refused("no list of values", space={"device.ftl.gc.victim": "greedy"})
    refused("over_provisioning", space={"device.ftl.over_provisionin": ["7 %"]})


def test_a_point_that_cannot_be_run_is_told() -> None:
    space = {"device.buffer.size": ["1 MiB", "64 TiB"]}
    found = leyden.search("bench/random-write", runs=4, **{**OPTIONS, "space": space})
    errors = {point["device.buffer.size"]: point["error"] for point in found.points}
    assert errors["1 MiB"] is None and errors["64 TiB"]


def test_a_scenario_of_a_file_travels(tmp_path: Path) -> None:
    scenario = tmp_path / "own.toml"
    scenario.write_text('extends = "bench/random-write"\nname = "own"\n')
    options = {**OPTIONS, "space": {"device.buffer.size": ["1 MiB", "2 MiB"]}}
    here = leyden.search(scenario, runs=2, **options)
    with concurrent.futures.ThreadPoolExecutor(1) as workers:
        there = leyden.search(scenario, runs=2, executor=workers, **options)
    assert here.points == there.points and len(here.points) == 2


def test_points_may_be_chosen_one_by_one() -> None:
    assert leyden.search("bench/random-write", runs=3, batch=1, **OPTIONS).runs == 3
