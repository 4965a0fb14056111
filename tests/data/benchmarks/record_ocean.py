"""Makes ocean_ocr.json anew: hand-made outputs and the metrics of the official script's own functions.

    python record_ocean.py eval.py

`eval.py` is that of github.com/guoxy25/Ocean-OCR; of it only the function that compares two texts is run, with nltk and
jieba. METEOR is taken without synonyms, so that the figures do not depend on nltk's data.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

OUT = Path(__file__).resolve().with_name("ocean_ocr.json")
ENGLISH = "The harbour was closed for nine weeks in the winter of that year, and the town went hungry."
CHINESE = "那一年冬天，港口关闭了九个星期，城里的人挨饿。"
PAIRS = [
    (ENGLISH, ENGLISH),
    (ENGLISH, ENGLISH.replace("harbour", "harbor").replace("weeks", "week")),
    (ENGLISH, "and the town went hungry. " + ENGLISH[:40]),
    (ENGLISH, ""),
    (CHINESE, CHINESE),
    (CHINESE, "那年冬天,港口关闭了九个星期。"),
    (ENGLISH, CHINESE),
]


def official(source: str) -> Any:
    """`cal_per_metrics` of the script, which itself cannot be imported: it wants a GPU."""
    import jieba
    import nltk
    from nltk.metrics import f_measure, precision, recall
    from nltk.translate import meteor_score

    wanted = {"contain_chinese_string", "cal_per_metrics"}
    tree = ast.parse(source)
    tree.body = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name in wanted]
    nothing = SimpleNamespace(synsets=lambda word: [])
    without = SimpleNamespace(meteor_score=lambda r, h: meteor_score.meteor_score(r, h, wordnet=nothing))
    names = {"re": re, "nltk": nltk, "jieba": jieba, "meteor_score": without}
    names |= {"precision": precision, "recall": recall, "f_measure": f_measure}
    exec(compile(tree, "eval.py", "exec"), names)
    return names["cal_per_metrics"]


if __name__ == "__main__":
    compare = official(Path(sys.argv[1]).read_text(encoding="utf-8"))
    # The script calls it with the ground truth first, where the function wants the output.
    rows = [{"truth": t, "output": o, "official": {k: v or 0.0 for k, v in compare(t, o).items()}} for t, o in PAIRS]
    OUT.write_text("[\n" + ",\n".join(json.dumps(row, ensure_ascii=False) for row in rows) + "\n]\n", encoding="utf-8")
