"""Crash tests of recorded software, tried here and by others."""

from __future__ import annotations

import concurrent.futures
import json
import multiprocessing
import os
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import leyden
import pytest
from leyden import _crashtest
from pools import losing

#: The command that records; the tests' script names it.
LEYDEN = os.environ.get("LEYDEN", "leyden")

WORK = """import os
log = os.open("log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
os.fsync(os.open(".", os.O_RDONLY))
for number in range(60):
    os.write(log, f"{number}\\n".encode())
    if number % 9:  # every ninth is promised and not synced
        os.fsync(log)
    with open(os.environ["LEYDEN_ACK"], "a") as acks:
        acks.write(f"ack {number}\\n")
"""
CHECK = """import os, sys
there = set(open(os.environ["LEYDEN_MOUNT"] + "/log").read().split()) if os.path.exists(os.environ["LEYDEN_MOUNT"] + "/log") else set()
for number in open(os.environ["LEYDEN_ACKS"]).read().split():
    if number not in there:
        print(f"lost {number} in {os.environ['LEYDEN_MOUNT']}")
        sys.exit(1)
"""


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    doctor = subprocess.run([LEYDEN, "crashtest", "doctor", "--files"], capture_output=True, text=True)
    if doctor.returncode:
        pytest.skip(f"this machine runs no crash tests of files: {doctor.stderr}")
    folder = tmp_path_factory.mktemp("crashtest")
    (folder / "work.py").write_text(WORK)
    (folder / "check.py").write_text(CHECK)
    record = [LEYDEN, "crashtest", "record", "--files", "--work", f"cd $LEYDEN_MOUNT && python3 {folder}/work.py"]
    subprocess.run([*record, "--check", "python3 -S check.py", "--out", "crash"], check=True, cwd=folder, capture_output=True)
    return folder / "crash"


def test_workers_say_what_this_machine_says(recorded: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    here = leyden.crashtest(recorded, states=100)
    assert here["verdict"] == "broken" and here["models"][0]["states"] == 100
    assert here["models"][0]["verdicts"]["lost"] > 0
    # Spawned, so that nothing is shared but what is sent.
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as workers:
        there = leyden.crashtest(recorded, states=100, executor=workers, batch=17, inputs=["check.py"])
    assert there == here
    assert [file.name for file in (tmp_path / "leyden/inputs").iterdir()]
    kept = leyden.read_crashtest(recorded)
    assert kept["models"][0]["verdicts"] == here["models"][0]["verdicts"]
    assert (recorded / "findings/adversarial-1.json").exists()


def test_a_killed_worker_costs_its_batch(recorded: Path) -> None:
    here = leyden.crashtest(recorded, states=60)
    with losing() as (workers, kill):
        with pytest.warns(UserWarning, match="states from .*BrokenProcessPool.*run again"):
            there = leyden.crashtest(recorded, states=60, executor=workers, batch=3, inputs=["check.py"], progress=kill)
    assert there == here


def test_a_verdict_that_differs_shows_in_the_digest(recorded: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    here = leyden.crashtest(recorded, states=40)
    assert leyden.crashtest(recorded, states=39)["digest"] != here["digest"]
    tried = _crashtest._try

    def liar(*args: Any) -> tuple[list[str], str]:
        lacking, text = tried(*args)
        outcomes = json.loads(text or "[]")
        if len(outcomes) == 8:
            outcomes[3] = {"verdict": "held" if outcomes[3]["verdict"] == "lost" else "lost", "said": ""}
        return lacking, json.dumps(outcomes)

    monkeypatch.setattr(_crashtest, "_try", liar)
    with concurrent.futures.ThreadPoolExecutor(1) as workers:
        there = leyden.crashtest(recorded, states=40, executor=workers, batch=8)
    assert there["digest"] != here["digest"]


def test_what_workers_lack_is_told(recorded: Path, tmp_path: Path) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as workers:

        def refused(inputs: Sequence[str]) -> str:
            with pytest.raises(leyden.ConfigError) as error:
                leyden.crashtest(recorded, states=4, executor=workers, inputs=inputs)
            return str(error.value)

        assert "there is no such file" in refused(["chek.py"])
        assert "is not below" in refused(["/etc/passwd"])
        with pytest.raises(leyden.ConfigError, match="there is no model"):
            leyden.crashtest(recorded, states=4, model="adversary")
    with pytest.raises(OSError, match="No such file"):
        leyden.crashtest(tmp_path / "none")
    with pytest.raises(leyden.ConfigError, match="is not there"):
        leyden.read_crashtest(tmp_path)
    with pytest.raises(ValueError, match="1 or more"):
        leyden.crashtest(recorded, states=0)


def test_strangers_recordings_are_not_run(recorded: Path, tmp_path: Path) -> None:
    other = tmp_path / "crash"
    other.mkdir()
    for name in ("plan.json", "recording.files"):
        (other / name).write_bytes((recorded / name).read_bytes())
    with pytest.raises(leyden.ConfigError, match="trust=True"):
        leyden.crashtest(other, states=4)
    assert leyden.crashtest(other, states=4, trust=True)["models"][0]["states"] == 4


def test_an_interrupted_campaign_leaves_no_process(recorded: Path) -> None:
    class Enough(Exception):
        pass

    def stop(fraction: float) -> None:
        raise Enough

    with pytest.raises(Enough):
        leyden.crashtest(recorded, states=100_000, progress=stop)
    listed = subprocess.run(["pgrep", "-f", f"crashtest_work.*{recorded}"], capture_output=True, text=True)
    assert listed.stdout == ""
