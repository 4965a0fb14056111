"""Born-digital documents of small pages, written by hand: many of them in no time."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

#: Pages of documents, over and over: long ones and short ones.
SIZES = (30, 1, 7, 2, 45, 1, 14)


@dataclass(frozen=True)
class SmallPage:
    """Lines of 10 pt Helvetica on a page of so many points."""

    lines: tuple[str, ...]
    width: int = 100
    height: int = 60


def printed_pdf(path: Path, pages: Iterable[SmallPage]) -> Path:
    objects = [b"<</Type/Catalog/Pages 2 0 R>>", b"", b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>"]
    kids = []
    for page in pages:
        text = " T* ".join(f"({line}) Tj" for line in page.lines)
        stream = f"BT /F 10 Tf 14 TL 8 {page.height - 20} Td {text} ET".encode()
        objects.append(b"<</Length %d>>stream\n%s\nendstream" % (len(stream), stream))
        about = b"/MediaBox[0 0 %d %d]/Resources<</Font<</F 3 0 R>>>>" % (page.width, page.height)
        objects.append(b"<</Type/Page/Parent 2 0 R%s/Contents %d 0 R>>" % (about, len(objects)))
        kids.append(b"%d 0 R" % len(objects))
    objects[1] = b"<</Type/Pages/Kids[%s]/Count %d>>" % (b" ".join(kids), len(kids))
    body = b"".join(b"%d 0 obj%s endobj\n" % (n, o) for n, o in enumerate(objects, 1))
    path.write_bytes(b"%PDF-1.4\n" + body + b"trailer<</Root 1 0 R>>")
    return path


def sizes(pages: int) -> list[int]:
    """Sizes of documents that have so many pages together."""
    made: list[int] = []
    while pages > 0:
        made.append(min(pages, SIZES[len(made) % len(SIZES)]))
        pages -= made[-1]
    return made
