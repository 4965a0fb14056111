"""`hunyuanocr`: HunyuanOCR 1.0 and 1.5 of Tencent, 1B parameters (arXiv 2511.19575, 2607.04884).

The client published with 1.5 decodes greedily with `target.repetition_penalty=1.08`; by default the checkpoint's own
generation settings decide.
"""

from __future__ import annotations

from collections.abc import Iterable

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.profile import Profile, profile_component

from hsdkit import hookimpl
from hsdkit.components import Component

#: Its own task prompt for documents: the body as Markdown, no headers and footers, tables as HTML, formulas as LaTeX,
#: reading order. The HSD paper's code gives it to pages and to regions of every label, so that both stages write alike;
#: the model's own prompts for one element are "把图中的表格解析为HTML。" and "识别图片中的公式，用LaTeX格式表示。".
PARSE = (
    "提取文档图片中正文的所有信息用markdown格式表示，其中页眉、页脚部分忽略，表格用html格式表达，"
    "文档中公式用latex格式表示，按照阅读顺序组织进行解析。"
)


def image_tokens(height: int, width: int) -> int:
    """Each row of cells ends with a line-break token; one token begins the image and one ends it."""
    return height * (width + 1) + 2


PROFILE = Profile(
    name="hunyuanocr",
    summary="HunyuanOCR (1B): pages to Markdown with HTML tables",
    model="tencent/HunyuanOCR",
    revision="449e7d471a8a1ef5bd5d652e4881183d7252cbc7",
    model_types=frozenset({"hunyuan_vl"}),
    page=PARSE,
    dialect=Dialect(tables="html", formula=("$$ ", " $$")),
    dpi=200,
    system="",
    # It ends an answer with the assistant mark or with its end-of-text token; not every release lists both.
    end_tokens=("<｜hy_Assistant｜>", "<｜hy_place▁holder▁no▁2｜>"),
    image_tokens=image_tokens,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
