"""The package as a user has it. `.ci/package` runs it, and the examples in the docstrings."""

from __future__ import annotations

import concurrent.futures
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path

import leyden
import pytest
from pools import losing

QUICK = {"workload.job.0.requests": 2000, "precondition.kind": "none"}
PLAN = """
base = "small.toml"
seeds = 2
[grid]
device.ftl.over_provisioning = ["20 %", "28 %"]
workload.trace.beyond_end = ["wrap", "clip"]
"""
SMALL = """
[device.nand]
channels = 2
dies_per_channel = 1
blocks_per_plane = 24
pages_per_block = 32
[workload.trace]
path = "traces/small.csv"
"""


@pytest.fixture
def plan(tmp_path: Path) -> Path:
    """A plan whose scenario replays a trace beside it."""
    (tmp_path / "plans").mkdir()
    (tmp_path / "plans/traces").mkdir()
    lines = [f"{at * 1000},host,0,Write,{at * 8192 % (1 << 20)},4096,0" for at in range(3000)]
    (tmp_path / "plans/traces/small.csv").write_text("\n".join(lines) + "\n")
    (tmp_path / "plans/small.toml").write_text(SMALL)
    (tmp_path / "plans/plan.toml").write_text(PLAN)
    return tmp_path / "plans/plan.toml"


def test_a_run_is_that_of_the_command_line(tmp_path: Path) -> None:
    run = leyden.run("bench/random-write", set=QUICK, seed=7)
    table = leyden.compare("bench/random-write", set=QUICK, seeds=[7])
    assert table["digest"] == [run["sim.digest"]]
    assert table["flash.waf"] == [run["flash.waf"]]
    kept = tmp_path / "run.json"
    kept.write_text(json.dumps(run.record))
    assert leyden.read_record(kept)["seed"] == 7
    kept.write_text(json.dumps({key: value for key, value in run.record.items() if key != "series"}))
    short = leyden.read_record(kept)
    assert short["flash.waf"] == run["flash.waf"]
    with pytest.raises(KeyError, match="no series"):
        short.series("waf")
    with pytest.raises(KeyError):
        run["flash.wav"]


def test_a_scenario_may_be_a_dict() -> None:
    scenario = {"extends": "bench/random-write", "workload": {"job": [{"pattern": "random", "requests": 300}]}, "precondition": {"kind": "none"}}
    assert leyden.run(scenario)["host.reads"] + leyden.run(scenario)["host.writes"] == 300
    assert len(leyden.compare([scenario, "bench/random-write"], set={**QUICK, "workload.job.0.requests": 300})) == 2


def test_columns_are_numbers_with_their_unit() -> None:
    vary = {"device.ftl.over_provisioning": [0.07, 0.28], "device.buffer.size": ["4 MiB", "8 MiB"], "device.ftl.gc.victim": ["greedy"]}
    table = leyden.compare("bench/random-write", vary=vary, set=QUICK, seeds=2)
    assert len(table) == 8
    assert table["config.device.buffer.size_bytes"][:3] == [4 << 20, 4 << 20, 4 << 20]
    assert set(table["config.device.ftl.over_provisioning"]) == {0.07, 0.28}
    assert set(table["config.device.ftl.gc.victim"]) == {"greedy"}
    assert "config.device.ftl.over_provisioning" in repr(table) and "<table>" in table._repr_html_()
    assert not [name for name in table.columns if name.startswith("sim.") and name != "sim.checked"], "figures of the machine"


def test_other_libraries_take_the_table() -> None:
    pyarrow = pytest.importorskip("pyarrow")
    table = leyden.compare("bench/random-write", set=QUICK, seeds=3)
    arrow = pyarrow.table(table)
    assert arrow.column_names == table.columns and arrow["seed"].to_pylist() == [1, 2, 3]
    frame = table.to_pandas()
    assert list(frame["flash.waf"]) == table["flash.waf"] and frame["seed"].dtype.kind == "u"
    polars = pytest.importorskip("polars")
    assert polars.DataFrame(table)["host.writes"].to_list() == [2000] * 3


def test_errors_name_key_place_and_remedy(tmp_path: Path) -> None:
    file = tmp_path / "wrong.toml"
    file.write_text('extends = "bench/random-write"\n[device.ftl]\nover_provision = "7 %"\n')
    with pytest.raises(leyden.ConfigError) as caught:
        leyden.run(file)
    assert caught.value.key == "device.ftl.over_provision"
    assert caught.value.place == f"{file}:3:1"
    assert caught.value.remedy is not None and "over_provisioning" in caught.value.remedy
    with pytest.raises(leyden.ConfigError, match="nearest key"):
        leyden.compare("bench/random-write", vary={"device.ftl.gc.victm": ["greedy"]})
    with pytest.raises(OSError, match="nearest bundled|No such file"):
        leyden.run("bench/random-writ")
    with pytest.raises(TypeError):
        leyden.check("bench/random-write", set={"device.nand.read": object()})
    table = leyden.compare("bench/random-write", vary={"device.buffer.size": ["8 MiB", "1 B"]}, set=QUICK)
    assert table["error"][0] is None and "device.buffer.size" in table["error"][1]


def test_a_run_heeds_ctrl_c_and_lets_other_threads_run() -> None:
    program = (
        "import leyden, signal, sys\n"
        # Jobs in the background of a shell begin with the signal ignored.
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "print('begun', flush=True)\n"
        "try:\n"
        "    leyden.run('bench/random-write', set={'workload.job.0.requests': 10**9, 'precondition.kind': 'none'})\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(9)\n"
    )
    child = subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, env=os.environ)
    assert child.stdout is not None and child.stdout.readline() == b"begun\n"
    time.sleep(0.5)
    child.send_signal(signal.SIGINT)
    assert child.wait(30) == 9
    counted = 0
    done = threading.Event()

    def work() -> None:
        leyden.run("bench/random-write", set={**QUICK, "workload.job.0.requests": 300_000})
        done.set()

    thread = threading.Thread(target=work)
    thread.start()
    while not done.wait(0.001):
        counted += 1
    assert counted > 10, "the interpreter's lock was held"


def test_progress_is_told_and_may_end_a_run() -> None:
    told: list[float] = []
    leyden.run("bench/random-write", set={**QUICK, "workload.job.0.requests": 300_000}, progress=told.append)
    assert told == sorted(told) and told[-1] == 1.0

    def stop(_: float) -> None:
        raise InterruptedError("enough")

    with pytest.raises(InterruptedError):
        leyden.run("bench/random-write", set={**QUICK, "workload.job.0.requests": 10**9}, progress=stop)


def test_a_cut_loses_what_no_capacitor_protects() -> None:
    def lost(region: str) -> tuple[list[int], int]:
        drive = leyden.Drive("power-loss", set={"device.buffer.region": region})
        drive.submit("write", lba=range(0, 800, 8), sectors=8, stamp=range(1, 101))
        drive.advance(drive.now_ns + 40_000)
        written = len(drive.completions())
        loss = drive.cut()
        assert not drive.is_on and loss["time_ns"] == drive.now_ns
        drive.restore()
        drive.advance()
        drive.completions()
        drive.submit("read", lba=range(0, 8 * written, 8), sectors=8)
        drive.advance()
        read = drive.completions()
        assert set(read.status) == {0}
        order = sorted(zip(read.tag, read.stamp))
        return [stamp for _, stamp in order], written

    stamps, written = lost("full")
    assert written > 0 and stamps == list(range(1, written + 1)), "what was acknowledged is there"
    stamps, written = lost("none")
    assert written > 0 and stamps.count(0) > 0, "what was acknowledged and not flushed is gone"


def test_batches_are_checked() -> None:
    drive = leyden.Drive("bench/random-write")
    with pytest.raises(leyden.ConfigError, match="opcode"):
        drive.submit([0x55], lba=[0])
    with pytest.raises(ValueError, match="different lengths"):
        drive.submit("write", lba=[0, 8], sectors=[8])
    drive.advance(5_000)
    with pytest.raises(leyden.ConfigError, match="already"):
        drive.submit("write", lba=0, sectors=8, at_ns=4_000)
    with pytest.raises(leyden.ConfigError, match="is on"):
        drive.restore()
    drive.submit("read", lba=drive.sectors, sectors=8)
    drive.advance()
    assert list(drive.completions().status) == [0x80], "beyond the end"


class Hides(concurrent.futures.Executor):
    """A worker on another machine: what the plan's folder holds is not there while it works."""

    def __init__(self, folder: Path, elsewhere: Path) -> None:
        self.folder, self.elsewhere, self.sent = folder, elsewhere, 0

    def submit(self, fn, /, *args, **keywords):  # type: ignore[no-untyped-def]
        self.sent += len(args[1])
        future: concurrent.futures.Future[object] = concurrent.futures.Future()
        here = os.getcwd()
        self.folder.rename(self.elsewhere)
        os.chdir("/")
        try:
            future.set_result(fn(*args, **keywords))
        except Exception as error:
            future.set_exception(error)
        finally:
            os.chdir(here)
            self.elsewhere.rename(self.folder)
        return future


def sweep_bytes(plan: Path, out: Path, **options: object) -> bytes:
    leyden.sweep(plan, out=out, **options)  # type: ignore[arg-type]
    return (out / "runs.parquet").read_bytes()


def test_a_sweep_is_the_same_bytes_whoever_runs_it(plan: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    whole = sweep_bytes(plan, tmp_path / "one", jobs=1)
    assert sweep_bytes(plan, tmp_path / "threads", jobs=2, shards=3) == whole
    with concurrent.futures.ProcessPoolExecutor(2) as pool:
        assert sweep_bytes(plan, tmp_path / "pool", executor=pool) == whole
    # On a machine that has none of the files they travel; and what is no input is sent again.
    inputs = tmp_path / "cache/leyden/inputs"
    kept = sorted(file.name for file in inputs.iterdir())
    assert len(kept) == 2, kept
    (inputs / kept[0]).write_bytes(b"another")
    hidden = Hides(plan.parent, tmp_path / "elsewhere")
    assert sweep_bytes(plan, tmp_path / "far", executor=hidden, shards=8) == whole
    assert 1 <= hidden.sent <= 4, "one file, to those that began before it was there"
    assert (tmp_path / "far/part-00001-of-00008.parquet").stat().st_mode & 0o777 == (tmp_path / "one/runs.parquet").stat().st_mode & 0o777
    table = leyden.read_table(tmp_path / "one/runs.parquet")
    assert len(table) == 8 and table["error"] == [None] * 8
    assert leyden.sweep_status(tmp_path / "pool")["missing"] == []


def test_a_sweep_goes_on_where_it_was(plan: Path, tmp_path: Path) -> None:
    out = tmp_path / "parts"
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        whole = sweep_bytes(plan, out, executor=pool, shards=4)
    (out / "part-00002-of-00004.parquet").unlink()
    (out / "runs.parquet").unlink()
    assert leyden.sweep_status(out)["missing"] == [2]
    before = (out / "part-00001-of-00004.parquet").stat().st_mtime_ns
    with concurrent.futures.ProcessPoolExecutor(1) as pool:
        assert sweep_bytes(plan, out, executor=pool, shards=4) == whole
    assert (out / "part-00001-of-00004.parquet").stat().st_mtime_ns == before, "what is done is not done again"
    plan.write_text(PLAN.replace("seeds = 2", "seeds = 3"))
    with pytest.raises(leyden.ConfigError, match="another plan"):
        leyden.sweep(plan, out=out, shards=4)


def test_a_broken_worker_costs_its_shard(plan: Path, tmp_path: Path) -> None:
    class Breaks(concurrent.futures.Executor):
        """Loses every third task."""

        def __init__(self) -> None:
            self.tasks = 0

        def submit(self, fn, /, *args, **keywords):  # type: ignore[no-untyped-def]
            self.tasks += 1
            future: concurrent.futures.Future[object] = concurrent.futures.Future()
            if self.tasks % 3 == 0:
                future.set_exception(RuntimeError("the worker is gone"))
            else:
                future.set_result(fn(*args, **keywords))
            return future

    out = tmp_path / "parts"
    with pytest.raises(leyden.LeydenError, match="shards were not finished.*the worker is gone"):
        leyden.sweep(plan, out=out, executor=Breaks(), shards=8)
    assert 0 < len(leyden.sweep_status(out)["missing"]) < 8
    leyden.sweep(plan, out=out, shards=8)
    assert leyden.sweep_status(out)["missing"] == []


def test_a_killed_worker_costs_torture_its_batches() -> None:
    whole = leyden.torture(60)
    with losing() as (pool, kill):
        # A pool that has lost a process takes no more.
        with pytest.warns(UserWarning, match="seeds .* BrokenProcessPool: .*run again"):
            found = leyden.torture(60, executor=pool, batch=2, progress=kill)
    assert found["digest"] == whole["digest"] and found["cuts"] == whole["cuts"]


class Loses(concurrent.futures.Executor):
    """Loses some tasks: those whose number `is_lost`."""

    def __init__(self, is_lost: Callable[[int], bool]) -> None:
        self.is_lost, self.tasks = is_lost, 0

    def submit(self, fn, /, *args, **keywords):  # type: ignore[no-untyped-def]
        self.tasks += 1
        future: concurrent.futures.Future[object] = concurrent.futures.Future()
        if self.is_lost(self.tasks):
            future.set_exception(OSError("the worker is gone"))
        else:
            future.set_result(fn(*args, **keywords))
        return future


def test_a_lost_batch_is_run_again_once() -> None:
    with pytest.warns(UserWarning, match="the worker is gone: run again"):
        found = leyden.torture(12, executor=Loses(lambda task: task == 3), batch=3)
    assert found["digest"] == leyden.torture(12)["digest"]
    shut = concurrent.futures.ThreadPoolExecutor(1)
    shut.shutdown()
    with pytest.warns(UserWarning, match="cannot schedule"):
        assert leyden.torture(12, executor=shut, batch=3)["digest"] == found["digest"]
    with pytest.warns(UserWarning), pytest.raises(leyden.RunError, match="seeds 0 to 2 failed twice: OSError: the worker is gone"):
        leyden.torture(12, executor=Loses(lambda _: True), batch=3)


def test_what_a_worker_cannot_see_is_refused(plan: Path, tmp_path: Path) -> None:
    absolute = {"base": str(plan.parent / "small.toml"), "seeds": 2}
    with pytest.raises(leyden.ConfigError, match="absolute path"):
        leyden.sweep(absolute, executor=Hides(plan.parent, tmp_path / "elsewhere"))
    assert len(leyden.sweep(absolute)) == 2, "here it is seen"


def test_a_failing_progress_cancels_what_is_open(plan: Path) -> None:
    class Waits(concurrent.futures.Executor):
        def __init__(self) -> None:
            self.open: list[concurrent.futures.Future[object]] = []

        def submit(self, fn, /, *args, **keywords):  # type: ignore[no-untyped-def]
            future: concurrent.futures.Future[object] = concurrent.futures.Future()
            if not self.open:
                future.set_result(([], {}))
            self.open.append(future)
            return future

    def stop(_: float) -> None:
        raise InterruptedError("enough")

    pool = Waits()
    with pytest.raises(InterruptedError):
        leyden.sweep(plan, executor=pool, shards=8, progress=stop)
    assert len(pool.open) > 2 and all(task.cancelled() for task in pool.open[1:])


def test_values_of_numpy_are_values() -> None:
    numpy = pytest.importorskip("numpy")
    table = leyden.compare("bench/random-write", vary={"device.ftl.over_provisioning": numpy.linspace(0.1, 0.2, 2)}, set=QUICK, seeds=numpy.int64(2))
    assert len(table) == 4 and table["error"] == [None] * 4
    with pytest.raises(TypeError, match="one value"):
        leyden.compare("bench/random-write", vary={"device.ftl.gc.victim": "greedy"})
    drive = leyden.Drive("bench/random-write")
    with pytest.raises(TypeError):
        drive.submit("write", lba=numpy.array([1.9]), sectors=8)
    drive.submit("write", lba=numpy.arange(0, 64, 8), sectors=numpy.uint32(8), stamp=numpy.arange(8))
    drive.advance()
    assert set(drive.completions().status) == {0}


def test_other_files_are_refused(tmp_path: Path) -> None:
    pyarrow = pytest.importorskip("pyarrow.parquet")
    import pyarrow as arrow

    pyarrow.write_table(arrow.table({"a": [1, 2]}), tmp_path / "other.parquet")
    with pytest.raises(leyden.ConfigError, match="no part of a sweep"):
        leyden.read_table(tmp_path / "other.parquet")


def test_torture_in_batches_has_the_digest_of_one_machine() -> None:
    alone = leyden.torture(30, start=100)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        spread = leyden.torture(30, start=100, executor=pool, batch=7)
    for key in ("digest", "seeds", "cuts", "violations"):
        assert spread[key] == alone[key], key
    for key in ("coverage", "tally"):
        assert spread[key] == alone[key], key
    with pytest.raises(leyden.ConfigError, match="kind of drive"):
        leyden.torture(1, kind="round")


def test_importing_is_quick() -> None:
    program = "import time; t = time.process_time(); import leyden; print(time.process_time() - t)"
    took = min(float(subprocess.check_output([sys.executable, "-c", program])) for _ in range(5))
    assert took < 0.25, "100 ms in a release build"


def test_the_reference_page_is_that_of_the_docstrings() -> None:
    root = Path(__file__).parents[2]
    printed = subprocess.run([sys.executable, root / ".ci/python_reference.py"], capture_output=True, text=True, check=True).stdout
    kept = (root / "docs/reference/python.md").read_text()
    assert printed == kept, "`python .ci/python_reference.py > docs/reference/python.md` makes it, with PYTHONPATH=target/python-package"
