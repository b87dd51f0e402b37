"""Power cuts in pytest, by `leyden crashtest`.

    def test_orders_survive_power_cuts(leyden_crashtest):
        leyden_crashtest(work="./work.sh", check="./check.sh", states=500)

The test fails with what broke and the commands that replay it. It is skipped, with the reason, where the machine lacks
what crash tests take (root, /dev/fuse, loop devices), unless --leyden-required is given, as CI should.

Outside of pytest, `crashtest` does the same and raises `PowerCutLoss`.
"""

import json
import os
import shlex
import subprocess

import pytest

BROKEN = {
    "lost": "acknowledged lost", "failed": "check failed", "crashed": "check crashed", "hung": "check hung",
    "fsck": "fsck", "unmountable": "does not mount",
}


# Exit codes of `leyden crashtest` with a result; all others say that nothing was found out.
WITH_RESULT = (0, 1, 6, 7, 8)
NO_VERDICT = {
    "check_blind": "the check passes a drive that ignores all flushes: it does not notice lost data",
    "check_fails": "the check fails where nothing is lost: the check or the work is broken",
    "too_few": "fewer states were tried than are required",
}


class PowerCutLoss(AssertionError):
    """Something broke that a lawful drive may do, or there is no verdict. `summary` is the whole result."""

    def __init__(self, said, summary):
        super().__init__(said)
        self.summary = summary


class CannotRun(RuntimeError):
    """The crash test could not be made: what `leyden` said."""


def lacking(leyden="leyden", fs="ext4"):
    """What this machine lacks for crash tests; nothing if it can make them."""
    try:
        done = subprocess.run([leyden, "crashtest", "doctor", "--fs", fs], capture_output=True, text=True)
    except FileNotFoundError:
        return f"{leyden}: there is no such program; name it with --leyden or the variable LEYDEN"
    return None if done.returncode == 0 else done.stderr.strip()


def crashtest(*, work, check, out, drive="devices/tlc-datacenter", setup=None, fs="ext4", size="64 MiB", states=500,
              budget=None, require_states=None, seed=1, models=("adversarial",), check_server=False, settings=(), options=(),
              leyden="leyden", cwd=None):
    """Records `work` on a drive, cuts its power, and checks what is left; returns the summary.

    `work`, `check` and `setup` are shell commands, or lists of words. `out` is a folder for the recording and all
    results. `settings` are further `KEY=VALUE` of the drive, `options` further arguments of `leyden crashtest`.
    With a `budget` ("10 min") the number of states depends on the machine's speed; fewer than `require_states` fail.
    Raises `PowerCutLoss` if something broke or the result is no verdict, and `CannotRun` if nothing could be tried.
    """
    command = [
        leyden, "--quiet", "crashtest", drive, "--work", shell(work), "--check", shell(check), "--out", str(out),
        "--fs", fs, "--size", size, "--states", str(states), "--seed", str(seed),
        "--model", ",".join(models), "--json",
    ]
    if budget is not None:
        command += ["--budget", budget]
    if require_states is not None:
        command += ["--require-states", str(require_states)]
    if setup is not None:
        command += ["--setup", shell(setup)]
    if check_server:
        command.append("--check-server")
    for setting in settings:
        command += ["--set", setting]
    done = subprocess.run([*command, *options], capture_output=True, text=True, cwd=cwd)
    if done.returncode not in WITH_RESULT or not done.stdout:
        raise CannotRun(done.stderr.strip())
    summary = json.loads(done.stdout)
    broken = list(told(summary, out))
    if broken:
        raise PowerCutLoss("\n".join(["power cuts broke it:", *broken, f"see {out}/report.html"]), summary)
    if summary["verdict"] in NO_VERDICT:
        said = (summary.get("intact") or {}).get("said", "")
        raise PowerCutLoss("\n".join(filter(None, [NO_VERDICT[summary["verdict"]], said])), summary)
    return summary


def told(summary, out):
    """What broke on lawful drives, and how to look at it."""
    for model in summary["models"]:
        if model["model"] == "lying":
            continue
        for number, finding in enumerate(model["findings"], 1):
            name = f"{model['model']}-{number}"
            yield f"  {BROKEN[finding['verdict']]}, {finding['count']} of {model['states']} states: {finding['cause']}"
            yield f"    leyden crashtest shrink {out} {out}/findings/{name}.json"


def shell(command):
    """A command as the shell reads it."""
    return command if isinstance(command, str) else shlex.join(str(word) for word in command)


def pytest_addoption(parser):
    group = parser.getgroup("leyden", "power cuts by Leyden")
    group.addoption("--leyden", default=os.environ.get("LEYDEN", "leyden"), help="the program (leyden, or $LEYDEN)")
    group.addoption("--leyden-required", action="store_true", help="fail, and do not skip, where it cannot be done")


@pytest.fixture
def leyden_crashtest(request, tmp_path):
    """Runs a crash test with the arguments of `crashtest`; results are in `tmp_path / "crash"`."""
    leyden = request.config.getoption("--leyden")

    def run(**arguments):
        problem = lacking(leyden, arguments.get("fs", "ext4"))
        if problem:
            (pytest.fail if request.config.getoption("--leyden-required") else pytest.skip)(problem)
        __tracebackhide__ = True
        return crashtest(**{"out": tmp_path / "crash", "leyden": leyden, **arguments})

    return run
