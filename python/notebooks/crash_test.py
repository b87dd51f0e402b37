"""A crash test of two ways to replace a file: `marimo edit crash_test.py`."""

import marimo

__generated_with = "0.25.2"
app = marimo.App(width="medium", app_title="A crash test")


@app.cell
def _():
    import os
    import tempfile
    from pathlib import Path

    import altair as alt
    import leyden
    import marimo as mo
    import pandas as pd

    return Path, alt, leyden, mo, os, pd, tempfile


@app.cell
def _(mo):
    mo.md("""
    # Does it survive a power cut?

    For authors of software that keeps files. A program replaces its settings forty times, by rename, and promises each version.
    Its calls are recorded, the power is cut at many moments, and each state that XFS may leave is checked. Needs Linux with FUSE, and no
    root.
    """)
    return


@app.cell
def _():
    work = """import os
    for number in range(40):
        with open("settings.new", "w") as file:
            file.write(str(number) * 400)
            file.flush()
            {sync}
        os.rename("settings.new", "settings")
        folder = os.open(".", os.O_RDONLY)
        os.fsync(folder)
        os.close(folder)
        with open(os.environ["LEYDEN_ACK"], "a") as acks:
            acks.write(f"ack {{number}}\\n")
    """
    check = """import os, sys
    promised = open(os.environ["LEYDEN_ACKS"]).read().split()
    try:
        text = open(os.path.join(os.environ["LEYDEN_MOUNT"], "settings")).read()
    except FileNotFoundError:
        text = ""
    there = [number for number in range(40) if text == str(number) * 400]
    if text and not there:
        sys.exit(f"settings of {len(text)} bytes are no version")
    if promised and (not there or there[0] < int(promised[-1])):
        sys.exit(f"lost version {promised[-1]}")
    """
    programs = {"without a sync of the file": "pass", "with a sync of the file": "os.fsync(file.fileno())"}
    states = 400
    return check, programs, states, work


@app.cell
def _(Path, check, leyden, os, programs, states, tempfile, work):
    import textwrap

    def tested(sync):
        with tempfile.TemporaryDirectory() as folder:
            script, checker = Path(folder, "work.py"), Path(folder, "check.py")
            script.write_text(textwrap.dedent(work.format(sync=sync)))
            checker.write_text(textwrap.dedent(check))
            os.chmod(folder, 0o755)
            crash = Path(folder, "crash")
            leyden.record_files(crash, work=f"cd $LEYDEN_MOUNT && python3 -S {script}", check=f"python3 -S {checker}")
            return leyden.crashtest(crash, states=states)

    results = {name: tested(sync) for name, sync in programs.items()}
    return (results,)


@app.cell
def _(alt, mo, pd, results):
    _rows = [
        {"program": name, "verdict": verdict, "states": count}
        for name, result in results.items()
        for verdict, count in result["models"][0]["verdicts"].items()
    ]
    _bars = (
        alt.Chart(pd.DataFrame(_rows))
        .mark_bar()
        .encode(
            x=alt.X("states:Q", title="states after a power cut"),
            y=alt.Y("program:N", title=None),
            color=alt.Color("verdict:N", scale=alt.Scale(domain=["held", "lost", "failed"], range=["#4d7c0f", "#b45309", "#b91c1c"])),
            tooltip=["program", "verdict", "states"],
        )
        .properties(width=520, title="What the checks say")
    )
    mo.vstack([mo.md("## Verdicts"), _bars])
    return


@app.cell
def _(mo, pd, results):
    findings = pd.DataFrame(
        [
            {"program": name, "verdict": finding["verdict"], "states": finding["count"], "the check says": finding["said"].strip()}
            for name, result in results.items()
            for finding in result["models"][0]["findings"]
        ]
    )
    mo.vstack([mo.md("## Findings"), findings])
    return (findings,)


if __name__ == "__main__":
    app.run()
