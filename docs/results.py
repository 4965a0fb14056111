"""Measures what results.md shows and writes its tables anew: `python docs/results.py [--corpus FOLDER] [NAME ...]`.

The page is its own plan. Its indented lines that begin with `hsdkit` are the commands, all that write into
out/results/NAME together; they run one after another from the project's root, and what an earlier run left there goes
first. A line `<!-- table: ... -->` says which table of `hsdkit report` stands below it, up to `<!-- end -->`:

    <!-- table: NAME/TABLE | COLUMN, COLUMN, ... -->                 those columns of out/results/NAME/report/TABLE.md
    <!-- pivot: NAME/TABLE | AXIS x AXIS | COLUMN, COLUMN, ... -->   the same with one axis down and one across
    <!-- file: NAME/FILE -->                                         out/results/NAME/FILE as it is

Commands that name CORPUS need --corpus, a folder with benchmarks in their own formats (omnidocbench/). --tables runs
nothing and fills in what is there. Use a machine that does nothing else.
"""

from __future__ import annotations

import argparse
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs" / "results.md"
OUT = Path("out") / "results"

#: The command of this environment, installed as a script or not.
_HSDKIT = f"{shlex.quote(sys.executable)} -c 'from hsdkit.cli import main; main()'"

_COMMAND = re.compile(r"^    (hsdkit .*out/results/([\w-]+).*)$", re.M)
_MARK = re.compile(r"<!-- (table|pivot|file): ([^>]*?) -->\n.*?<!-- end -->", re.S)


def commands(page: str) -> dict[str, list[str]]:
    """By name, in order."""
    found: dict[str, list[str]] = {}
    for command, name in _COMMAND.findall(page):
        found.setdefault(name, []).append(command)
    return found


def run(name: str, lines: list[str], corpus: str) -> bool:
    """Run the commands of one name; whether all of them came to their end."""
    shutil.rmtree(ROOT / OUT / name, ignore_errors=True)
    (ROOT / OUT / name).mkdir(parents=True)
    for line in lines:
        print(f"$ {line}", flush=True)
        begun = time.perf_counter()
        command = line.replace("hsdkit", _HSDKIT, 1).replace("CORPUS", shlex.quote(corpus))
        code = subprocess.run(command, shell=True, cwd=ROOT, check=False).returncode
        print(f"  {time.perf_counter() - begun:.0f} s" + (f", exit code {code}" if code else ""), flush=True)
        if code not in (0, 1):  # 1: some cells failed, and are rows with their reason
            return False
    return True


def filled(page: str, names: set[str]) -> str:
    """The page with the tables of these names written anew; those that cannot be read stay."""

    def table(mark: re.Match[str]) -> str:
        kind, what = mark[1], [part.strip() for part in mark[2].split("|")]
        if what[0].partition("/")[0] not in names:
            return mark[0]
        try:
            made = _MAKERS[kind](*what)
        except (OSError, KeyError, ValueError) as e:
            print(f"{what[0]}: left as it was: {type(e).__name__}: {e}")
            return mark[0]
        return f"<!-- {kind}: {mark[2]} -->\n{made}\n<!-- end -->"

    return _MARK.sub(table, page)


def plain(table: str, columns: str) -> str:
    wanted = _split(columns)
    return markdown([wanted, *([row[c] for c in wanted] for row in read(table))])


def pivot(table: str, axes: str, columns: str) -> str:
    """One axis down, the other across, the columns' values in each cell."""
    down, across = (axis.strip() for axis in axes.split(" x "))
    rows = read(table)
    heads = list(dict.fromkeys(row[across] for row in rows))
    lines: dict[str, dict[str, str]] = {}
    for row in rows:
        lines.setdefault(row[down], {})[row[across]] = ", ".join(row[c] for c in _split(columns))
    return markdown([[down, *heads], *([name, *(cells.get(h, "-") for h in heads)] for name, cells in lines.items())])


def read(table: str) -> list[dict[str, str]]:
    """The rows of out/results/NAME/report/TABLE.md by header."""
    name, _, file = table.partition("/")
    text = (ROOT / OUT / name / "report" / f"{file}.md").read_text(encoding="utf-8")
    head, _, *rows = [_cells(line) for line in text.splitlines() if line.startswith("|")]
    return [dict(zip(head, row, strict=True)) for row in rows]


def copied(file: str) -> str:
    return (ROOT / OUT / file).read_text(encoding="utf-8").strip()


def markdown(rows: list[list[str]]) -> str:
    head, *body = rows
    return "\n".join(f"| {' | '.join(row)} |" for row in [head, ["---"] * len(head), *body])


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in re.split(r"(?<!\\)\|", line)[1:-1]]


def _split(columns: str) -> list[str]:
    return [c.strip() for c in columns.split(",")]


_MAKERS: dict[str, Callable[..., str]] = {"table": plain, "pivot": pivot, "file": copied}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help="only these; all without")
    parser.add_argument("--corpus", help="folder with pieces of benchmarks")
    parser.add_argument("--tables", action="store_true", help="measure nothing")
    given = parser.parse_args()
    known = commands(PAGE.read_text(encoding="utf-8"))
    if unknown := [n for n in given.names if n not in known]:
        parser.error(f"no such results: {', '.join(unknown)}; there are {', '.join(known)}")
    names = given.names or list(known)
    begun = time.perf_counter()
    for name in names if not given.tables else ():
        if not given.corpus and any("CORPUS" in line for line in known[name]):
            print(f"{name}: left out, it needs --corpus FOLDER")
            continue
        if not run(name, known[name], str(Path(given.corpus).resolve()) if given.corpus else ""):
            print(f"{name}: not finished")
        # Written after each: what follows may be interrupted.
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), {name}), encoding="utf-8")
    if given.tables:
        PAGE.write_text(filled(PAGE.read_text(encoding="utf-8"), set(names)), encoding="utf-8")
    print(f"{PAGE.relative_to(ROOT)}: {time.perf_counter() - begun:.0f} s in all")


if __name__ == "__main__":
    main()
