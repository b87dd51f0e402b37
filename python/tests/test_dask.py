"""Sweeps on a Dask cluster of this machine, one of whose workers is killed."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import leyden
import pytest

distributed = pytest.importorskip("distributed")


def test_a_killed_worker_changes_nothing(tmp_path: Path) -> None:
    plan = {
        "base": "bench/random-write",
        "seeds": 24,
        "set": {"workload.job.0.requests": 2000, "precondition.kind": "none", "run.check": "never"},
    }
    leyden.sweep(plan, out=tmp_path / "here")
    whole = (tmp_path / "here/runs.parquet").read_bytes()
    with distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None, silence_logs=50) as cluster:
        with distributed.Client(cluster) as client:
            killed: list[int] = []

            def kill(fraction: float) -> None:
                if not killed and fraction > 0.2:
                    pids = client.run(os.getpid)
                    killed.append(next(iter(pids.values())))
                    os.kill(killed[0], signal.SIGKILL)

            leyden.sweep(plan, out=tmp_path / "dask", executor=client.get_executor(), shards=24, progress=kill)
            assert killed
            spread = leyden.torture(12, executor=client.get_executor(), batch=4)
    assert (tmp_path / "dask/runs.parquet").read_bytes() == whole
    assert spread["digest"] == leyden.torture(12)["digest"]
