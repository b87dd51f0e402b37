"""A pool that loses a process amid its work."""

from __future__ import annotations

import concurrent.futures
import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager


@contextmanager
def losing() -> Iterator[tuple[concurrent.futures.Executor, Callable[[float], None]]]:
    """A pool of two processes, and what kills the first of them when progress is told to it."""
    killed: list[int] = []
    with concurrent.futures.ProcessPoolExecutor(2, multiprocessing.get_context("spawn")) as pool:

        def kill(_: float) -> None:
            if not killed:
                killed.extend(pool._processes)
                os.kill(killed[0], signal.SIGKILL)

        yield pool, kill
    assert killed, "nothing was killed"
