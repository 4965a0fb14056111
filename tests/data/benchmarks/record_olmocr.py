"""Makes olmocr_bench.json anew: hand-made tests and outputs, and which pass by the benchmark's own code.

    python record_olmocr.py

in an environment with `olmocr[bench]`. Math tests are left out: what they compare is an image.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

OUT = Path(__file__).resolve().with_name("olmocr_bench.json")

SPANS = (
    "<table><thead><tr><th rowspan=2>Name</th><th colspan=2>Price</th></tr><tr><th>old</th><th>new</th></tr></thead>"
    "<tr><td>tea</td><td>1.20</td><td>1.50</td></tr><tr><td>salt<br>fine</td><td colspan=2>0.80</td></tr></table>"
)
ROWS = "| Name | Price |\n|---|---|\n| tea | 1.20 |\n| salt | 0.80 |"
UGLY = "<table><tr><td rowspan=3>a</td><td>b</td></tr><tr><td colspan=0>c</td></tr></table>"
NOTES = "The harbour[^1] was closed<sup>2</sup> that year\u00b3.\n\n[^1]: See the report."

TESTS: list[tuple[dict[str, Any], list[str]]] = [
    (
        {"type": "present", "text": "The harbour was closed"},
        ["# The **harbour** was\nclosed", "The harbor was closed", ""],
    ),
    (
        {"type": "present", "text": "The harbour was closed", "max_diffs": 2},
        ["The harbor was closed", "A harbor is closed"],
    ),
    ({"type": "present", "text": "“Quoted” — text", "case_sensitive": False}, ['"QUOTED" - TEXT', "quoted text"]),
    ({"type": "present", "text": "begin", "first_n": 20}, ["begin and so on", "it goes on for long before they begin"]),
    (
        {"type": "present", "text": "end", "first_n": 4, "last_n": 4},
        ["and then the end", "end it now please", "no end here"],
    ),
    ({"type": "absent", "text": "Page 17"}, ["Page 17", "page 17", "The text"]),
    ({"type": "absent", "text": "Page 17", "last_n": 10}, ["Page 17 comes first here", "It ends: Page 17"]),
    (
        {"type": "order", "before": "first part", "after": "second part"},
        ["first part, second part", "second part, first part"],
    ),
    (
        {"type": "order", "before": "first part", "after": "second part", "max_diffs": 2},
        ["frst part; secnd part", "first part"],
    ),
    (
        {"type": "order", "before": "a word", "after": "a word too"},
        ["a word too and a word", "a word, then a word too"],
    ),
    ({"type": "table", "cell": "1.20", "left": "tea", "up": "old"}, [SPANS, ROWS, "1.20"]),
    ({"type": "table", "cell": "1.50", "top_heading": "Price"}, [SPANS, ROWS]),
    ({"type": "table", "cell": "1.50", "top_heading": "new", "left_heading": "Name"}, [SPANS]),
    ({"type": "table", "cell": "0.80", "up": "1.50", "left": "salt fine"}, [SPANS]),
    ({"type": "table", "cell": "0.80", "left_heading": "salt", "top_heading": "Price"}, [ROWS, SPANS]),
    ({"type": "table", "cell": "tea", "down": "salt", "right": "1.2", "max_diffs": 1}, [ROWS, SPANS]),
    ({"type": "table", "cell": "tea", "ignore_markdown_tables": True}, [ROWS, SPANS]),
    ({"type": "table", "cell": "c", "left": "a", "up": "b"}, [UGLY]),
    (
        {"type": "format", "text": "The harbour", "format": "heading"},
        ["## The harbour", "The harbour", "<h2>The harbour</h2>"],
    ),
    (
        {"type": "format", "text": "closed", "format": "bold"},
        ["was **closed** then", "was *closed* then", "<b>closed</b>"],
    ),
    (
        {"type": "format", "text": "closed", "format": "italic"},
        ["was **closed** then", "was *closed* then", "<em>Closed</em>"],
    ),
    ({"type": "footnote", "marker": "1"}, [NOTES, "harbour 1", "[^1]: only the note"]),
    ({"type": "footnote", "marker": "2", "appears_before_marker": "was closed"}, [NOTES, "open<sup>2</sup>"]),
    ({"type": "footnote", "marker": "3", "appears_after_marker": "See"}, [NOTES, "x\u00b3 and nothing"]),
    ({"type": "baseline"}, ["text", " \n", "一 text", "text \U0001f600", "text" + "ab" * 31, "text" + "ab" * 30]),
    ({"type": "baseline", "max_length": 5}, ["", "- 12 -", "a longer text", "![a long name](x.png)"]),
    ({"type": "baseline", "max_length": 5, "max_length_skips_image_alt_tags": True}, ["![a long name](x.png)"]),
    ({"type": "baseline", "check_disallowed_characters": False, "max_repeats": 2}, ["一 text", "so so so so so so"]),
]


def main() -> None:
    from olmocr.bench.tests import load_single_test

    rows = []
    for number, (given, outputs) in enumerate(TESTS):
        test = {"pdf": "a.pdf", "page": 1, "id": f"t{number}", **given}
        for markdown in outputs:
            passed, _ = load_single_test(dict(test)).run(markdown)
            rows.append({"test": test, "markdown": markdown, "passes": passed})
    OUT.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
