import os
import sys

import pytest
from pytest_leyden import CannotRun, PowerCutLoss

ORDERS = [sys.executable, os.path.join(os.path.dirname(__file__), "orders.py")]
SMALL = {"size": "16 MiB", "states": 60, "settings": ["device.buffer.region=none"]}


def test_confirmed_orders_survive_power_cuts(leyden_crashtest):
    summary = leyden_crashtest(work=[*ORDERS, "work", 12], check=[*ORDERS, "check"], **SMALL)
    assert summary["acks"] == 12
    assert summary["models"][0]["states"] >= 20


def test_orders_that_are_confirmed_too_early_are_found(leyden_crashtest, tmp_path):
    with pytest.raises(PowerCutLoss, match="acknowledged lost") as loss:
        leyden_crashtest(work=[*ORDERS, "work", 12, "hasty"], check=[*ORDERS, "check"], **SMALL)
    assert loss.value.summary["models"][0]["findings"]
    assert (tmp_path / "crash" / "report.html").exists()


def test_a_check_that_sees_nothing_is_found(leyden_crashtest):
    with pytest.raises(PowerCutLoss, match="ignores all flushes"):
        leyden_crashtest(work=[*ORDERS, "work", 12], check="true", **SMALL)


def test_a_check_that_always_fails_is_no_finding(leyden_crashtest):
    with pytest.raises(PowerCutLoss, match="where nothing is lost"):
        leyden_crashtest(work=[*ORDERS, "work", 12], check="echo no such table; false", **SMALL)


def test_too_few_states_fail(leyden_crashtest):
    with pytest.raises(PowerCutLoss, match="fewer states") as loss:
        leyden_crashtest(work=[*ORDERS, "work", 12], check=[*ORDERS, "check"], require_states=100_000, **SMALL)
    assert loss.value.summary["models"][0]["stop"] in ("states", "exhausted")


def test_work_that_fails_is_said(leyden_crashtest):
    with pytest.raises(CannotRun, match="exit"):
        leyden_crashtest(work="exit 3", check="true", **SMALL)
