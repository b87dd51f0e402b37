"""A drive that a program drives."""

from __future__ import annotations

import array
import contextlib
import json
import operator
from collections.abc import Iterable, Mapping, Sized
from typing import Any, Literal, NamedTuple

from leyden import _leyden
from leyden._config import Scenario, Value, settings, source
from leyden._errors import translated

#: Opcodes of the NVM command set.
FLUSH, WRITE, READ, WRITE_ZEROES, TRIM = 0x00, 0x01, 0x02, 0x08, 0x09
_CODES = {"flush": FLUSH, "write": WRITE, "read": READ, "write_zeroes": WRITE_ZEROES, "trim": TRIM}
_Type = Literal["B", "H", "I", "Q"]


class Completions(NamedTuple):
    """Commands that have ended, in the order of their ends: columns of one length.

    Attributes:
        tag: the number that the command was given.
        op: its opcode.
        status: NVMe status code type and code; 0 is success.
        submitted_ns, ended_ns: simulated nanoseconds.
        stamp: of a read, the stamp of the newest write to its first mapping unit; 0 without a write.
    """

    tag: memoryview
    op: memoryview
    status: memoryview
    submitted_ns: memoryview
    ended_ns: memoryview
    stamp: memoryview

    def __len__(self) -> int:
        return len(self.op)


class Drive:
    """A conventional drive as a state machine: the same commands at the same times yield the same completions.

    Time is simulated, in nanoseconds, and moves only when commands arrive or `advance` is called. Sectors have 512 bytes.

    >>> import leyden
    >>> drive = leyden.Drive("bench/random-write")
    >>> drive.submit("write", lba=[0, 8, 16], sectors=8, stamp=[7, 8, 9])
    >>> _ = drive.advance()
    >>> done = drive.completions()
    >>> list(done.tag), set(done.status)
    ([0, 1, 2], {0})
    >>> drive.submit("read", lba=[8], sectors=8)
    >>> _ = drive.advance()
    >>> list(drive.completions().stamp)
    [8]
    """

    def __init__(self, scenario: Scenario = "devices/hexa", *, set: Mapping[str, Value] | None = None) -> None:
        name, text = source(scenario)
        with translated():
            self._native = _leyden.NativeDrive(name, text, settings(set))
        self._next_tag = 0

    @property
    def now_ns(self) -> int:
        """Simulated nanoseconds since the drive was made."""
        return self._native.now_ns

    @property
    def sectors(self) -> int:
        """Sectors that can be addressed."""
        return self._native.sectors

    @property
    def is_on(self) -> bool:
        """Whether the drive has power."""
        return self._native.is_on

    def submit(
        self,
        op: str | int | Iterable[int],
        lba: int | Iterable[int] = 0,
        sectors: int | Iterable[int] = 0,
        *,
        at_ns: int | Iterable[int] | None = None,
        stamp: int | Iterable[int] = 0,
        tag: int | Iterable[int] | None = None,
    ) -> None:
        """Submits commands. Each argument is one value for all, or an array with one for each: a list, an `array.array`, or an array of numpy
        of the type that stands in parentheses.

        Args:
            op: `read`, `write`, `flush`, `trim`, `write_zeroes`; or opcodes (uint8).
            lba: first sectors (uint64).
            sectors: lengths (uint32).
            at_ns: when they arrive (uint64), in order; now if not given.
            stamp: a number that writes store in each mapping unit (uint64).
            tag: numbers that completions tell (uint32); counted on if not given.

        Raises:
            ConfigError: columns of different lengths, an opcode that is not known, a time that is over.
        """
        code = _CODES.get(op, op) if isinstance(op, str) else op
        if isinstance(code, str):
            raise ValueError(f"there is no command `{code}`; write {', '.join(_CODES)}")
        given: list[object] = [code, lba, sectors, at_ns, stamp, tag]
        lengths = {len(column) for column in given if isinstance(column, Sized)}
        if len(lengths) > 1:
            raise ValueError(f"the columns have different lengths: {sorted(lengths)}")
        count = lengths.pop() if lengths else 1
        if at_ns is None:
            at_ns = self._native.now_ns
        if tag is None:
            tag = array.array("I", (number & 0xFFFF_FFFF for number in range(self._next_tag, self._next_tag + count)))
            self._next_tag += count
        with translated():
            self._native.submit(
                _column(at_ns, "Q", count),
                _column(code, "B", count),
                _column(lba, "Q", count),
                _column(sectors, "I", count),
                _column(stamp, "Q", count),
                _column(tag, "I", count),
            )

    def advance(self, until_ns: int | None = None) -> int:
        """Advances time to `until_ns`, or until nothing is in flight; returns the time that is reached."""
        with translated():
            return self._native.advance(until_ns)

    def completions(self) -> Completions:
        """Takes the commands that have ended since the last call. `numpy.asarray` of a column makes no copy."""
        tag, op, status, submitted, ended, stamp = self._native.completions()
        return Completions(_view(tag, "I"), _view(op, "B"), _view(status, "H"), _view(submitted, "Q"), _view(ended, "Q"), _view(stamp, "Q"))

    def cut(self) -> dict[str, Any]:
        """Cuts the power now. Commands in flight end without an answer. Returns the size and the losses of the dump:
        `lost_units` mapping units that the drive had promised to keep.

        Raises:
            ConfigError: if the power is off.
        """
        with translated():
            loss: dict[str, Any] = json.loads(self._native.cut())
            return loss

    def restore(self) -> dict[str, Any]:
        """Restores the power now; returns how long recovery takes. Commands that come before it is over wait.

        Raises:
            ConfigError: if the power is on.
        """
        with translated():
            recovery: dict[str, Any] = json.loads(self._native.restore())
            return recovery

    def statistics(self) -> dict[str, Any]:
        """The counters of all layers, since the drive was made."""
        counters: dict[str, Any] = json.loads(self._native.statistics())
        return counters


def _view(column: bytes | list[int], kind: _Type) -> memoryview:
    """Bytes as a column."""
    view: memoryview = memoryview(bytes(column)).cast(kind)
    return view


def _column(value: Any, kind: _Type, count: int) -> bytes:
    """A column as bytes."""
    with contextlib.suppress(TypeError):
        return array.array(kind, [operator.index(value)]).tobytes() * count
    try:
        view = memoryview(value)
    except TypeError:
        return array.array(kind, value).tobytes()
    if view.format in "efdg":
        raise TypeError("a column holds whole numbers")
    if view.itemsize != array.array(kind).itemsize or view.format not in "BHILQ":
        return array.array(kind, (int(item) for item in view)).tobytes()
    return view.tobytes()
