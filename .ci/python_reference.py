"""Prints the reference page of the Python package, docs/reference/python.md, from its docstrings."""

from __future__ import annotations

import inspect
import re
import textwrap
from typing import Any

HEAD = """# Python package

From `import leyden`. [Python](../python.md) is the guide. Made from the docstrings: `.ci/python_reference.py` prints it.
"""


def page(package: Any) -> str:
    parts = [HEAD]
    for name in sorted(package.__all__, key=str.lower):
        value = getattr(package, name)
        if inspect.isclass(value):
            parts.append(class_of(name, value))
        elif callable(value):
            parts.append(f"## leyden.{name}\n\n{signature(f'leyden.{name}', value)}{text_of(value.__doc__)}")
        else:
            parts.append(f"## leyden.{name}\n\n`{value!r}`: an operation of `Drive.submit`.\n")
    return "\n".join(parts)


def class_of(name: str, value: type) -> str:
    parts = [f"## leyden.{name}\n\n{text_of(value.__doc__)}"]
    if not issubclass(value, (Exception, tuple)):
        for member, of in vars(value).items():
            if member.startswith("_") and member not in ("__init__", "__getitem__"):
                continue
            if isinstance(of, property):
                parts.append(f"### {name}.{member}\n\n{text_of(of.__doc__)}")
            elif inspect.isfunction(of) and of.__doc__:
                parts.append(f"### {name}.{member}\n\n{signature(f'{name}.{member}', of)}{text_of(of.__doc__)}")
    return "\n".join(parts)


def signature(name: str, value: Any) -> str:
    told = inspect.signature(value)
    shown = [one for one in told.parameters.values() if one.name != "self"]
    lines = [f"    {argument(one)}," for one in shown]
    keywords = [place for place, one in enumerate(shown) if one.kind == inspect.Parameter.KEYWORD_ONLY]
    if keywords:
        lines.insert(keywords[0], "    *,")
    returns = "" if told.return_annotation in (inspect.Signature.empty, "None") else f" -> {told.return_annotation}"
    inside = "\n".join(lines)
    return f"```python\n{name}(\n{inside}\n){returns}\n```\n\n" if lines else f"```python\n{name}(){returns}\n```\n\n"


def argument(one: inspect.Parameter) -> str:
    typed = "" if one.annotation is inspect.Parameter.empty else f": {one.annotation}"
    return f"{one.name}{typed}" if one.default is inspect.Parameter.empty else f"{one.name}{typed} = {one.default!r}"


def text_of(docstring: str | None) -> str:
    """A docstring as Markdown: sections as lists, examples as code."""
    lines = inspect.cleandoc(docstring or "").splitlines()
    out: list[str] = []
    at = 0
    while at < len(lines):
        line = lines[at]
        section = re.fullmatch(r"(Args|Attributes|Returns|Raises):", line)
        if section:
            out += ["", f"**{section[1]}**", ""]
            at += 1
            block: list[str] = []
            while at < len(lines) and (not lines[at] or lines[at].startswith(" ")):
                block.append(lines[at])
                at += 1
            out += listed(textwrap.dedent("\n".join(block)).strip().splitlines())
            out.append("")
        elif line.startswith(">>>"):
            out += ["", "```pycon"]
            while at < len(lines) and lines[at]:
                out.append(lines[at])
                at += 1
            out += ["```", ""]
        else:
            out.append(line)
            at += 1
    return re.sub(r"\n{3,}", "\n\n", "\n".join(out).strip()) + "\n"


def listed(lines: list[str]) -> list[str]:
    out: list[str] = []
    for line in lines:
        item = re.match(r"([\w, ]+): (.*)", line)
        if item and not line.startswith(" "):
            names = ", ".join(f"`{name.strip()}`" for name in item[1].split(","))
            out.append(f"- {names}: {item[2]}")
        elif line.startswith(" ") and out:
            out.append(f"  {line.strip()}")
        else:
            out.append(line)
    return out


if __name__ == "__main__":
    import leyden

    print(page(leyden), end="")
