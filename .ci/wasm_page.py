#!/usr/bin/env python3
"""The page of the drive in a browser: one file, made of its parts, with the simulator in it.

    wasm_page.py leyden.wasm leyden.html
"""

import base64
import gzip
import re
import sys
from pathlib import Path

ROOT = Path(__file__).parent.parent
OWN = ROOT / "crates/wasm/assets"
SERVED = ROOT / "crates/serve/assets"  # the page of a served drive has the same plots and style


def page(wasm: bytes) -> str:
    """The page, with `wasm` packed as browsers unpack it."""

    def text(path: Path) -> str:
        return path.read_text("utf-8")

    parts = {
        "wasm": base64.b64encode(gzip.compress(wasm, 9, mtime=0)).decode("ascii"),
        "device": text(OWN / "drive.json"),
        "own-style": text(OWN / "page.css"),
        "script": text(OWN / "page.js"),
        "style": text(SERVED / "watch.css"),
        "figures": text(SERVED / "figures.js"),
        "plots": text(SERVED / "uplot/uPlot.iife.min.js"),
        "plots-style": text(SERVED / "uplot/uPlot.min.css"),
        "licence": text(SERVED / "uplot/LICENSE"),
    }
    return re.sub(r"@([a-z-]+)@", lambda mark: parts[mark[1]], text(OWN / "page.html"))


if __name__ == "__main__":
    wasm = Path(sys.argv[1]).read_bytes()
    made = page(wasm)
    Path(sys.argv[2]).write_text(made, "utf-8")
    packed = len(gzip.compress(wasm, 9, mtime=0))
    print(f"wasm: {len(wasm):,} bytes, {packed:,} with gzip; {sys.argv[2]}: {len(made.encode()):,} bytes")
