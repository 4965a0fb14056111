"""Makes omnidocbench.json anew: hand-made pages, and what the official evaluator finds on them.

    python record_omnidocbench.py FOLDER

FOLDER is a clone of github.com/opendatalab/OmniDocBench at v1.5 (its LICENSE is Apache-2.0), run with its
requirements; CDM and detection are not needed. The pages and predictions below were written for this file.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().with_name("omnidocbench.json")


def block(category: str, order: int | None, anno_id: int, **content: str) -> dict[str, Any]:
    return {"category_type": category, "order": order, "anno_id": anno_id, "ignore": False, **content}


def page(name: str, blocks: list[dict[str, Any]], *truncated: tuple[int, int], **attributes: Any) -> dict[str, Any]:
    relation = [{"source_anno_id": a, "target_anno_id": b, "relation_type": "truncated"} for a, b in truncated]
    attribute = {"data_source": "book", "language": "english", "layout": "single_column", "special_issue": []}
    info = {
        "image_path": f"{name}.jpg",
        "page_no": 1,
        "height": 100,
        "width": 80,
        "page_attribute": attribute | attributes,
    }
    return {"layout_dets": blocks, "page_info": info, "extra": {"relation": relation}}


SPANS = (
    '<table><thead><tr><th rowspan="2">Name</th><th colspan="2">Price</th></tr><tr><th>old</th><th>new</th></tr>'
    "</thead><tbody><tr><td>tea</td><td>1.20</td><td>1.50</td></tr></tbody></table>"
)
PLAIN = "<table><tr><td>a</td><td>b</td></tr><tr><td>1</td><td>2</td></tr></table>"
TAIL = "The harbour was closed for nine weeks in the winter of that year."
FIRST = "In the second half of the century the town grew along the river and took in two villages."

PAGES: list[tuple[dict[str, Any], str]] = [
    (
        page("exact", [block("title", 1, 0, text="The harbour"), block("text_block", 2, 1, text=FIRST)]),
        f"# The harbour\n\n{FIRST}\n",
    ),
    (
        page(
            "furniture",
            [
                block("header", None, 0, text="Annual report of the harbour office"),
                block("text_block", 1, 1, text=FIRST),
                block("text_block", 2, 2, text=TAIL),
                block("page_number", None, 3, text="17"),
            ],
            data_source="newspaper",
        ),
        f"Annual report of the harbor office\n\n{FIRST}\n\n{TAIL.replace('nine', 'nice')}\n\n17",
    ),
    (
        page(
            "order", [block("text_block", i, i, text=t) for i, t in enumerate((FIRST, TAIL, "Notes of the editor."), 1)]
        ),
        f"Notes of the editor.\n\n{FIRST}\n\n{TAIL}",
    ),
    (
        page(
            "cut",
            [
                block("text_block", 1, 0, text="The first part of a long"),
                block("text_block", 2, 1, text="sentence that goes on"),
                block("text_block", 3, 2, text="over three columns."),
                block("text_block", 4, 3, text=TAIL),
            ],
            (0, 1),
            (1, 2),
            layout="three_column",
        ),
        f"The first part of a long sentence that goes on over three columns.\n\n{TAIL}",
    ),
    (
        page("pieces", [block("text_block", 1, 0, text=FIRST), block("text_block", 2, 1, text=TAIL)]),
        "In the second half of the century\n\nthe town grew along the river\n\nand took in two villages.\n\n" + TAIL,
    ),
    (
        page("joined", [block("title", 1, 0, text="A short head"), block("text_block", 2, 1, text=FIRST)]),
        f"A short head {FIRST}",
    ),
    (
        page(
            "formulas",
            [
                block("text_block", 1, 0, text="Let $x_{1}$ be the length and $a$ the area of it."),
                block("equation_isolated", 2, 1, latex="$$\\mathrm{E} = m c^{2} \\tag{1}$$"),
                block("equation_isolated", 3, 2, latex="\\begin{array}{l} a = b \\\\ c = d + e \\end{array}"),
                block("equation_isolated", 4, 3, latex="\\[ \\alpha + \\beta = \\gamma . \\]"),
            ],
            data_source="academic_literature",
        ),
        "Let $x_1$ be the length and $a$ the area of it.\n\n\\[E = mc^2\\]\n\n$$a = b$$\n\n$$c = d - e$$\n\nα + β = γ",
    ),
    (
        page(
            "table",
            [block("table_caption", 1, 0, text="Table 1: prices"), block("table", 2, 1, html=SPANS, latex="")],
            special_issue=["table_span"],
        ),
        f"Table 1: prices\n\n{SPANS.replace('1.50', '1.5').replace('Name', 'Names')}\n",
    ),
    (
        page("rows", [block("table", 1, 0, html=PLAIN), block("text_block", 2, 1, text=TAIL)]),
        f"| a | b |\n|---|---|\n| 1 | 2 |\n\n{TAIL}",
    ),
    (
        page(
            "colon",
            [block("table", 1, 0, html=PLAIN.replace("<td>1", "<td>12:30")), block("text_block", 2, 1, text=TAIL)],
        ),
        f"Times\n| a | b |\n|---|---|\n| 12:30 | 2 |\n\n{TAIL}",
    ),
    (
        page("latex_table", [block("table", 1, 0, html=PLAIN, latex="\\begin{tabular}{ll}a&b\\\\1&2\\end{tabular}")]),
        "\\begin{tabular}{ll}a & b \\\\ 1 & 2\\end{tabular}\n",
    ),
    (
        page("two_tables", [block("table", 1, 0, html=PLAIN), block("text_block", 2, 1, text="one more thing")]),
        f"{PLAIN}\n\n<table><tr><td>one more thing</td><td>x</td></tr></table>",
    ),
    (
        page("no_table", [block("table", 1, 0, html=PLAIN), block("text_block", 2, 1, text=FIRST)]),
        FIRST,
    ),
    (
        page(
            "chinese",
            [
                block("title", 1, 0, text="第一章　港口"),
                block("text_block", 2, 1, text="那一年冬天，港口关闭了九个星期。"),
                block("text_block", 3, 2, text="编者注。"),
            ],
            language="simplified_chinese",
        ),
        "## 第一章 港口\n那一年冬天,港口关闭了九個星期。\n编者注",
    ),
    (
        page(
            "as_text",
            [block("text_block", 1, 0, text=TAIL), block("equation_isolated", 2, 1, latex="$$x_{1} = y + z$$")],
        ),
        f"{TAIL}\n\nx1 = y + z",
    ),
    (page("empty", [block("text_block", 1, 0, text=FIRST), block("equation_isolated", 2, 1, latex="x=y")]), ""),
    (
        page("invented", [block("text_block", 1, 0, text="Nothing like it.")]),
        "A page of something else altogether, longer than what is there.",
    ),
]


def official(folder: Path) -> dict[str, Any]:
    """Scores by page and over all, as the evaluator's own classes compute them."""
    os.chdir(folder)
    sys.path.insert(0, str(folder))
    from dataset.end2end_dataset import End2EndDataset
    from metrics.cal_metric import METRIC_REGISTRY
    from metrics.show_result import get_page_split

    with tempfile.TemporaryDirectory() as work:
        truth, predictions = Path(work) / "truth.json", Path(work) / "predictions"
        predictions.mkdir()
        truth.write_text(json.dumps([p for p, _ in PAGES]), encoding="utf-8")
        for p, markdown in PAGES:
            (predictions / f"{p['page_info']['image_path'][:-4]}.md").write_text(markdown, encoding="utf-8")
        paths = {"ground_truth": {"data_path": str(truth)}, "prediction": {"data_path": str(predictions)}}
        dataset = End2EndDataset({"dataset": {**paths, "match_method": "quick_match"}})
    attributes = {p["page_info"]["image_path"][:-4]: p["page_info"]["page_attribute"] for p, _ in PAGES}
    found: dict[str, Any] = {"pages": {p["page_info"]["image_path"]: {} for p, _ in PAGES}, "all": {}, "groups": {}}
    elements = {
        "text_block": "Edit_dist",
        "display_formula": "Edit_dist",
        "table": "TEDS",
        "reading_order": "Edit_dist",
    }
    for element, metric in elements.items():
        samples, figures = METRIC_REGISTRY.get(metric)(dataset.samples[element]).evaluate([], f"hsdkit_{element}")
        samples = samples if isinstance(samples, list) else samples.samples
        found["all"][element] = figures
        found["groups"][element] = get_page_split(samples, attributes)
        for sample in samples:
            scores = [
                sample["metric"][name]
                for name in ("Edit_dist", "TEDS", "TEDS_structure_only")
                if name in sample["metric"]
            ]
            found["pages"][sample["img_id"]].setdefault(element, []).append(scores)
    return found


if __name__ == "__main__":
    Path(sys.argv[1], "result").mkdir(exist_ok=True)
    scores = official(Path(sys.argv[1]).resolve())
    OUT.write_text(
        json.dumps({"pages": PAGES, "official": scores}, ensure_ascii=False, indent=1, default=float) + "\n",
        encoding="utf-8",
    )
