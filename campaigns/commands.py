"""Commands of campaigns: run, and left out where the machine lacks something."""

import subprocess
import sys


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
