"""The symbols a page is written with: characters, table tags, special tokens, and the classes of the dense loss."""

SPECIAL = (
    "<|endoftext|>",
    "<|im_start|>",
    "<|im_end|>",
    "<|vision_start|>",
    "<|vision_end|>",
    "<|image_pad|>",
    "<|video_pad|>",
    # Before the image: what its visual tokens take their bearings from.
    "<|anchor_0|>",
    "<|anchor_1|>",
    "<|anchor_2|>",
    "<|anchor_3|>",
)
PAD, START, END, VISION_START, VISION_END, IMAGE, VIDEO, *ANCHORS = SPECIAL

STRUCTURE = (
    "\n\n",
    "<table>",
    "</table>",
    "<tr>",
    "</tr>",
    "<td>",
    "</td>",
    '<td colspan="2">',
    '<td colspan="3">',
    '<td rowspan="2">',
)

# Drawn letter -> LaTeX. A sign of a formula is one glyph and one token, or a cell could not hold what starts in it.
GREEK = {
    "α": "\\alpha ", "β": "\\beta ", "γ": "\\gamma ", "δ": "\\delta ", "θ": "\\theta ", "λ": "\\lambda ", "μ": "\\mu ",
    "π": "\\pi ", "σ": "\\sigma ", "φ": "\\phi ", "ω": "\\omega ", "Δ": "\\Delta ", "Ω": "\\Omega ",
}  # fmt: skip
FORMULA = (
    *("$$\n", "\n$$", "_{", "^{", "}{", "\\frac{", "\\sqrt{", "\\sum", " \\cdot ", " \\times "),
    *GREEK.values(),
)

ASCII = "".join(chr(c) for c in range(32, 127))
OTHER = "–—‘’“”…•éèêëàâäöüßçñóáíúøåÉÖÜ£€§©®°±×µ·²³½"

# Class 0 means "no glyph in this slot".
GLYPHS: tuple[str, ...] = (*ASCII, *OTHER, "\n", *STRUCTURE, *FORMULA)
GLYPH_CLASS: dict[str, int] = {glyph: i + 1 for i, glyph in enumerate(GLYPHS)}
NUM_CLASSES = len(GLYPHS) + 1

CELL = 16  # pixels a side of one visual token: patch size 8, merged 2 by 2
SLOTS = 8  # glyphs a cell can name in the dense loss
