"""Records what MinerU 2's pipeline says of a page; in its environment:

    python record_mineru2_pipeline.py mineru2_pipeline.json

The models' findings are made up here, and so is the order its order model would give, because their weights are not at
hand; blocks, paragraphs, lists and the JSON are the library's own work.
"""

import json
import sys
from pathlib import Path

import pypdfium2
from mineru.backend.pipeline.model_json_to_middle_json import result_to_middle_json
from mineru.utils import block_sort
from PIL import Image

WIDTH, HEIGHT, SCALE = 1000, 1400, 2.0
TITLE, TEXT, ABANDON, IMAGE, IMAGE_CAPTION, TABLE, TABLE_CAPTION, TABLE_FOOTNOTE = range(8)
FORMULA_LAYOUT, INLINE, FORMULA, LINE = 8, 13, 14, 15

#: What the layout model sees.
AREAS = [
    (ABANDON, (80, 30, 420, 52)),
    (TITLE, (200, 90, 800, 130)),
    (TITLE, (80, 180, 300, 205)),
    (TEXT, (80, 220, 480, 290)),
    (FORMULA_LAYOUT, (120, 310, 380, 350)),
    (TEXT, (80, 370, 480, 450)),
    (TABLE_CAPTION, (80, 470, 480, 495)),
    (TABLE, (80, 505, 480, 600)),
    (TABLE_FOOTNOTE, (80, 605, 480, 625)),
    (TEXT, (80, 650, 480, 745)),
    (TEXT, (520, 180, 920, 250)),
    (IMAGE, (520, 280, 920, 480)),
    (IMAGE_CAPTION, (520, 490, 920, 515)),
    (TITLE, (520, 540, 700, 565)),
    (TEXT, (520, 580, 920, 650)),
    (ABANDON, (490, 1360, 510, 1380)),
]

#: Lines of text, and formulas.
LINES = [
    ((80, 30, 420, 52), "Journal of Page Reading"),
    ((200, 90, 800, 130), "How a page is read"),
    ((80, 180, 300, 205), "1 Introduction"),
    ((80, 220, 200, 240), "The mass"),
    ((240, 220, 480, 240), "is known, as it is in ev-"),
    ((80, 245, 480, 265), "ery case that is of interest to those who"),
    ((80, 270, 300, 290), "read pages for a living."),
    ((80, 370, 300, 390), "- First the layout"),
    ((80, 400, 250, 420), "- Then the text"),
    ((80, 430, 480, 450), "- And at the end the order of all of them"),
    ((80, 470, 480, 495), "Table 1: Crafts and places."),
    ((80, 605, 480, 625), "a) By hand."),
    ((80, 650, 480, 670), "A paragraph that does not end in the left"),
    ((80, 675, 480, 695), "column, because there is no more room on"),
    ((80, 700, 480, 720), "this page for what the author has to say and"),
    ((80, 725, 480, 745), "not one word of it may be lost on the way"),
    ((520, 180, 920, 200), "so goes on in the right one, where there is as"),
    ((520, 205, 920, 225), "much room as anyone could wish for, until it"),
    ((520, 230, 640, 250), "ends here."),
    ((520, 490, 920, 515), "Figure 1. A press."),
    ((520, 540, 700, 565), "References"),
    ((520, 580, 900, 600), "[1] A. Reader. On pages. 1455."),
    ((520, 605, 860, 625), "[2] B. Writer. On words. 1796."),
    ((520, 630, 880, 650), "[3] C. Printer. On ink. 1800."),
    ((490, 1360, 510, 1380), "7"),
]
TABLE_HTML = (
    "<html><body><table><tr><td>Year</td><td>Craft</td></tr><tr><td>1455</td><td>Type</td></tr></table></body></html>"
)


class NoImages:
    def write(self, path, data):
        pass


def found(category, box, **more):
    x0, y0, x1, y1 = box
    return {"category_id": category, "poly": [x0, y0, x1, y0, x1, y1, x0, y1], "score": 0.97} | more


def in_columns(boxes, model):
    """The order model's answer: what crosses the page first, then left and right column. Boxes are in 1/1000."""
    return sorted(range(len(boxes)), key=lambda i: (boxes[i][3] > 100, boxes[i][0] > 500, boxes[i][1], boxes[i][0]))


def main() -> None:
    block_sort.do_predict = in_columns
    block_sort.ModelSingleton = lambda: type("Models", (), {"get_model": lambda self, name: None})()
    detections = [found(c, b) | ({"html": TABLE_HTML} if c == TABLE else {}) for c, b in AREAS]
    detections += [found(LINE, box, text=text) for box, text in LINES]
    detections += [
        found(INLINE, (205, 220, 235, 240), latex="m"),
        found(FORMULA, (120, 310, 380, 350), latex="E = m c ^ { 2 }"),
    ]
    model = {"layout_dets": detections, "page_info": {"page_no": 0, "width": WIDTH, "height": HEIGHT}}
    pdf = pypdfium2.PdfDocument.new()
    pdf.new_page(WIDTH / SCALE, HEIGHT / SCALE)
    image = {"img_pil": Image.new("RGB", (WIDTH, HEIGHT), "white"), "scale": SCALE}
    native = result_to_middle_json([model], [image], pdf, NoImages(), lang="ch", ocr_enable=True)
    for page in native["pdf_info"]:
        del page["preproc_blocks"]  # the same before paragraphs are joined; nothing reads it
    Path(sys.argv[1]).write_text(json.dumps(native, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
