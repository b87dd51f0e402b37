"""Exceptions: the tool's own messages, taken apart."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Iterator

from leyden import _leyden


class LeydenError(Exception):
    """What Leyden refuses or fails at. Its text is the whole message: problem, place and remedy.

    Attributes:
        key: the key of the configuration that is to blame, dotted; None if there is none.
        place: file, line and column where it was written; None if it was not read from a file.
        remedy: the help of the message; None without any.

    >>> import leyden
    >>> try:
    ...     leyden.check("hot-cold", set={"device.ftl.over_provisionin": 0.1})
    ... except leyden.ConfigError as error:
    ...     print(error.key, "|", error.remedy)
    device.ftl.over_provisionin | the nearest key is `over_provisioning`
    """

    key: str | None
    place: str | None
    remedy: str | None

    def __init__(self, text: str) -> None:
        super().__init__(text)
        key = re.search(r"`([a-z][a-z0-9_]*(?:\.[a-z0-9_]+)*)`", text.split("\n")[0])
        place = re.search(r"^\s*--> (.+)$", text, re.MULTILINE)
        remedy = re.search(r"^\s*help: (.+)$", text, re.MULTILINE)
        self.key = key.group(1) if key else None
        self.place = place.group(1) if place else None
        self.remedy = remedy.group(1) if remedy else None


class ConfigError(LeydenError, ValueError):
    """The configuration or an input is wrong: nothing was run."""


class RunError(LeydenError, RuntimeError):
    """A run ended before its end."""


@contextlib.contextmanager
def translated() -> Iterator[None]:
    """Turns what the native module raises into the package's exceptions."""
    try:
        yield
    except _leyden.NativeConfigError as error:
        raise ConfigError(str(error)) from None
    except _leyden.NativeRunError as error:
        raise RunError(str(error)) from None
