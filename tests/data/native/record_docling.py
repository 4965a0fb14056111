"""Records what docling says of a page, in the environment that `hsdkit drafter install docling` makes:

    python tests/data/native/record_docling.py examples/report.pdf

docling.json is a document built with docling-core's own classes, as its models' weights are not at hand;
docling_words.json is what docling's native pipeline says of the first page of that PDF, cut down to its first words.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path

from docling_core.types.doc import (
    BoundingBox,
    ContentLayer,
    CoordOrigin,
    DocItemLabel,
    DoclingDocument,
    GroupLabel,
    ProvenanceItem,
    Size,
    TableCell,
    TableData,
)

HERE = Path(__file__).parent
WIDTH, HEIGHT = 600.0, 800.0


def place(
    left: float, top: float, right: float, bottom: float, span: tuple[int, int] = (0, 0), top_left: bool = False
) -> ProvenanceItem:
    """A place given from the top left; written from the bottom left, as docling does, unless `top_left`."""
    box = BoundingBox(l=left, t=top, r=right, b=bottom, coord_origin=CoordOrigin.TOPLEFT)
    return ProvenanceItem(page_no=1, bbox=box if top_left else box.to_bottom_left_origin(HEIGHT), charspan=span)


def cell(text: str, row: int, column: int, down: int = 1, across: int = 1, header: bool = False) -> TableCell:
    return TableCell(
        text=text,
        start_row_offset_idx=row,
        end_row_offset_idx=row + down,
        start_col_offset_idx=column,
        end_col_offset_idx=column + across,
        row_span=down,
        col_span=across,
        column_header=header,
    )


def document() -> DoclingDocument:
    doc = DoclingDocument(name="page1")
    doc.add_page(page_no=1, size=Size(width=WIDTH, height=HEIGHT))
    furniture = {"content_layer": ContentLayer.FURNITURE}
    doc.add_text(DocItemLabel.PAGE_HEADER, "A running header", prov=place(50, 10, 300, 22), **furniture)
    doc.add_title("The Title of the Page", prov=place(50, 40, 550, 60))
    doc.add_heading("1 Introduction", level=1, prov=place(50, 80, 250, 95))
    text = "This paragraph begins in the left column and ends in the right one."
    middle = text.index("and")
    paragraph = doc.add_text(DocItemLabel.TEXT, text, prov=place(50, 100, 290, 200, (0, middle - 1)))
    paragraph.prov.append(place(310, 100, 550, 130, (middle, len(text))))

    bullets = doc.add_group(GroupLabel.LIST, "list")
    doc.add_list_item("apples", parent=bullets, prov=place(60, 210, 290, 220))
    second = doc.add_list_item("pears", parent=bullets, prov=place(60, 222, 290, 232))
    numbers = doc.add_group(GroupLabel.LIST, "list", parent=second)
    doc.add_list_item("green", enumerated=True, marker="1.", parent=numbers, prov=place(75, 234, 290, 244))
    doc.add_list_item("yellow", enumerated=True, marker="2.", parent=numbers, prov=place(75, 246, 290, 256))
    doc.add_list_item("plums", parent=bullets, prov=place(60, 258, 290, 268))

    line = doc.add_inline_group()
    doc.add_text(DocItemLabel.TEXT, "where", parent=line, prov=place(50, 275, 90, 285))
    doc.add_formula("x^2", parent=line, prov=place(95, 275, 110, 285))
    doc.add_text(DocItemLabel.TEXT, "is the area", parent=line, prov=place(115, 275, 200, 285))
    doc.add_formula(r"E = mc^{2}", prov=place(100, 290, 240, 310))
    doc.add_formula("", orig="a = b + c", prov=place(100, 315, 240, 330))
    doc.add_code("for x in y:\n    print(x)\n", prov=place(50, 335, 290, 360))
    doc.add_text(DocItemLabel.CHECKBOX_SELECTED, "agreed", prov=place(50, 365, 290, 375))

    above = doc.add_text(DocItemLabel.CAPTION, "Table 1: Sizes & <weights>", prov=place(310, 140, 550, 152))
    cells = [
        cell("Fruit", 0, 0, down=2, header=True),
        cell("Measured", 0, 1, across=2, header=True),
        cell("g", 1, 1),
        cell("cm", 1, 2),
        cell("apple", 2, 0),
        cell("< 200", 2, 1),
    ]
    data = TableData(num_rows=3, num_cols=3, table_cells=cells)
    table = doc.add_table(data, caption=above, prov=place(310, 155, 550, 250))
    note = doc.add_text(DocItemLabel.FOOTNOTE, "a: in winter", parent=table, prov=place(310, 252, 550, 262))
    table.footnotes.append(note.get_ref())

    below = doc.add_text(DocItemLabel.CAPTION, "Figure 1: A pear", prov=place(310, 405, 550, 415))
    picture = doc.add_picture(caption=below, prov=place(310, 280, 550, 400))
    doc.add_text(DocItemLabel.TEXT, "words in the picture", parent=picture, prov=place(350, 300, 450, 310))

    doc.add_text(DocItemLabel.REFERENCE, "[1] A book.", prov=place(310, 430, 550, 440))
    doc.add_text(DocItemLabel.TEXT, "From the\ntop left.", prov=place(310, 450, 550, 475, top_left=True))
    doc.add_text(DocItemLabel.TEXT, "On another page", prov=ProvenanceItem(
        page_no=2, bbox=BoundingBox(l=0, t=10, r=10, b=0, coord_origin=CoordOrigin.BOTTOMLEFT), charspan=(0, 0)
    ))  # fmt: skip
    doc.add_text(DocItemLabel.PAGE_FOOTER, "7", prov=place(290, 780, 310, 790), **furniture)
    return doc


def words(pdf: str) -> dict[str, object]:
    sys.path.insert(0, str(HERE.parents[2] / "plugins" / "drafters" / "workers"))
    from docling_worker import load

    read = load({"pipeline": "native", "artifacts_path": "", "ocr": True, "formulas": False, "threads": 1})
    native = read(pdf)
    kept = native["texts"][:60]
    names = {item["self_ref"] for item in kept}
    native["body"]["children"] = [c for c in native["body"]["children"] if c["$ref"] in names]
    native["pictures"] = []
    return native | {"texts": kept}


def write(name: str, native: object) -> None:
    path = HERE / name
    path.write_text(json.dumps(native, ensure_ascii=False, separators=(",", ":")) + "\n", encoding="utf-8")
    sys.stdout.write(f"{path}: {path.stat().st_size} bytes\n")


if __name__ == "__main__":
    write("docling.json", document().export_to_dict())
    if len(sys.argv) > 1:
        write("docling_words.json", words(sys.argv[1]))
