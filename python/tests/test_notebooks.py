"""The notebooks run, and show what they say. Their sizes are smaller here."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("marimo")
pytest.importorskip("altair")
pytest.importorskip("pandas")

FOLDER = Path(__file__).parents[1] / "notebooks"


def ran(name: str, **changed: Any) -> dict[str, Any]:
    """What a notebook defines, with other values for some of its cells' names."""
    spec = importlib.util.spec_from_file_location(name, FOLDER / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    _, defined = module.app.run(defs=changed or None)
    return dict(defined)


def test_capacitors() -> None:
    shown = ran("capacitors")
    banks = shown["banks"].query("part == 'tantalum_polymer' and dump == 'balanced'").set_index("mapping table")["capacitance_mf"]
    # A bank saves the table in proportion to what of it is protected.
    table = banks["full"] - banks["none"]
    assert 0.45 * table < banks["partial 50%"] - banks["none"] < 0.55 * table
    assert banks["full"] > 300  # 4 GB of table at some 5 nJ a byte
    assert (shown["ranges"]["low_mf"] <= banks["full"] + 1e-6).all() and (shown["ranges"]["high_mf"] >= banks["full"] - 1e-6).all()


def test_trace_to_endurance() -> None:
    lives = ran(
        "trace_to_endurance",
        trace="scenarios/traces/tpcc.csv.zst",
        drive="bench/tpcc",
        cycles=3000,
        warranty_years=5.0,
        spares=["7 %", "28 %"],
        loops=4,
    )["lives"]
    assert lives["rated_dwpd"][1] > lives["rated_dwpd"][0] > 0
    assert lives["waf"][0] > lives["waf"][1]


def test_crash_test() -> None:
    doctor = subprocess.run([os.environ.get("LEYDEN", "leyden"), "crashtest", "doctor", "--files"], capture_output=True, text=True)
    if doctor.returncode:
        pytest.skip(f"this machine runs no crash tests of files: {doctor.stderr}")
    shown = ran("crash_test")
    results = shown["results"]
    assert results["with a sync of the file"]["verdict"] == "held"
    assert results["without a sync of the file"]["verdict"] == "broken"
    assert set(shown["findings"]["program"]) == {"without a sync of the file"}


def test_frontier() -> None:
    pytest.importorskip("optuna")
    designs = ran(
        "frontier",
        scenario="hexa/random-write",
        quick={
            "device.buffer.size": "1 MiB",
            "device.nand.channels": 2,
            "device.nand.dies_per_channel": 2,
            "device.ftl.capacity": "768 MiB",
            "workload.job.0.span": "64 MiB",
            "workload.job.0.requests": 3000,
            "run.ramp.requests": 100,
            "precondition.kind": "none",
        },
        space={
            "device.ftl.map.protection": ["full", {"policy": "partial", "protected": "50 %"}, "none"],
            "device.buffer.schedule": ["fifo", "harvest"],
            "device.power.dump": ["in_place", "balanced"],
        },
        runs=12,
        seeds=1,
    )["designs"]
    assert designs["error"].isna().all() and len(designs) <= 12
    table = designs.drop_duplicates("design").set_index("design")["capacitance_mf"]
    pairs = [(name, name.replace("full", "none")) for name in table.index if name.startswith("full, ")]
    both = [(table[full], table[none]) for full, none in pairs if none in table.index]
    assert both and all(full > none for full, none in both)


def test_notebooks_are_programs() -> None:
    done = subprocess.run([sys.executable, str(FOLDER / "capacitors.py")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
