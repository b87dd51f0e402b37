"""Results as a table."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from leyden import _leyden

if TYPE_CHECKING:
    import pandas
    import polars

#: Columns that a printed table begins with, and figures that it shows.
_FIRST = ("point", "seed")
_KEY_FIGURES = ("host.iops", "flash.waf", "error")
_SHOWN = 12


class Table:
    """A line for each run: its varied keys, its figures, its warnings.

    Columns are `point`, `id`, `name`, `device`, `seed`, `error`, `digest`; then `config.KEY` for each varied key, as a number where its
    values are quantities (shares as fractions; sizes and times in the unit that the name ends with: `_bytes`, `_s`); then the
    figures of the run record under their keys (docs/reference/metrics.md), `steadiness.*.settled` among them; then `warnings`. A value
    that a run has not is None. No figure of the machine that made the runs is in it.

    The table takes part in Arrow's PyCapsule interface: `pyarrow.table(t)`, `polars.DataFrame(t)` and DuckDB read it without a copy.

    >>> import leyden
    >>> t = leyden.compare("bench/random-write", set={"workload.job.0.requests": 2000, "precondition.kind": "none"}, seeds=2)
    >>> len(t), t["seed"], t["error"]
    (2, [1, 2], [None, None])
    >>> t.rows()[0]["host.writes"]
    2000
    """

    def __init__(self, native: _leyden.Table) -> None:
        self._native = native

    @property
    def columns(self) -> list[str]:
        """The names of the columns, in their order."""
        return self._native.columns

    def __len__(self) -> int:
        return len(self._native)

    def __getitem__(self, column: str) -> list[Any]:
        return self._native.column(column)

    def __contains__(self, column: object) -> bool:
        return column in self._native.columns

    def __iter__(self) -> Iterator[str]:
        return iter(self.columns)

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._native.__arrow_c_stream__(requested_schema)

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists."""
        return {name: self[name] for name in self.columns}

    def rows(self) -> list[dict[str, Any]]:
        """The lines, each a dict of its values."""
        columns = self.to_dict()
        return [dict(zip(columns, values)) for values in zip(*columns.values())]

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of pandas, which must be installed; by way of pyarrow if that is."""
        import pandas

        try:
            import pyarrow
        except ImportError:
            return pandas.DataFrame(self.to_dict())
        frame: pandas.DataFrame = pyarrow.table(self).to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """A data frame of Polars, which must be installed."""
        import polars

        return polars.DataFrame(self)

    def _shown(self) -> list[list[str]]:
        columns = self.columns
        varied = [name for name in columns if name.startswith("config.")]
        figures = [name for name in _KEY_FIGURES if name in columns]
        names = [*(name for name in _FIRST if name in columns), *varied, *figures] or columns[:6]
        lines = [names]
        for values in list(zip(*(self[name] for name in names)))[:_SHOWN]:
            lines.append(["" if value is None else f"{value:.6g}" if isinstance(value, float) else str(value) for value in values])
        return lines

    def __repr__(self) -> str:
        lines = self._shown()
        lines = [[cell.split("\n")[0][:40] for cell in line] for line in lines]
        widths = [max(len(line[at]) for line in lines) for at in range(len(lines[0]))]
        text = "\n".join("  ".join(cell.rjust(width) for cell, width in zip(line, widths)) for line in lines)
        return f"{text}\n[{len(self)} runs, {len(self.columns)} columns]"

    def _repr_html_(self) -> str:
        from html import escape

        head, *lines = self._shown()

        def row(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f"<{tag}>{escape(cell)}</{tag}>" for cell in cells) + "</tr>"

        body = "".join(row(line, "td") for line in lines)
        return f"<table>{row(head, 'th')}{body}</table><p>{len(self)} runs, {len(self.columns)} columns</p>"


def read(path: str) -> Table:
    return Table(_leyden.read_table(path))
