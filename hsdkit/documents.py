"""PDF and image files as pages: one RGB image at a time, with the PDF's text layer within reach.

What a file is, is decided by its content, never by its suffix. PDFs are read by `pdf_file`, images by `image_file`.
"""

from __future__ import annotations

import glob
import os
import re
import stat
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

from hsdkit.errors import ConfigError, DocumentError

if TYPE_CHECKING:
    from types import TracebackType

    from PIL.Image import Image

    from hsdkit.page_image import PageReader
    from hsdkit.textlayer import TextLayer

#: What a folder is searched for. A file named outright may have any suffix.
SUFFIXES = frozenset({".pdf", ".png", ".jpg", ".jpeg", ".tif", ".tiff", ".webp", ".bmp"})

#: Most pixels of a page image: 48 MB as RGB, an A2 page at 144 dpi or an A4 page at 400.
MAX_PIXELS = 16_000_000

Pages = str | int | Sequence[int] | None

_Read = TypeVar("_Read")


@dataclass(frozen=True, eq=False)
class Page:
    """One page: what drafters read and targets look at.

    `image` is RGB, upright as a viewer shows it; `width` and `height` are its pixels, the unit of every box. `number`
    counts from 1 in the file `source` (its name). `dpi` is the resolution the page was rendered at (for image files
    what the file says, 0 if nothing). `notes` say what was done to it, such as a lower resolution than asked for.
    """

    number: int
    image: Image
    source: str = ""
    dpi: float = 0.0
    notes: tuple[str, ...] = ()
    read_text: Callable[[], TextLayer] | None = field(default=None, repr=False)
    read_pdf: Callable[[], bytes] | None = field(default=None, repr=False)

    @property
    def width(self) -> int:
        return self.image.width

    @property
    def height(self) -> int:
        return self.image.height

    @cached_property
    def text_layer(self) -> TextLayer | None:
        """The words and ruling lines of a PDF page, in page pixels; `None` for image files.

        Read on first use, which must happen while the document is open. Raises
        `DocumentError` when the page's text cannot be read.
        """
        return self.read_text() if self.read_text else None

    def turned(self, degrees: int) -> Page:
        """The page turned clockwise by 90, 180 or 270 degrees, as an image alone: no text layer, no PDF."""
        from hsdkit.image_file import turned_by

        return Page(self.number, turned_by(self.image, degrees), self.source, self.dpi, self.notes)

    @property
    def pdf(self) -> bytes | None:
        """The page alone as a PDF file, upright as `image` is and without a password; `None` for image files.

        Made while the document is open. Raises `DocumentError` when the page cannot be copied.
        """
        return self.read_pdf() if self.read_pdf else None


class Document:
    """An open file. Pages are made when asked for and not kept, so memory is that of one page.

    `len` is the number of selected pages, `numbers` are their numbers, `count` the pages of the file. One unreadable
    page raises `DocumentError` from `page` and leaves the others readable:

        with open_document("report.pdf", pages="1-3,7") as document:
            for number in document.numbers:
                page = document.page(number)
    """

    def __init__(self, path: Path, reader: PageReader, numbers: tuple[int, ...]) -> None:
        self.path = path
        self.name = path.name
        self.count = reader.count
        self.numbers = numbers
        self._reader: PageReader | None = reader

    def page(self, number: int) -> Page:
        """The page of that number (from 1). Raises `DocumentError` naming file, page and cause if it cannot be read."""
        if self._reader is None:
            raise DocumentError(f"{self.name}, page {number}: the document is closed")
        if not 1 <= number <= self.count:
            raise _out_of_range(self.name, number, self.count)
        try:
            read = self._reader.page(number - 1)
        except DocumentError as e:
            raise DocumentError(f"{self.name}, page {number}: {e}") from e.__cause__
        text, pdf = self._naming_page(read.read_text, number), self._naming_page(read.read_pdf, number)
        return Page(number, read.image, self.name, read.dpi, read.notes, text, pdf)

    def _naming_page(self, read: Callable[[], _Read] | None, number: int) -> Callable[[], _Read] | None:
        if read is None:
            return None

        def named() -> _Read:
            try:
                return read()
            except DocumentError as e:
                raise DocumentError(f"{self.name}, page {number}: {e}") from e.__cause__

        return named

    def __len__(self) -> int:
        return len(self.numbers)

    def __iter__(self) -> Iterator[Page]:
        return map(self.page, self.numbers)

    def close(self) -> None:
        if self._reader is not None:
            self._reader.close()
            self._reader = None

    def __enter__(self) -> Document:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.close()


def open_document(
    path: str | os.PathLike[str],
    *,
    pages: Pages = None,
    dpi: float = 144,
    password: str | None = None,
    rotate: int = 0,
    max_pixels: int = MAX_PIXELS,
) -> Document:
    """Open a PDF, PNG, JPEG, WebP, BMP or (multi-page) TIFF.

    `pages` selects pages ("1-3,7", see `parse_pages`); `dpi` is the resolution PDF pages are rendered at; `rotate`
    turns every page clockwise by 0, 90, 180 or 270 degrees; a page that would have more than `max_pixels` is scaled
    down, and its `notes` say so. Raises `DocumentError` for a file that cannot be opened and for pages it does not
    have, `ConfigError` for an option that makes no sense.
    """
    check_options(dpi, rotate, max_pixels)
    path = Path(path)
    reader = _open_reader(path, dpi, password, rotate, max_pixels)
    try:
        if reader.count < 1:
            raise DocumentError(f"{path.name}: has no pages")
        numbers = parse_pages(pages, reader.count, path.name)
    except Exception:
        reader.close()
        raise
    return Document(path, reader, numbers)


def check_options(dpi: float, rotate: int, max_pixels: int) -> None:
    """Raises `ConfigError` for a value with which no document can be opened."""
    if rotate not in (0, 90, 180, 270):
        raise ConfigError(f"rotate={rotate}: a page can be turned by 0, 90, 180 or 270 degrees")
    if not 1 <= dpi <= 2400:
        raise ConfigError(f"dpi={dpi:g}: must be between 1 and 2400")
    if max_pixels < 1024:
        raise ConfigError(f"max_pixels={max_pixels}: must be at least 1024")


def file_status(path: Path) -> os.stat_result:
    """The status of a document's file. Raises `DocumentError` when there is none, and for what is no file: reading a
    pipe or a device may never end."""
    try:
        status = os.stat(path)
    except FileNotFoundError:
        raise DocumentError(f"{path}: no such file") from None
    except (OSError, ValueError) as e:
        raise DocumentError(f"{path}: cannot be read: {getattr(e, 'strerror', None) or e}") from e
    if stat.S_ISDIR(status.st_mode):
        raise DocumentError(f"{path}: is a folder, not a file; folders and globs are arguments of hsdkit run")
    if not stat.S_ISREG(status.st_mode):
        raise DocumentError(f"{path}: is a pipe or a device, not a file")
    return status


def _open_reader(path: Path, dpi: float, password: str | None, rotate: int, max_pixels: int) -> PageReader:
    file_status(path)
    try:
        with path.open("rb") as file:
            head = file.read(1024)
    except OSError as e:
        raise DocumentError(f"{path}: cannot be read: {e.strerror}") from e
    if not head:
        raise DocumentError(f"{path.name}: the file is empty (0 bytes)")
    try:
        if b"%PDF-" in head:
            from hsdkit.pdf_file import PdfFile

            return PdfFile(path, dpi, password, rotate, max_pixels)
        from hsdkit.image_file import ImageFile

        return ImageFile(path, rotate, max_pixels)
    except DocumentError as e:
        raise DocumentError(f"{path.name}: {e}") from e.__cause__


def parse_pages(pages: Pages, count: int, source: str = "the document") -> tuple[int, ...]:
    """The page numbers (from 1) that `pages` selects of `count`, ascending, each once.

    `None` is every page; otherwise numbers and ranges with commas between: "1-3,7", "5-" to the end, "-2" from the
    start. Raises `ConfigError` when it cannot be understood, `DocumentError` when it names a page that is not there.
    """
    if pages is None:
        return tuple(range(1, count + 1))
    if isinstance(pages, str):
        parts = pages.split(",")
    else:
        parts = [str(p) for p in ([pages] if isinstance(pages, int) else pages)]
    chosen: set[int] = set()
    for part in map(str.strip, parts):
        match = re.fullmatch(r"([0-9]{1,9})|([0-9]{1,9})?\s*-\s*([0-9]{1,9})?", part)
        if not match or part == "-":
            raise ConfigError(f"pages={pages}: {part!r} is neither a page number nor a range; write for example 1-3,7")
        first = int(match[1] or match[2] or 1)
        last = int(match[1] or match[3] or max(count, first))
        if first > last:
            raise ConfigError(f"pages={pages}: the range {part!r} runs backwards; write {last}-{first}")
        for number in (first, last):
            if not 1 <= number <= count:
                raise _out_of_range(source, number, count)
        chosen.update(range(first, last + 1))
    if not chosen:
        raise ConfigError(f"pages={pages}: selects no page; write for example 1-3,7")
    return tuple(sorted(chosen))


def find_inputs(inputs: Iterable[str | os.PathLike[str]]) -> list[Path]:
    """The files that files, folders and globs name, in the order given, each once.

    A folder stands for its own files with a known suffix (sorted by name; hidden files and subfolders are left out), a
    glob for the files it matches (`**` goes into subfolders). Raises `DocumentError` for an input that names nothing.
    """
    found: dict[Path, None] = {}
    for given in inputs:
        name = os.fspath(given)
        path = _at_home(Path(name))
        if path.is_dir():
            files = sorted(p for p in path.iterdir() if _supported(p))
            if not files:
                raise DocumentError(
                    f"{name}: no PDF or image in this folder (looked for {' '.join(sorted(SUFFIXES))}); "
                    f"for its subfolders write '{name.rstrip('/')}/**/*.pdf'"
                )
        elif path.exists():
            files = [path]
        elif glob.has_magic(name):
            matches = sorted(Path(p) for p in glob.glob(str(path), recursive=True))
            files = [p for p in matches if _supported(p)] or [p for p in matches if p.is_file()]
            if not files:
                raise DocumentError(f"{name}: no file matches")
        else:
            raise DocumentError(f"{name}: no such file or folder")
        found.update(dict.fromkeys(files))
    if not found:
        raise DocumentError(NO_INPUT)
    return list(found)


#: What a run without documents is told.
NO_INPUT = "no input: name a PDF or image file, a folder, or a glob such as 'scans/*.png'"


def _at_home(path: Path) -> Path:
    """The path with a leading `~` or `~user` read as a home folder, unless there is a file of that very name."""
    try:
        return path if path.exists() else path.expanduser()
    except RuntimeError:  # no such user, or a user without a home
        return path


def _supported(path: Path) -> bool:
    return path.suffix.lower() in SUFFIXES and not path.name.startswith(".") and path.is_file()


def _out_of_range(source: str, number: int, count: int) -> DocumentError:
    return DocumentError(f"{source}, page {number}: out of range, the document has {count} page{'s' * (count != 1)}")
