#!/usr/bin/env python3
"""Links of the book (book.toml) that leave docs/, and a check of all links of the built book.

mdBook runs this as a preprocessor: a link to a chapter that lies outside of docs/ becomes a link to its page; a link to a
file of the repository becomes the file's path. The front page shows the drive in the browser, if .ci/wasm has built
it. `book_links.py FOLDER` checks that every relative link and every fragment of the
pages below FOLDER leads somewhere.
"""

import json
import posixpath
import re
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from urllib.parse import unquote

SOURCES = "docs"
FRONT = "docs/README.md"
DRIVE = Path("target/wasm/leyden.html")
SHOWN = """
## A drive in your browser

Choose a protection, write, cut the power ([on a page of its own](drive.html)).

<iframe src="drive.html" title="A simulated SSD: choose its protection, write, cut its power, see the losses" loading="lazy"
 style="width: 100%; height: 46rem; border: 1px solid var(--table-border-color); border-radius: 8px"></iframe>

"""
LINK = re.compile(r"(?<!!)\[((?:[^\]\[]|\[[^\]]*\])*)\]\(([^)\s]+)\)")
FENCE = re.compile(r"^(```.*?^```)", re.MULTILINE | re.DOTALL)


def chapters(items: list[Any]) -> list[dict[str, Any]]:
    """All chapters with a source, in order."""
    found: list[dict[str, Any]] = []
    for item in items:
        chapter = item.get("Chapter") if isinstance(item, dict) else None
        if chapter and chapter["path"]:
            found.append(chapter)
        if chapter:
            found += chapters(chapter["sub_items"])
    return found


def page_of(path: str) -> str:
    """Where a chapter lies in the book; its path is from the sources' root."""
    return path.lstrip("./").lower().replace("/", "-") if path.startswith("../") else path


def rewritten(text: str, source: str, pages: dict[str, str]) -> str:
    """The text of a chapter with its links as the book needs them."""

    def link(match: re.Match[str]) -> str:
        label, target = match.groups()
        file, _, fragment = target.partition("#")
        if not file or "://" in target or target.startswith("mailto:"):
            return match.group(0)
        found = posixpath.normpath(posixpath.join(posixpath.dirname(source), file))
        here = posixpath.dirname(pages[source])
        if found in pages:
            file = posixpath.relpath(pages[found], here or ".")
            return f"[{label}]({file}{'#' + fragment if fragment else ''})"
        if found.startswith(SOURCES + "/") and not found.endswith(".md") and Path(found).is_file():
            return f"[{label}]({posixpath.relpath(posixpath.relpath(found, SOURCES), here or '.')})"
        plain = label.strip("`")
        return f"`{found}`" if found.endswith(plain) else f"{label} (`{found}`)"

    parts = FENCE.split(text)
    return "".join(part if part.startswith("```") else LINK.sub(link, part) for part in parts)


def preprocess() -> None:
    """mdBook's protocol: context and book come in as JSON, the book goes out."""
    _, book = json.load(sys.stdin)
    found = chapters(book.get("items") or book.get("sections") or [])
    # mdBook itself has made `index.md` of each README.md: links name the source.
    sources = [posixpath.normpath(posixpath.join(SOURCES, chapter["source_path"])) for chapter in found]
    pages = {source: page_of(chapter["path"]) for source, chapter in zip(sources, found)}
    for source, chapter in zip(sources, found):
        chapter["content"] = rewritten(chapter["content"], source, pages)
        if source == FRONT and DRIVE.is_file():
            head, first, rest = chapter["content"].partition("\n## ")
            chapter["content"] = head + SHOWN + first.lstrip("\n") + rest
        chapter["path"] = pages[source]
    json.dump(book, sys.stdout)


class Page(HTMLParser):
    """What a page links to, and what can be linked to in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Notes links and names."""
        for key, value in attrs:
            if key in ("href", "src") and value and tag in ("a", "img"):
                self.links.append(value)
            if key in ("id", "name") and value:
                self.names.add(value)


def check(folder: Path) -> int:
    """Prints the links that lead nowhere; 1 if there are any."""
    pages = {path: Page(path.read_text("utf-8")) for path in sorted(folder.rglob("*.html"))}
    dead = 0
    for path, page in pages.items():
        if path.name in ("print.html", "404.html", "toc.html"):
            continue  # all chapters on one page; a page for any depth; the side bar
        for link in page.links:
            file, _, fragment = link.partition("#")
            if "://" in link or link.startswith(("mailto:", "javascript:")):
                continue
            target = path if not file else (path.parent / unquote(file)).resolve()
            there = target.exists() and (not fragment or target not in pages or unquote(fragment) in pages[target].names)
            if not there:
                print(f"{path.relative_to(folder)}: the link `{link}` leads to nothing")
                dead += 1
    print(f"book: {len(pages)} pages, {dead} dead links")
    return min(dead, 1) if len(pages) > 20 else 1


if __name__ == "__main__":
    if len(sys.argv) == 3 and sys.argv[1] == "supports":
        sys.exit(0)  # every renderer
    if len(sys.argv) == 2:
        sys.exit(check(Path(sys.argv[1]).resolve()))
    preprocess()
