"""Commands of campaigns: run, and left out where the machine lacks something."""

import contextlib
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator

# A campaign whose output nobody reads any more ends as other commands do.
signal.signal(signal.SIGPIPE, signal.SIG_DFL)


def lacks(what):
    """Ends the campaign: this machine has no `what`."""
    print(f"SKIPPED: {what}")
    sys.exit(77)


def run(*command, **more):
    """What a command prints; ends the campaign if it fails."""
    done = subprocess.run(command, capture_output=True, text=True, **more)
    if done.returncode != 0:
        sys.exit(f"{' '.join(command)}: {done.returncode}\n{(done.stdout + done.stderr)[-2000:]}")
    return done.stdout


def needs_crashtest(leyden: str, *options: str) -> None:
    """Ends the campaign if this machine cannot run crash tests; `options` are those of `crashtest doctor`."""
    try:
        doctor = subprocess.run([leyden, "crashtest", "doctor", *options], capture_output=True, text=True)
    except OSError as error:
        sys.exit(f"{leyden}: {error.strerror}\n  help: cargo build --release --package leyden, or --leyden FILE")
    if doctor.returncode != 0:
        print(doctor.stderr.strip(), file=sys.stderr)
        sys.exit(77)


@contextlib.contextmanager
def open_folder(prefix: str) -> Iterator[str]:
    """A folder for a while, which other users may enter: PostgreSQL runs as one."""
    with tempfile.TemporaryDirectory(prefix=prefix, ignore_cleanup_errors=True) as folder:
        os.chmod(folder, 0o755)
        yield folder
