"""Pages that fail are tried again as the run says; every attempt is on record, and nothing stops another page."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image, ImageDraw
from toys import TOY, Toys, ToyVerifier, ToyVerifierConfig, blank_pdf

from hsdkit import DocumentResult, hookimpl
from hsdkit.components import Component
from hsdkit.config import compose
from hsdkit.errors import ConfigError, PluginError
from hsdkit.pipeline import Pipeline
from hsdkit.plugins import Plugins
from hsdkit.policy import HELPS, Action
from hsdkit.protocols import Verdict
from hsdkit.regions import Draft
from hsdkit.results import PageResult
from hsdkit.totals import Totals

MOODS = ["well", "error", "memory", "loop", "length", "empty"]


class Moody(ToyVerifier):
    """Does what its moods say, one a read of a page, the last of them ever after. "upright" reads pages that have their
    dark corner at the top left."""

    def __init__(self, name: str, moods: Sequence[str], config: ToyVerifierConfig, uses_draft: bool) -> None:
        super().__init__(config)
        self.name, self.moods, self.uses_draft = name, moods, uses_draft
        self.reads: Counter[int] = Counter()

    def verify(self, page: Any, draft: Draft, target: Any, engine: Any, on_text: Any = None) -> Verdict:
        mood = self.moods[min(self.reads[page.number], len(self.moods) - 1)]
        self.reads[page.number] += 1
        text = f"RAW {self.name} read page {page.number}"
        match mood:
            case "error":
                raise RuntimeError("out of luck")
            case "memory":
                raise MemoryError
            case "interrupt":
                raise KeyboardInterrupt
            case "config":
                raise ConfigError("this cannot work")
            case "plugin":
                raise PluginError("this is not installed")
            case "empty":
                return Verdict("", "eos", ())
            case "tell":
                on_text(0, text)
            case "upright" if page.image.getpixel((2, 2)) != (0, 0, 0):
                return Verdict("RAW the", "loop", (self.stage("the", draft),))
            case "loop" | "length":
                return Verdict(text, mood, (self.stage(text, draft),))  # type: ignore[arg-type]
        return Verdict(text, "eos", (self.stage(text, draft),))


class MoodyToys(Toys):
    """The toys, with verifiers of these moods; `toy` is the run's own."""

    def __init__(self, **moods: Sequence[str]) -> None:
        self.moods = moods

    @hookimpl
    def hsdkit_components(self) -> Iterable[Component]:
        yield from (c for c in super().hsdkit_components() if c.kind != "verifier")
        for name, moods in self.moods.items():
            yield Component("verifier", name, "moody", ToyVerifierConfig, self.factory(name, moods))

    @staticmethod
    def factory(name: str, moods: Sequence[str]) -> Callable[[ToyVerifierConfig], Moody]:
        return lambda config: Moody(name, moods, config, uses_draft=name != "autoregressive" and config.uses_draft)


def run(path: Path, overrides: Iterable[str] = (), **moods: Sequence[str]) -> DocumentResult:
    registry = Plugins()
    registry.register(MoodyToys(**{"autoregressive": ["well"], "page": ["well"]} | moods), "toys")
    return Pipeline(compose([*TOY, *overrides], registry=registry), registry=registry).parse(path)


def actions(page: PageResult) -> list[tuple[str, str, bool]]:
    return [(a.action, a.failure, a.kept) for a in page.attempts]


@pytest.fixture
def one(tmp_path: Path) -> Path:
    """A printed page, with a dark corner at the top left."""
    return picture(tmp_path / "one.png")


def picture(path: Path, turn: int = 0) -> Path:
    image = Image.new("RGB", (240, 160), "white")
    draw = ImageDraw.Draw(image)
    draw.rectangle((0, 0, 12, 12), fill="black")
    for line in range(3):
        draw.text((20, 30 + 30 * line), "some words that are printed on it", fill="black")
    image.rotate(turn, expand=True).save(path)  # counter-clockwise
    return path


def test_a_page_that_is_well_has_no_attempts(one: Path) -> None:
    (page,) = run(one, toy=["well"]).pages
    assert page.attempts == ()
    assert (page.saved_by, page.turned) == ("", 0)
    assert Totals.of(page).saved == Counter()


def test_an_error_is_tried_again_and_then_without_a_draft(one: Path) -> None:
    (again,) = run(one, toy=["memory", "well"]).pages
    assert actions(again) == [("read", "error", False), ("retry", "", True)]
    assert (again.error, again.markdown, again.saved_by) == (None, "toy read page 1", "retry")
    assert "MemoryError" in again.attempts[0].reason
    assert again.notes[-1].startswith(
        "read at another try, after the first attempt failed: one.png, page 1: MemoryError"
    )

    (plain,) = run(one, toy=["error"]).pages
    assert actions(plain) == [("read", "error", False), ("retry", "error", False), ("plain", "", True)]
    assert (plain.verifier, plain.exact, plain.origin) == ("autoregressive", True, "model")
    assert plain.draft.regions  # what was drafted is kept with the page
    assert Totals.of(plain).saved == {"plain": 1}


def test_where_nothing_helps_the_first_error_is_the_pages(one: Path) -> None:
    (page,) = run(one, toy=["error", "memory"], autoregressive=["error"]).pages
    assert page.error == "one.png, page 1: RuntimeError: out of luck"
    assert actions(page) == [("read", "error", True), ("retry", "error", False), ("plain", "error", False)]
    assert page.saved_by == ""


def test_with_no_actions_the_first_failure_is_final(one: Path) -> None:
    result = run(one, ["on_failure=[]"], toy=["error", "well"])
    assert not result.ok
    assert result.pages[0].attempts == ()


@pytest.mark.parametrize("mood", ["loop", "length", "empty"])
def test_what_decoding_would_only_repeat_is_left_as_it_is(mood: str, one: Path) -> None:
    (page,) = run(one, toy=[mood, "well"]).pages
    assert page.attempts == ()
    assert page.error is None


def test_a_loop_that_tau_may_have_made_is_read_plainly(one: Path) -> None:
    (page,) = run(one, ["verifier.tau=0.5"], toy=["loop"]).pages
    assert actions(page) == [("read", "loop", False), ("plain", "", True)]


def test_the_page_stage_alone_is_tried_before_plain_decoding_where_it_says_so(one: Path) -> None:
    (page,) = run(one, ["on_failure=[page,plain]"], toy=["error"]).pages
    assert actions(page) == [("read", "error", False), ("page", "", True)]
    (undrafted,) = run(one, ["on_failure=[page,plain]", "verifier.uses_draft=false"], toy=["error"]).pages
    assert actions(undrafted) == [("read", "error", False), ("plain", "", True)]


@pytest.mark.parametrize("turn", [90, 180, 270])
def test_a_page_on_its_side_is_turned_until_it_can_be_read(turn: int, tmp_path: Path) -> None:
    registry = Plugins()
    registry.register(MoodyToys(toy=["upright"]), "toys")
    pipeline = Pipeline(compose([*TOY, "on_failure=[rotate]"], registry=registry), registry=registry)
    shown: list[Any] = []
    path = picture(tmp_path / "side.png", turn)
    (page,) = pipeline.parse(path, on_page=lambda seen, _: shown.append(seen)).pages
    kept = next(a for a in page.attempts if a.kept)
    assert (kept.action, kept.failure) == (f"rotate {turn}", "")
    assert (page.width, page.height) == (240, 160)  # as it was read
    assert shown[0].image.getpixel((2, 2)) == (0, 0, 0)
    assert page.saved_by == "rotate"
    assert page.turned == turn
    assert page.draft.regions == ()
    assert f"turned by {turn} degrees" in page.notes[-1]


def test_a_turned_page_of_which_less_is_read_is_not_kept(one: Path) -> None:
    (page,) = run(one, ["on_failure=[rotate]"], toy=["loop", "empty"]).pages
    assert [kept for *_, kept in actions(page)] == [True, False, False, False]
    assert page.markdown == "toy read page 1"


def test_a_blank_page_may_be_empty(tmp_path: Path) -> None:
    (page,) = run(blank_pdf(tmp_path / "blank.pdf"), ["on_failure=[rotate,draft]"], toy=["empty"]).pages
    assert page.attempts == ()


def test_the_drafters_text_is_marked_as_such_everywhere(one: Path) -> None:
    result = run(one, ["on_failure=[retry,plain,draft]"], toy=["error"], autoregressive=["error"])
    (page,) = result.pages
    assert page.markdown == "<!-- hsdkit: page 1 is the text of drafter toy, not read by the model -->\n\ndrafted"
    assert (page.origin, page.exact, page.error, page.page_tokens) == ("draft", False, None, 0)
    assert Totals.of(page).saved == {"draft": 1}
    assert DocumentResult.from_json(result.to_json()).pages == result.pages
    assert "the drafter's text" in page.notes[-1]


def test_a_missing_draft_takes_nobodys_place(one: Path) -> None:
    (page,) = run(one, ["on_failure=[draft]", "drafter.behave=refuse"], toy=["error"]).pages
    assert page.error == "one.png, page 1: RuntimeError: out of luck"
    assert page.attempts[1].reason.endswith("there is no draft of this page whose text could take its place")


def test_the_drafters_text_cannot_be_asked_of_a_run_without_drafts(one: Path) -> None:
    with pytest.raises(ConfigError, match="on_failure=draft: verifier=toy makes no drafts"):
        run(one, ["on_failure=[draft]", "verifier.uses_draft=false"], toy=["well"])


@pytest.mark.parametrize(
    ("mood", "error"), [("interrupt", KeyboardInterrupt), ("config", ConfigError), ("plugin", PluginError)]
)
@pytest.mark.parametrize("where", ["toy", "autoregressive"])
def test_what_is_not_the_pages_fault_stops_the_run(mood: str, error: type, where: str, one: Path) -> None:
    moods = {"toy": ["error"]} | {where: [mood]}
    with pytest.raises(error):
        run(one, **moods)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.lists(st.sampled_from(MOODS), min_size=1, max_size=5),
    st.lists(st.sampled_from(MOODS), min_size=1, max_size=2),
    st.lists(st.sampled_from(sorted(HELPS)), max_size=4),
    st.sampled_from([1.0, 0.5]),
)
def test_whatever_happens_the_page_has_one_result_and_its_attempts_add_up(
    one: Path, moods: list[str], plain: list[str], policy: list[Action], tau: float
) -> None:
    options = [f"on_failure=[{','.join(policy)}]", f"verifier.tau={tau}"]
    (page,) = run(one, options, toy=moods, autoregressive=plain, page=plain).pages
    names = [a.action.split()[0] for a in page.attempts]
    assert list(dict.fromkeys(names[1:])) == [a for a in dict.fromkeys(policy) if a in names]  # in order
    if page.attempts:
        assert sum(a.kept for a in page.attempts) == 1
        (kept,) = (a for a in page.attempts if a.kept)
        assert (kept.failure == "error") == (page.error is not None)
        assert names.count("rotate") <= 3 * policy.count("rotate")
        assert sum(a.seconds for a in page.attempts) <= page.seconds
    if "well" in moods[: 1 + (policy[:1] == ["retry"] and moods[0] in ("error", "memory"))]:
        assert (page.error, page.finish_reason) == (None, "eos")
    if page.origin == "draft":
        assert "draft" in policy


def test_another_verifier_keeps_the_limits_of_the_run() -> None:
    pipeline = Pipeline(compose(["verifier=hsd", "verifier.max_new_tokens=77", "verifier.tau=0.5"]))
    page, plain = pipeline.substitute("page"), pipeline.substitute("autoregressive")
    assert page is not None
    assert plain is not None
    assert (page.settings.max_new_tokens, page.settings.tau, page.uses_draft) == (77, 0.5, True)
    assert (plain.settings.max_new_tokens, plain.settings.tau, plain.uses_draft) == (77, 1.0, False)
    assert pipeline.substitute("hsd") is None
    assert pipeline.substitute("no_such_thing") is None


def test_time_that_is_over_ends_the_attempts_but_the_draft(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    verify = Moody.verify

    def slow(self: Moody, *args: Any) -> Verdict:
        time.sleep(0.03)
        return verify(self, *args)

    monkeypatch.setattr(Moody, "verify", slow)
    options = ["page_seconds=0.02", "on_failure=[retry,plain,rotate,draft]"]
    (page,) = run(one, options, toy=["error"]).pages
    assert actions(page) == [("read", "error", False), ("draft", "", True)]


def test_drafting_is_within_the_pages_time(one: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What the verifier is handed knows until when; a slow draft leaves less of it."""
    left: list[float] = []

    def look(self: Moody, page: Any, draft: Draft, target: Any, engine: Any, on_text: Any = None) -> Verdict:
        left.append(engine.deadline - time.monotonic())
        assert engine.expected_seconds(2) == 0.02  # the engine for all else
        return Verdict("RAW text", "eos", ())

    monkeypatch.setattr(Moody, "verify", look)
    run(one, ["page_seconds=10"], toy=["well"])
    draft = Draft((), "slow", seconds=4.0)
    monkeypatch.setattr("hsdkit.preparing.page.safe_draft", lambda drafter, page: (draft, ()))
    run(one, ["page_seconds=10"], toy=["well"])
    assert 9 < left[0] <= 10
    assert 5 < left[1] <= 6


def test_a_page_that_its_listener_gives_up_is_not_tried_again(one: Path) -> None:
    class Enough(Exception):
        pass

    told: list[str] = []

    def on_text(_: int, text: str) -> None:
        told.append(text)
        raise Enough("cancelled")

    registry = Plugins()
    registry.register(MoodyToys(toy=["tell"], autoregressive=["tell"]), "toys")
    config = compose([*TOY, "on_failure=[retry,plain,rotate,draft]"], registry=registry)
    (page,) = Pipeline(config, registry=registry).parse(one, on_text=on_text).pages
    assert page.error == "one.png, page 1: Enough: cancelled"
    assert (len(told), page.attempts) == (1, ())
