"""Capacitors of a 4 TB drive, and how sure that is: `marimo edit capacitors.py`."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="Capacitors of a 4 TB drive")


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
    # Capacitors of a 4 TB drive

    For firmware and board architects. The drive is a TLC data-centre drive of today's parallelism. All figures follow from the
    configuration by arithmetic; nothing is run. Change the capacity or the drive below, and every cell follows.
    """)
    return


@app.cell
def _():
    drive = "devices/tlc-datacenter"
    settings = {"size": "4 TB"}
    return drive, settings


@app.cell
def _(drive, leyden, pd, settings):
    worst = leyden.worst_cases(drive, set=settings)
    banks = pd.DataFrame([bank for bank in worst["banks"] if bank["problem"] is None])
    share = banks["protected"].map(lambda value: "" if pd.isna(value) else f" {value:.0%}")
    banks["mapping table"] = banks["protection"] + share
    banks["capacitance_mf"] = banks["capacitance_uf"] / 1000
    return banks, worst


@app.cell
def _(alt, banks, mo):
    _bars = (
        alt.Chart(banks[banks["part"] == "tantalum_polymer"])
        .mark_bar()
        .encode(
            x=alt.X("capacitance_mf:Q", title="capacitance, mF"),
            y=alt.Y("mapping table:N", sort="-x", title="protected part of the mapping table"),
            yOffset=alt.YOffset("dump:N"),
            color=alt.Color("dump:N", title="place of the dump"),
            tooltip=["mapping table", "dump", "pages", "dump_ms", "energy_mj", "parts"],
        )
        .properties(width=520, height=420, title="Capacitance against protection and dump, tantalum polymer")
    )
    mo.vstack([mo.md("## What protection and dump cost"), _bars])
    return


@app.cell
def _(banks, mo):
    _own = banks[(banks["protection"] == "full") & (banks["dump"] == "balanced")]
    mo.vstack(
        [
            mo.md("## Parts, with the whole table protected and a balanced dump"),
            _own[["part", "capacitance_mf", "parts", "area_cm2", "height_mm"]].round(1).reset_index(drop=True),
        ]
    )
    return


@app.cell
def _(pd, worst):
    ranges = pd.DataFrame(
        [
            {"assumption": one["what"], "from": one["values"][0], "to": one["values"][1], "low_mf": low / 1000, "high_mf": high / 1000}
            for one in worst["ranges"]
            for low, high in [sorted(one["capacitance_uf"])]
        ]
    )
    ranges["width_mf"] = ranges["high_mf"] - ranges["low_mf"]
    ranges = ranges.sort_values("width_mf", ascending=False)
    return (ranges,)


@app.cell
def _(alt, mo, ranges):
    _tornado = (
        alt.Chart(ranges)
        .mark_bar()
        .encode(
            x=alt.X("low_mf:Q", title="capacitance, mF", scale=alt.Scale(zero=False)),
            x2="high_mf:Q",
            y=alt.Y("assumption:N", sort=list(ranges["assumption"]), title=None),
            tooltip=["assumption", "from", "to", "low_mf", "high_mf"],
        )
        .properties(width=520, title="The bank, as each assumption goes through its range alone")
    )
    mo.vstack(
        [
            mo.md("## How sure that is"),
            _tornado,
            mo.md(f"The widest range is that of **{ranges['assumption'].iloc[0]}**: measure it first."),
        ]
    )
    return


if __name__ == "__main__":
    app.run()
