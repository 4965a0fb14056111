"""`hsdkit report`: tables, plots and a page of HTML from a folder of results."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from hsdkit.cli import console
from hsdkit.cli.console import plain


def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Of `hsdkit sweep` or `hsdkit eval`.")],
    debug: Annotated[bool, console.DebugOption] = False,
) -> None:
    """Make tables and plots of what `hsdkit sweep` or `hsdkit eval` wrote.

    Writes into FOLDER/report: every table as Markdown, CSV and LaTeX, every plot
    as SVG and PNG, and index.html, one page with all of it that loads nothing.

      hsdkit report out/fig4
      pip install "hsdkit\\[plots]"   [dim]for the plots[/]
    """
    from hsdkit.study.folder_report import read_folder, write_report

    console.set_up(debug)
    content = read_folder(folder)
    written = write_report(folder / "report", content)
    for note in content.notes[:5]:
        console.warn(note)
    console.console().print(
        f"written: {plain(str(written[0]))} and {console.count(len(written) - 1, 'file')} beside it", soft_wrap=True
    )
