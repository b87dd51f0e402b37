"""Inputs of work that is sent to others: by checksum, and laid out there as they were here."""

from __future__ import annotations

import concurrent.futures
import contextlib
import hashlib
import os
import shutil
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from leyden import _leyden
from leyden._config import cache_folder
from leyden._errors import ConfigError, LeydenError, RunError

T = TypeVar("T")

#: Tasks that are open before the first has ended: each worker that lacks the inputs is sent them, and then has them for the others.
FIRST_OPEN = 4


#: Bytes that a worker's inputs may take; those of the work at hand are kept whatever they take.
MOST_INPUTS = 4 << 30


def submitted(executor: concurrent.futures.Executor, work: Callable[..., T], *args: Any) -> concurrent.futures.Future[T]:
    """A task of `executor`; one that has failed where it takes no more, as a pool that has lost a process."""
    try:
        return executor.submit(work, *args)
    except RuntimeError as error:  # BrokenExecutor is one, and so is that of an executor that was shut down
        failed: concurrent.futures.Future[T] = concurrent.futures.Future()
        failed.set_exception(error)
        return failed


def again(executor: concurrent.futures.Executor, error: Exception, what: str, work: Callable[..., T], *args: Any) -> T:
    """The result of a task whose worker was lost: of another worker, or of this process where the executor takes no more."""
    warnings.warn(f"{what}: {type(error).__name__}: {error}: run again", stacklevel=4)
    try:
        return submitted(executor, work, *args).result()
    except LeydenError:
        raise
    except RuntimeError:
        return work(*args)
    except Exception as second:
        raise RunError(f"{what} failed twice: {type(second).__name__}: {second}\n  help: look at the workers, and call again") from second


class Bundle(NamedTuple):
    """Something that can be sent: a text, and files by checksum. `path` is where the text stood, below the folder of all files."""

    build: str
    path: str
    text: str
    files: dict[str, str]
    #: Files that are copied where others are linked to.
    copied: frozenset[str]


def checksum_of(file: Path) -> str:
    with open(file, "rb") as content:
        sums = hashlib.sha256()
        while piece := content.read(1 << 20):
            sums.update(piece)
    return sums.hexdigest()


def received(bundle: Bundle, sent: Mapping[str, bytes]) -> tuple[list[str], dict[str, Path]]:
    """On a worker: the checksums of inputs that are not here, and where those are that are."""
    same_build(bundle.build)
    inputs = _inputs_folder()
    for checksum, content in sent.items():
        write(inputs / checksum, content)
    if sent:
        _bound(inputs, keep=frozenset(bundle.files.values()))
    contents = {checksum: inputs / checksum for checksum in bundle.files.values()}
    # A file that is not what its name says is no input: it is sent again.
    lacking = sorted(checksum for checksum, file in contents.items() if not file.is_file() or checksum_of(file) != checksum)
    if lacking and sent:
        raise ConfigError("an input has changed on its way\n  help: call again")
    return lacking, contents


def _inputs_folder() -> Path:
    """Where a worker keeps inputs: in its user's cache, or for want of one in a folder that no other user can have made."""
    global _private
    base = cache_folder()
    if base is None:
        _private = _private or Path(tempfile.mkdtemp(prefix="leyden-inputs-"))
        return _private
    inputs = base / "inputs"
    inputs.mkdir(parents=True, exist_ok=True)
    return inputs


_private: Path | None = None


def _bound(inputs: Path, keep: frozenset[str], most: int = MOST_INPUTS) -> None:
    """Removes what was sent the longest ago, until the others are below the bound."""
    found = []
    for file in inputs.iterdir():
        with contextlib.suppress(FileNotFoundError):  # another worker's
            found.append((file.stat().st_mtime_ns, file.stat().st_size, file))
    size = sum(file[1] for file in found)
    for _, length, file in sorted(found):
        if size > most and file.name not in keep:
            file.unlink(missing_ok=True)
            size -= length


@contextlib.contextmanager
def laid_out(bundle: Bundle, contents: Mapping[str, Path]) -> Iterator[Path]:
    """A folder in which the bundle's files stand as they did."""
    with tempfile.TemporaryDirectory(prefix="leyden-") as folder:
        root = Path(folder)
        (root / bundle.path).parent.mkdir(parents=True, exist_ok=True)
        for name, checksum in bundle.files.items():
            place = root / name
            place.parent.mkdir(parents=True, exist_ok=True)
            if name in bundle.copied:
                shutil.copyfile(contents[checksum], place)
            else:
                place.symlink_to(contents[checksum].absolute())
        yield root


def same_build(build: str) -> None:
    if build != _leyden.build:
        raise ConfigError(f"a worker has another build, {_leyden.build}; this is {build}\n  help: install the same wheel everywhere")


def write(path: Path, content: bytes) -> None:
    """A file that appears whole or not at all."""
    handle, temporary = tempfile.mkstemp(dir=path.parent, prefix=".leyden-")
    try:
        with os.fdopen(handle, "wb") as file:
            os.fchmod(handle, 0o666 & ~_umask())
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(temporary)
        raise


def _umask() -> int:
    """The umask, which can only be read by setting it; so it is read from the system's account of this process."""
    with contextlib.suppress(OSError):
        for line in Path("/proc/self/status").read_text().splitlines():
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o077
