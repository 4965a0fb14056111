"""`dots_ocr`: dots.ocr and dots.mocr, which write a page as JSON records: box, category, text.

Facts: prompts and box scale of the authors' own parser (dots_ocr/utils/prompts.py, layout_utils.py), the chat format of
the checkpoint, outputs published by users. The checkpoint ships code; it is not run: `models/dots_ocr.py` reads the
weights.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from hsdkit_plugins.targets.dialects import Dialect
from hsdkit_plugins.targets.formats.records import Records
from hsdkit_plugins.targets.profile import Profile, ProfileTarget, profile_component

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.regions import Label

if TYPE_CHECKING:
    from PIL.Image import Image

#: The authors' `prompt_layout_all_en`, to the letter: the model was trained on it.
PAGE = """Please output the layout information from the PDF image, including each layout element's bbox, its category, \
and the corresponding text content within the bbox.

1. Bbox format: [x1, y1, x2, y2]

2. Layout Categories: The possible categories are ['Caption', 'Footnote', 'Formula', 'List-item', 'Page-footer', \
'Page-header', 'Picture', 'Section-header', 'Table', 'Text', 'Title'].

3. Text Extraction & Formatting Rules:
    - Picture: For the 'Picture' category, the text field should be omitted.
    - Formula: Format its text as LaTeX.
    - Table: Format its text as HTML.
    - All Others (Text, Title, etc.): Format their text as Markdown.

4. Constraints:
    - The output text must be the original text from the image, with no translation.
    - All layout elements must be sorted according to human reading order.

5. Final Output: The entire output must be a single JSON object.
"""
#: `prompt_ocr`, for crops. `prompt_grounding_ocr` reads a box of the whole page, so each region would cost a page's
#: prefill; crops are what Stage 1 is for.
TEXT = "Extract the text content from this image."

#: The eleven categories. Where several labels share one, the first is what reading gives.
CATEGORIES = {
    Label.TEXT: "Text",
    Label.TITLE: "Title",
    Label.HEADING: "Section-header",
    Label.LIST: "List-item",
    Label.TABLE: "Table",
    Label.FORMULA: "Formula",
    Label.FIGURE: "Picture",
    Label.CAPTION: "Caption",
    Label.FOOTNOTE: "Footnote",
    Label.HEADER: "Page-header",
    Label.FOOTER: "Page-footer",
    Label.PAGE_NUMBER: "Page-footer",
    Label.CODE: "Text",
    Label.REFERENCE: "List-item",
    Label.OTHER: "Text",
}


def _register() -> None:
    from hsdkit_plugins.targets.models.dots_ocr import register

    register()


class DotsTarget(ProfileTarget):
    def box_scale(self, image: Image) -> tuple[float, float]:
        """Boxes are in pixels of the image as the processor resizes it: sides in whole cells, the area in bounds."""
        from transformers.models.qwen2_vl.image_processing_pil_qwen2_vl import smart_resize

        given = self.prepare(image)
        cell = self.image_processor.patch_size * self.image_processor.merge_size
        height, width = smart_resize(given.height, given.width, cell, *self.pixel_bounds)
        return width / given.width, height / given.height


PROFILE = Profile(
    name="dots_ocr",
    summary="dots.ocr and dots.mocr (target.model=rednote-hilab/dots.mocr): the page as JSON records with boxes",
    model="rednote-hilab/dots.ocr",
    revision="c0111ce6bc07803dbc267932ffef0ae3a51dc951",
    model_types=frozenset({"dots_ocr"}),
    page=PAGE,
    text=TEXT,
    dialect=Dialect(tables="html", formula=("$$ ", " $$"), bullet="* ", layout=Records(CATEGORIES)),
    dpi=200,
    end_tokens=("<|endofassistant|>",),
    register=_register,
    target=DotsTarget,
)


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [profile_component(PROFILE)]
