"""`prompt_paste`: the draft pasted into the prompt, and looked up: what one would try first. A baseline for studies.

The model answers another prompt than the plain one, so the output is not that of plain decoding, and the mistakes of
the draft can reach it. The longer prompt is paid for in the prefill.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from hsdkit_plugins.verifiers.common import SpeculativeConfig, page_verdict

from hsdkit import hookimpl
from hsdkit.components import Component
from hsdkit.documents import Page
from hsdkit.protocols import DecodeRequest, Engine, OnText, Target, Verdict
from hsdkit.regions import Draft
from hsdkit.results import StageResult

NOTE = "the draft was pasted into the prompt: this is not what plain decoding writes"


@dataclass(frozen=True)
class PromptPasteConfig(SpeculativeConfig):
    """template: the prompt, with `{prompt}` for the target's own and `{draft}` for the draft.
    most_characters: of the draft that are pasted; a longer one is cut there, and the page's notes say so.
    """

    template: str = "{prompt}\n\nOCR text of this page, with mistakes:\n{draft}"
    most_characters: int = 20_000

    def __post_init__(self) -> None:
        super().__post_init__()
        for part in ("{prompt}", "{draft}"):
            if part not in self.template:
                raise ValueError(f"template={self.template!r}: must have {{prompt}} and {{draft}} in it")
        if self.most_characters < 1:
            raise ValueError(f"most_characters={self.most_characters}: must be at least 1")


class PromptPaste:
    name = "prompt_paste"
    uses_draft = True
    exact = False

    def __init__(self, config: PromptPasteConfig) -> None:
        self.config = config
        self.settings = config.settings

    def verify(
        self, page: Page, draft: Draft, target: Target, engine: Engine, on_text: OnText | None = None
    ) -> Verdict:
        """A page without a draft is decoded with the plain prompt."""
        parts = [text for text in target.page_drafts(draft.regions, page.image) if text]
        plain, most = target.prompt(None), self.config.most_characters
        written = without_special(target.separator.join(parts), target)
        notes = [NOTE] if written else []
        if len(written) > most:
            notes.append(f"of the draft's {len(written)} characters {most} were pasted (verifier.most_characters)")
            written = written[:most]
        prompt = self.config.template.replace("{prompt}", plain).replace("{draft}", written) if written else plain
        request = DecodeRequest(target.view(page.image), prompt, (written,) if written else (), target.separator)
        decoded = engine.decode([request], self.settings, on_text)
        stage = StageResult("page", decoded.sequences, decoded.times, decoded.forwards)
        return page_verdict(stage, page, target, notes)


def without_special(text: str, target: Target) -> str:
    """The text without what the tokenizer would take for special tokens: a page that shows `<|im_end|>` must not end
    the turn, nor one that shows an image token ask for an image. Tags that the target itself writes stay."""
    tokenizer = target.tokenizer
    special = {str(token) for token in tokenizer.all_special_tokens}
    special |= {str(token) for token in tokenizer.added_tokens_decoder.values() if token.special}
    special -= set(target.written_tokens)
    while any(token in text for token in special):  # taking one out may make another
        for token in special:
            text = text.replace(token, "")
    return text


@hookimpl
def hsdkit_components() -> Iterable[Component]:
    return [
        Component(
            kind="verifier",
            name="prompt_paste",
            summary="the draft pasted into the prompt and looked up: a baseline; not exact, the prompt is another",
            config=PromptPasteConfig,
            factory=PromptPaste,
        )
    ]
