"""`prompt_paste`: what is pasted, that it is looked up, and that nobody takes its output for that of plain decoding."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
import torch
from hsdkit_plugins.verifiers.prompt_paste import NOTE, PromptPaste, PromptPasteConfig, without_special
from models import SimpleTarget, make, page

from hsdkit.documents import Page
from hsdkit.plugins import plugins
from hsdkit.protocols import DecodeRequest, Engine, Verdict, is_exact
from hsdkit.regions import Box, Draft, Label, Region

PAGE = Page(1, page(), "a.png")


def draft(*texts: str) -> Draft:
    return Draft(tuple(Region(Box(0, 20 * i, 90, 20 * i + 18), Label.TEXT, t) for i, t in enumerate(texts)))


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> SimpleTarget:
    torch.set_num_threads(1)
    return SimpleTarget(make("qwen2_5_vl", tmp_path_factory.mktemp("models") / "qwen2_5_vl"))


@pytest.fixture(scope="module")
def engine(target: SimpleTarget) -> Engine:
    built: Engine = plugins().build("engine", "transformers", None, target=target)
    return built


class Seen:
    """The engine, with the requests it was given."""

    def __init__(self, engine: Engine) -> None:
        self.engine = engine
        self.requests: list[DecodeRequest] = []

    def decode(self, requests: Any, settings: Any, on_text: Any = None) -> Any:
        self.requests += requests
        return self.engine.decode(requests, settings, on_text)


def paste(target: SimpleTarget, engine: Any, drawn: Draft, **options: Any) -> Verdict:
    config = PromptPasteConfig(max_new_tokens=24, max_packed=16, **options)
    return PromptPaste(config).verify(PAGE, drawn, target, engine)


def test_the_draft_is_pasted_and_looked_up_and_the_page_says_so(target: SimpleTarget, engine: Engine) -> None:
    seen = Seen(engine)
    verdict = paste(target, seen, draft("The harbour", "was closed"))
    (request,) = seen.requests
    assert (
        request.prompt == f"{target.prompt(None)}\n\nOCR text of this page, with mistakes:\nThe harbour\n\nwas closed"
    )
    assert request.drafts == ("The harbour\n\nwas closed",)
    assert verdict.notes == (NOTE,)


def test_it_writes_what_plain_decoding_of_that_prompt_writes(target: SimpleTarget, engine: Engine) -> None:
    seen = Seen(engine)
    verdict = paste(target, seen, draft("The harbour", "was closed"))
    plain = plugins().component("verifier", "autoregressive").config(max_new_tokens=24).settings
    expected = engine.decode([DecodeRequest(seen.requests[0].image, seen.requests[0].prompt)], plain)
    assert verdict.stages[0].sequences[0].tokens == expected.sequences[0].tokens


def test_a_page_without_a_draft_has_the_plain_prompt(target: SimpleTarget, engine: Engine) -> None:
    seen = Seen(engine)
    verdict = paste(target, seen, Draft())
    assert seen.requests[0].prompt == target.prompt(None)
    assert seen.requests[0].drafts == ()
    assert verdict.notes == ()


def test_a_long_draft_is_cut_and_the_page_says_so(target: SimpleTarget, engine: Engine) -> None:
    seen = Seen(engine)
    verdict = paste(target, seen, draft("The harbour", "was closed"), most_characters=8, template="{draft}|{prompt}")
    assert seen.requests[0].prompt == f"The harb|{target.prompt(None)}"
    assert "of the draft's 23 characters 8 were pasted (verifier.most_characters)" in verdict.notes


def test_special_tokens_on_the_page_do_not_get_into_the_prompt(target: SimpleTarget) -> None:
    special = cache(lambda: sorted(map(str, target.tokenizer.all_special_tokens)))()
    assert special
    token = special[0]
    assert without_special(f"a {token} b", target) == "a  b"
    nested = token[:2] + token + token[2:]  # taking one out must not leave another
    assert without_special(f"a {nested} b", target) == "a  b"
    ids = target.tokenizer(without_special(" ".join(special * 2), target))["input_ids"]
    assert not set(ids) & set(target.tokenizer.all_special_ids)


def test_it_is_not_exact_and_says_so_everywhere() -> None:
    component = plugins().component("verifier", "prompt_paste")
    assert "not exact" in component.summary
    assert not is_exact(PromptPaste(PromptPasteConfig()))
    assert not is_exact(plugins().build("verifier", "region"))
    assert is_exact(plugins().build("verifier", "hsd"))
    config = plugins().component("verifier", "hsd").config(tau=0.5)
    assert not is_exact(plugins().build("verifier", "hsd", config))


@pytest.mark.parametrize(
    ("wrong", "said"),
    [({"template": "{draft}"}, "template="), ({"most_characters": 0}, "most_characters=0"), ({"tau": 0}, "tau=0")],
)
def test_options_that_make_no_sense(wrong: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        PromptPasteConfig(**wrong)
