"""From a trace of your own to drive writes a day: `marimo edit trace_to_endurance.py`."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="From a trace to drive writes a day")


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
    # From a trace to drive writes a day

    For engineers who choose a drive for a workload. It replays a block trace on a drive with several shares of spare flash, and says how
    many drive writes a day the flash stands over the warranty. The trace is a recorded TPC-C on PostgreSQL; name your own instead
    (blktrace, fio, MSR, CSV and others).
    """)
    return


@app.cell
def _():
    trace = "scenarios/traces/tpcc.csv.zst"
    drive = "bench/tpcc"
    cycles = 3000
    warranty_years = 5.0
    spares = ["7 %", "14 %", "28 %"]
    loops = 8
    return cycles, drive, loops, spares, trace, warranty_years


@app.cell
def _(leyden, mo, pd, trace):
    profile = leyden.trace(trace)["profile"]
    _told = {
        "requests": profile["requests"],
        "written, GB": profile["bytes_written"] / 1e9,
        "read, GB": profile["bytes_read"] / 1e9,
        "footprint, GB": profile["footprint_bytes"] / 1e9,
        "flushes": profile["flushes"],
        "duration, s": profile["duration_s"],
    }
    mo.vstack([mo.md("## The trace"), pd.DataFrame(_told.items(), columns=["", "value"]).round(2)])
    return (profile,)


@app.cell
def _(cycles, drive, leyden, loops, pd, spares, trace, warranty_years):
    lives = []
    for _spare in spares:
        _life = leyden.lifetime(
            drive,
            cycles=cycles,
            warranty_years=warranty_years,
            set={"workload.trace.path": trace, "workload.trace.loops": loops, "device.ftl.over_provisioning": _spare},
        )
        lives.append({"spare flash": _spare, **_life})
    lives = pd.DataFrame(lives)
    return (lives,)


@app.cell
def _(alt, lives, mo):
    _bars = (
        alt.Chart(lives)
        .mark_bar()
        .encode(
            x=alt.X("spare flash:N", sort=None, axis=alt.Axis(labelAngle=0)),
            y=alt.Y("rated_dwpd:Q", title="drive writes a day"),
            tooltip=["spare flash", "rated_dwpd", "waf"],
        )
        .properties(width=320, height=260, title="Drive writes a day that the flash stands")
    )
    _table = lives[["spare flash", "rated_dwpd", "waf", "most_erases", "mean_erases"]].round(3)
    _note = mo.md("The most worn block ends the drive's life: where it is far above the mean, wear levelling pays.")
    mo.vstack([mo.md("## What the flash stands"), _bars, _table, _note])
    return


if __name__ == "__main__":
    app.run()
