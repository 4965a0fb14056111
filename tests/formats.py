"""Pages of regions and the dialects of the formats that models write, for tests; an oracle's tokenizer for them."""

from __future__ import annotations

from functools import cache

from hsdkit_plugins.targets.dialects import Dialect, render
from hsdkit_plugins.targets.formats.blocks import Scale, page_drafts
from hsdkit_plugins.targets.formats.doctags import DocTags
from hsdkit_plugins.targets.formats.grounding import Grounding
from hsdkit_plugins.targets.formats.records import Records
from hsdkit_plugins.targets.tables import HtmlStyle
from simulate import licence
from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hsdkit.decoding.codec import TokenizerCodec
from hsdkit.regions import Box, Label, Region

CATEGORIES = {
    Label.TITLE: "Title",
    Label.HEADING: "Section-header",
    Label.TEXT: "Text",
    Label.LIST: "List-item",
    Label.TABLE: "Table",
    Label.FORMULA: "Formula",
    Label.FIGURE: "Picture",
    Label.CAPTION: "Caption",
    Label.HEADER: "Page-header",
    Label.CODE: "Text",
}
WORDS = {
    Label.TITLE: "title",
    Label.HEADING: "sub_title",
    Label.TEXT: "text",
    Label.LIST: "text",
    Label.TABLE: "table",
    Label.FORMULA: "equation",
    Label.FIGURE: "image",
    Label.CAPTION: "image_caption",
    Label.CODE: "text",
}


#: The page dialects of models, by what is special about them.
DIALECTS = {
    "html tables": Dialect(),
    "html, a tag a line": Dialect(html=HtmlStyle(line="\n", indent="  ", table=' border="1"')),
    "html with heads": Dialect(html=HtmlStyle(head="thead", body=True, columns_first=True)),
    "markdown tables": Dialect(tables="markdown"),
    "otsl": Dialect(tables="otsl"),
    "round and square brackets": Dialect(formula=("\\[", "\\]"), inline=("\\(", "\\)")),
    "no heading marks": Dialect(title=0, heading=0, bullet="• ", numbers="printed"),
    "full-width marks": Dialect(width="full", bullet="* "),
    "half-width marks": Dialect(width="half"),
    "no fences": Dialect(fence=False),
    "records": Dialect(formula=("$$ ", " $$"), bullet="* ", layout=Records(CATEGORIES)),
    "grounding": Dialect(formula=("\\[", "\\]"), inline=("\\(", "\\)"), layout=Grounding(WORDS)),
    "grounding, a block a line": Dialect(
        title=0,
        heading=0,
        layout=Grounding(WORDS, "<|det|>{name} [{box}]<|/det|>", joint="", trailer="", separator="\n", pairs=False),
    ),
    "doctags": Dialect(
        tables="otsl",
        heads=True,
        formula=("", ""),
        title=0,
        heading=0,
        fence=False,
        layout=DocTags(),
        numbers="printed",
    ),
}

TABLE = (
    "<table><tr><th>Port</th><th colspan=2>Ships, tons</th></tr><tr><td>Calais</td><td>1,204</td><td>7.5</td></tr>"
    "<tr><td>Dover</td><td>980</td><td>12.25</td></tr><tr><td>Ghent</td><td>64</td><td></td></tr></table>"
)


def page() -> tuple[Region, ...]:
    """A page of 800 x 1000 px with all that a page can have."""
    words = list(licence())
    items = [
        (Label.HEADER, "Annals of the harbour"),
        (Label.TITLE, "On the ships, their masters"),
        (Label.TEXT, words[2][:300]),
        (Label.HEADING, "The tons they bear"),
        (Label.TEXT, "Let $a_{1}$ be the “first”, and $b$ the second of them; so that " + words[3][:200]),
        (Label.FORMULA, r"E = \frac{m c^{2}}{\theta \neq 0} \label{a}"),
        (Label.LIST, "- " + words[4][:60] + "\n- " + words[5][:80] + "\n1) " + words[6][:50]),
        (Label.FIGURE, ""),
        (Label.CAPTION, "Figure 1. The pier in winter."),
        (Label.TEXT, "港口在冬天关闭,船长们(共12位)等待;价格为1,204.5元:太高!是吗?好."),
        (Label.TABLE, TABLE),
        (Label.TEXT, words[7][:250]),
        (Label.CODE, "def tons(ship):\n    return ship.tons"),
    ]
    regions, top = [], 40
    for number, (label, text) in enumerate(items):
        height = 22 + len(text) // 4
        box = Box(81 + number % 2, top, 700 + number % 3, top + height)
        kind = {Label.TABLE: "html", Label.FORMULA: "latex"}.get(label, "text")
        regions.append(Region(box, label, text, kind))  # type: ignore[arg-type]
        top += height + 9
    return tuple(regions)


def scale_of(dialect: Dialect) -> Scale:
    grid = dialect.layout.grid if dialect.layout else None
    return (1.25, 1.25) if grid is None else (grid / 800, grid / 1000)


def separator_of(dialect: Dialect) -> str:
    return dialect.layout.separator if dialect.layout else dialect.separator


def drafts_of(regions: tuple[Region, ...], dialect: Dialect) -> tuple[str, ...]:
    return page_drafts(regions, {}, lambda r: render(r, dialect), dialect.layout, scale_of(dialect))


def written(regions: tuple[Region, ...], dialect: Dialect) -> str:
    """What a model of that dialect that reads the page without a mistake writes."""
    return separator_of(dialect).join(drafts_of(regions, dialect))


@cache
def codec() -> TokenizerCodec:
    """Byte-level BPE with single digits, as in most models, trained on pages in all dialects; tags that models have as
    one token are one."""
    backend = Tokenizer(models.BPE())
    digits = pre_tokenizers.Digits(individual_digits=True)
    backend.pre_tokenizer = pre_tokenizers.Sequence([digits, pre_tokenizers.ByteLevel(add_prefix_space=False)])
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=2000, initial_alphabet=alphabet, show_progress=False)
    corpus = [*licence(), *[written(page(), dialect) for dialect in DIALECTS.values()] * 3]
    backend.train_from_iterator(corpus, trainer)
    tags = [f"<{t}cel>" for t in "feluxl"] + ["<nl>", "<ched>", "<|ref|>", "<|/ref|>", "<|det|>", "<|/det|>"]
    tags = [*dict.fromkeys(tags), *(f"<loc_{n}>" for n in range(501))]
    backend.add_special_tokens(["<|end|>", *tags])
    return TokenizerCodec(PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>"), tags)
