"""Which protection, schedule and dump are worth building: `marimo edit frontier.py`."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Designs worth building")


@app.cell
def _():
    import altair as alt
    import leyden
    import marimo as mo
    import pandas as pd

    return alt, leyden, mo, pd


@app.cell
def _(mo):
    mo.md("""
    # Designs worth building

    For firmware architects. A search over protections of the mapping table, schedules of the buffer and places for the dump, by five figures
    at once: IOPS, tail latency, write amplification, recovery time and capacitance. It needs Optuna. The drive is a quarter of
    Hexa's, under random writes.
    """)
    return


@app.cell
def _():
    scenario = "hexa/random-write"
    quick = {
        "device.buffer.size": "16 MiB",
        "device.nand.channels": 4,
        "device.nand.dies_per_channel": 4,
        "device.ftl.capacity": "3 GiB",
        "workload.job.0.span": "1 GiB",
        "workload.job.0.requests": 400_000,
        "run.ramp.requests": 100_000,
    }
    space = {
        "device.ftl.map.protection": [
            "full",
            {"policy": "partial", "protected": "50 %"},
            {"policy": "partial", "protected": "10 %"},
            {"policy": "partial", "protected": "1 %"},
            "journal",
            "none",
        ],
        "device.buffer.schedule": ["fifo", "hexa", "dawid", "harvest"],
        "device.power.dump": ["in_place", "balanced", "balanced_slc"],
    }
    runs = 43
    seeds = 3
    return quick, runs, scenario, seeds, space


@app.cell
def _(leyden, pd, quick, runs, scenario, seeds, space):
    found = leyden.search(
        scenario,
        space=space,
        set=quick,
        minimize=["host.write_latency_us.p99", "flash.waf", "recovery.time_ms.max", "power.worst.capacitance_uf"],
        maximize=["host.iops"],
        runs=runs,
        seeds=seeds,
    )
    designs = pd.DataFrame(found.points)
    _table = designs["device.ftl.map.protection"].map(lambda value: value["protected"] if isinstance(value, dict) else value)
    designs["design"] = _table + ", " + designs["device.buffer.schedule"] + ", " + designs["device.power.dump"]
    designs["on the frontier"] = designs["dominated_by"].isna()
    designs["capacitance_mf"] = designs["power.worst.capacitance_uf"] / 1000
    designs["recovery_ms"] = designs["recovery.time_ms.max"]
    designs["iops"] = designs["host.iops"]
    designs["write_p99_ms"] = designs["host.write_latency_us.p99"] / 1000
    designs["waf"] = designs["flash.waf"]
    return designs, found


@app.cell
def _(alt, designs, found, mo):
    _points = (
        alt.Chart(designs)
        .mark_point(filled=True, size=90)
        .encode(
            x=alt.X("capacitance_mf:Q", title="capacitance of the largest dump, mF"),
            y=alt.Y("recovery_ms:Q", title="recovery, ms", scale=alt.Scale(type="log")),
            color=alt.Color("on the frontier:N", scale=alt.Scale(domain=[True, False], range=["#c2410c", "#a3a3a3"])),
            tooltip=["design", "iops", "write_p99_ms", "waf", "recovery_ms", "capacitance_mf", "seeds"],
        )
        .properties(width=560, height=360, title="Tried designs")
    )
    mo.vstack([mo.md(f"**{len(found.frontier)}** of {len(found.points)} tried designs are on the frontier, after {found.runs} runs."), _points])
    return


@app.cell
def _(designs, mo):
    _best = designs[designs["on the frontier"]].sort_values("capacitance_mf")
    mo.vstack(
        [
            mo.md("## The frontier"),
            _best[["design", "iops", "write_p99_ms", "waf", "recovery_ms", "capacitance_mf", "seeds"]].round(3).reset_index(drop=True),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
