"""Writes the option tables of docs/configuration.md from the dataclasses themselves: `python docs/options.py`."""

from __future__ import annotations

import re
import sys
from dataclasses import MISSING, Field, fields, is_dataclass
from pathlib import Path
from textwrap import shorten
from typing import Any

from hsdkit.components import ALL_KINDS
from hsdkit.config import RunOptions
from hsdkit.plugins import plugins

PAGE = Path(__file__).parent / "configuration.md"
BEGIN, END = "<!-- options: made by docs/options.py -->", "<!-- options: end -->"


def meanings(owner: type) -> dict[str, str]:
    """What the docstrings of a config class and its bases say of each option: `name: text` or `a, b: text`."""
    found: dict[str, str] = {}
    names = [f.name for f in fields(owner)]
    one = rf"`?(?:{'|'.join(sorted(names, key=len, reverse=True))})`?"
    start = re.compile(rf"(?:(?<=^)|(?<=\n)|(?<=\. )|(?<=\s))({one}(?:, {one})*): ")
    for base in reversed(owner.__mro__):
        text = base.__dict__.get("__doc__") or ""
        parts = start.split(text)[1:]
        for heads, said in zip(parts[::2], parts[1::2], strict=True):
            for name in heads.replace("`", "").split(", "):
                found[name] = " ".join(said.split()).rstrip(".")
    return found


def default(field: Field[Any]) -> str:
    value = field.default if field.default is not MISSING else field.default_factory()  # type: ignore[misc]
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return f"[{', '.join(map(str, value))}]"
    # A prompt may have many lines; a cell of a table has one.
    return '""' if value == "" else shorten(str(value), 120, placeholder=" ...")


def rows(owner: type, prefix: str) -> list[str]:
    """A row an option; those of a group of options follow one another under the group's name."""
    said = meanings(owner)
    found: list[str] = []
    for field in fields(owner):
        group = field.default_factory() if field.default_factory is not MISSING else None
        if is_dataclass(group):
            found += rows(type(group), f"{prefix}{field.name}.")
        else:
            cells = (f"`{prefix}{field.name}`", f"`{default(field)}`", said.get(field.name, ""))
            found.append("| " + " | ".join(cell.replace("|", chr(92) + "|") for cell in cells) + " |")
    return found


def sentence(summary: str) -> str:
    """A summary with a capital letter in front, but for names that are written without one (vLLM, dots.ocr)."""
    first = summary.split()[0].rstrip(",:;")
    is_name = first != first.lower() or "." in first
    return summary if is_name else f"{summary[:1].upper()}{summary[1:]}"


def table(owner: type, prefix: str) -> list[str]:
    lines = rows(owner, prefix)
    return ["| option | default | meaning |", "| --- | --- | --- |", *lines, ""] if lines else ["No options.", ""]


def tables() -> str:
    """All options of a run and of every built-in component, as Markdown."""
    lines = ["## Options of a run", "", *table(RunOptions, "")]
    for kind in ALL_KINDS:
        lines += [f"## {kind.capitalize()}s", ""]
        for component, plugin in plugins().components(kind):
            if plugin.package == "hsdkit":
                lines += [
                    f"### `{kind}={component.name}`",
                    "",
                    f"{sentence(component.summary)}.",
                    "",
                ]
                lines += table(component.config, f"{kind}.")
    return "\n".join(lines)


def updated(page: str) -> str:
    """The page with its tables made anew."""
    head, rest = page.split(BEGIN)
    return f"{head}{BEGIN}\n\n{tables()}\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    PAGE.write_text(updated(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
    sys.stdout.write(f"{PAGE}: written\n")
