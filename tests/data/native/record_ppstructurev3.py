"""Records what PP-StructureV3 says of a page; in its environment, with `paddlex[serving]` beside:

    python record_ppstructurev3.py > ppstructurev3.json

The models' findings are made up here, because their weights are not at hand; reading order, the text of blocks and the
JSON are the library's own work. `ppstructurev3_server.json`, written beside, is the answer its server would give.
"""

import json
import sys
from pathlib import Path

import numpy as np
from paddlex.inference.models.formula_recognition.result import FormulaRecResult
from paddlex.inference.models.object_detection.result import DetResult
from paddlex.inference.pipelines.layout_parsing.pipeline_v2 import _LayoutParsingPipelineV2
from paddlex.inference.pipelines.layout_parsing.result_v2 import LayoutParsingResultV2
from paddlex.inference.pipelines.ocr.result import OCRResult
from paddlex.inference.pipelines.table_recognition.result import SingleTableRecognitionResult
from paddlex.inference.serving.basic_serving._pipeline_apps._common.common import prune_result
from paddlex.inference.serving.infra.models import AIStudioResultResponse, ImageInfo
from paddlex.inference.serving.schemas.pp_structurev3 import InferResult

WIDTH, HEIGHT = 1000, 1400
#: The classes of PP-DocLayout_plus-L, in the order of their numbers.
NAMES = """
paragraph_title image text number abstract content figure_table_chart_title formula table reference doc_title footnote
header algorithm footer seal chart formula_number aside_text reference_content
"""

#: What the layout model sees, and the lines that the OCR reads there.
LAYOUT = [
    ("header", (80, 30, 420, 52), ["Journal of Page Reading"]),
    ("doc_title", (200, 90, 800, 130), ["How a page is read"]),
    ("paragraph_title", (80, 180, 300, 205), ["1 Introduction"]),
    (
        "text",
        (80, 220, 480, 320),
        [
            "The light tool guesses what the page says and",
            "the model checks the guess in one pass over",
            "many words, all at once.",
        ],
    ),
    ("formula", (120, 340, 380, 390), []),
    ("formula_number", (440, 352, 480, 378), ["(1)"]),
    ("text", (80, 400, 480, 460), ["where the mass is known, as it is in every", "case of interest."]),
    ("figure_table_chart_title", (80, 480, 480, 505), ["Table 1: Crafts and places."]),
    ("table", (80, 515, 480, 640), ["Year", "Craft", "1455", "Type"]),
    ("text", (520, 180, 920, 260), ["The right column is read after the left one has", "been read to its end."]),
    ("image", (520, 280, 920, 480), ["a word in the picture"]),
    ("figure_table_chart_title", (520, 490, 920, 515), ["Figure 1. A press."]),
    ("algorithm", (520, 530, 920, 610), ["for line in page:", "read(line)"]),
    ("paragraph_title", (520, 640, 700, 665), ["References"]),
    ("reference", (520, 680, 920, 760), ["[1] A. Reader. On pages. 1455.", "[2] B. Writer. On words. 1796."]),
    ("footnote", (80, 1300, 480, 1322), ["* Written by hand."]),
    ("number", (490, 1360, 510, 1380), ["7"]),
]
FORMULA = r"E = m c ^ { 2 }"
TABLE = (
    "<html><body><table><tr><td>Year</td><td>Craft</td></tr><tr><td>1455</td><td>Type</td></tr></table></body></html>"
)


def main() -> None:
    image = np.full((HEIGHT, WIDTH, 3), 255, np.uint8)
    layout = DetResult(
        {"input_path": None, "page_index": None, "input_img": image, "boxes": [_box(n, b) for n, b, _ in LAYOUT]}
    )
    columns = [(70, 20, 930, 140), (70, 170, 490, 1330), (510, 170, 930, 1330)]
    region = DetResult(
        {"input_path": None, "page_index": None, "input_img": image, "boxes": [_box("Region", b, 0) for b in columns]}
    )
    formula_box = next(b for n, b, _ in LAYOUT if n == "formula")
    formula = FormulaRecResult(
        {
            "input_path": None,
            "page_index": None,
            "rec_formula": FORMULA,
            "formula_region_id": 1,
            "dt_polys": np.array(formula_box, float),
            "input_img": image[:50, :260],
        }
    )
    table = SingleTableRecognitionResult(
        {
            "cell_box_list": [],
            "pred_html": TABLE,
            "table_ocr_pred": {},
            "table_region_id": 1,
            "page_index": None,
            "input_path": None,
        }
    )
    ocr = _ocr(image)
    settings = {
        "use_doc_preprocessor": False,
        "use_seal_recognition": False,
        "use_table_recognition": True,
        "use_formula_recognition": True,
        "use_chart_recognition": False,
        "use_region_detection": True,
        "format_block_content": False,
        "markdown_ignore_labels": [
            "number",
            "footnote",
            "header",
            "header_image",
            "footer",
            "footer_image",
            "aside_text",
        ],
    }
    pipeline = object.__new__(_LayoutParsingPipelineV2)

    class GeneralOcr:
        text_rec_model, text_rec_score_thresh = None, 0.0

    pipeline.general_ocr_pipeline = GeneralOcr
    blocks = pipeline.get_layout_parsing_res(
        image,
        region_det_res=region,
        layout_det_res=layout,
        overall_ocr_res=ocr,
        table_res_list=[table],
        seal_res_list=[],
        chart_res_list=[],
        formula_res_list=[formula],
        text_rec_score_thresh=0.0,
        markdown_ignore_labels=settings["markdown_ignore_labels"],
    )
    result = LayoutParsingResultV2(
        {
            "input_path": "page.png",
            "page_index": None,
            "page_count": None,
            "width": WIDTH,
            "height": HEIGHT,
            "doc_preprocessor_res": {"output_img": image},
            "layout_det_res": layout,
            "region_det_res": region,
            "overall_ocr_res": ocr,
            "table_res_list": [table],
            "seal_res_list": [],
            "chart_res_list": [],
            "formula_res_list": [formula],
            "parsing_res_list": blocks,
            "imgs_in_doc": [],
            "model_settings": settings,
        }
    )
    native = result.json["res"]
    json.dump(native, sys.stdout, ensure_ascii=False)
    entry = {"prunedResult": prune_result(native), "markdown": {"text": "", "isStart": True, "isEnd": True}}
    inferred = InferResult(layoutParsingResults=[entry], dataInfo=ImageInfo(width=WIDTH, height=HEIGHT))
    answer = AIStudioResultResponse[InferResult](logId="recorded", result=inferred)
    Path(__file__).with_name("ppstructurev3_server.json").write_text(answer.model_dump_json(), encoding="utf-8")


def _box(name: str, box: tuple[float, ...], number: int | None = None) -> dict:
    number = NAMES.split().index(name) if number is None else number
    return {"cls_id": number, "label": name, "score": 0.97, "coordinate": [float(n) for n in box]}


def _ocr(image: np.ndarray) -> OCRResult:
    texts, boxes = [], []
    for name, (x0, y0, x1, y1), lines in LAYOUT:
        height = (y1 - y0) / max(1, len(lines))
        for k, line in enumerate(lines):
            width = min(x1 - x0, 9.5 * len(line)) if name != "table" else 80
            boxes.append(
                [x0 + (k % 2 * 100 if name == "table" else 0), y0 + k * height, x0 + width, y0 + (k + 0.9) * height]
            )
            texts.append(line)
    polys = [np.array([[a, b], [c, b], [c, d], [a, d]]) for a, b, c, d in boxes]
    return OCRResult(
        {
            "input_path": None,
            "page_index": None,
            "doc_preprocessor_res": {"output_img": image},
            "dt_polys": polys,
            "model_settings": {"use_doc_preprocessor": False, "use_textline_orientation": False},
            "text_det_params": {},
            "text_type": "general",
            "text_rec_score_thresh": 0.0,
            "return_word_box": False,
            "textline_orientation_angles": np.array([-1] * len(texts)),
            "rec_texts": texts,
            "rec_scores": [0.99] * len(texts),
            "rec_polys": polys,
            "rec_boxes": np.array(boxes),
            "rec_labels": ["text"] * len(texts),
            "vis_fonts": [],
        }
    )


if __name__ == "__main__":
    main()
