"""Records what MinerU 4 says of a page, in its environment:

    python record_mineru.py PAGE.pdf mineru_flash.json   what tier=flash makes of a PDF
    python record_mineru.py mineru_basic.json            what tier=basic would write of the blocks below

The blocks are made up, because the models' weights are not at hand; lists, figures with their captions, the formula's
tag and the JSON are the library's own work.
"""

import json
import sys
from pathlib import Path

from mineru import MinerUParser, ModelJson
from mineru.backend.postprocess.document import model_json_to_middle_json
from mineru.config import config
from mineru.integrations.docvortex import build_metadata
from mineru.parser import ParseResult
from mineru.types import DocumentMetadata, Producer
from mineru.version import __version__


def text(*parts):
    """Running text; a tuple is (type, content)."""
    return [{"type": "text", "content": p} if isinstance(p, str) else {"type": p[0], "content": p[1]} for p in parts]


BLOCKS = [
    ("header", (0.08, 0.02, 0.42, 0.04), text("Journal of Page Reading")),
    ("doc_title", (0.2, 0.065, 0.8, 0.095), text("How a page is read")),
    ("paragraph_title", (0.08, 0.13, 0.3, 0.15), text("1 Introduction")),
    (
        "text",
        (0.08, 0.16, 0.48, 0.23),
        text("The mass ", ("equation_inline", "m"), " is known, ", ("code_inline", "read()"), " says.\nA second line."),
    ),
    ("equation", (0.12, 0.24, 0.44, 0.28), r"E = m c ^ { 2 } \tag{1}"),
    ("list", (0.08, 0.29, 0.48, 0.36), None),
    ("text", (0.08, 0.29, 0.48, 0.31), text("• First the layout.")),
    ("text", (0.08, 0.315, 0.48, 0.335), text("2. Then the text.")),
    ("text", (0.08, 0.34, 0.48, 0.36), text("And what has no mark.")),
    ("caption", (0.08, 0.37, 0.48, 0.385), text("Table 1: Crafts and places.")),
    (
        "table",
        (0.08, 0.39, 0.48, 0.46),
        "<html><body><table><tr><td>Year</td><td>Craft</td></tr>"
        "<tr><td><eq>x &lt; 1</eq></td><td>Type</td></tr></table></body></html>",
    ),
    ("footnote", (0.08, 0.463, 0.48, 0.475), text("a) By hand.")),
    ("text", (0.52, 0.13, 0.92, 0.18), text("右の段は左の段の後に読む。\n二行目。")),
    ("image", (0.52, 0.2, 0.92, 0.34), ""),
    ("caption", (0.52, 0.345, 0.92, 0.36), text("Figure 1. A press.")),
    ("code", (0.52, 0.38, 0.92, 0.43), "```python\nfor line in page:\n    read(line)\n```"),
    ("chart", (0.52, 0.44, 0.92, 0.5), "| a | b |\n| --- | --- |\n| 1 | 2 |"),
    ("list", (0.52, 0.51, 0.92, 0.56), None),
    ("ref_text", (0.52, 0.51, 0.92, 0.53), text("[1] A. Reader. On pages. 1455.")),
    ("ref_text", (0.52, 0.535, 0.92, 0.56), text("[2] B. Writer. On words. 1796.")),
    ("index", (0.52, 0.6, 0.92, 0.66), text("1 Introduction 1\n2 Methods 3")),
    ("aside_text", (0.01, 0.3, 0.03, 0.6), text("arXiv:2602.12957")),
    ("page_footnote", (0.08, 0.93, 0.48, 0.945), text("* Written by hand.")),
    ("page_number", (0.49, 0.97, 0.51, 0.985), text("7")),
]


def main() -> None:
    if len(sys.argv) == 3:
        result = MinerUParser(tier="flash", parse_mode="txt", image_analysis=False).parse(sys.argv[1])
    else:
        pages = [[{"type": kind, "bbox": list(box), "content": content} for kind, box, content in BLOCKS]]
        metadata = DocumentMetadata(file_suffix="pdf", producer=Producer(name="mineru", version=__version__))
        extensions = build_metadata(effort="medium", parse_mode="ocr")
        model = ModelJson(pages=pages, page_index_map=[], metadata=metadata, extensions=extensions)
        result = ParseResult(model_json_to_middle_json(model, llm_aided_config=config.llm_aided))
    native = result.to_dict()
    native["metadata"].pop("document", None)  # when and with what the PDF was made
    Path(sys.argv[-1]).write_text(json.dumps(native, ensure_ascii=False), encoding="utf-8")


if __name__ == "__main__":
    main()
