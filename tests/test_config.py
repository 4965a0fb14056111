"""Configuration: layers, types, round trip, and errors that say what was meant and where it came from."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from toys import TOY, Toys, ToyTargetConfig, ToyVerifierConfig, toy_registry

from hsdkit import hookimpl
from hsdkit.components import KINDS, Component
from hsdkit.config import RunConfig, compose
from hsdkit.config_layers import experiments, override_layer, study_axes, study_note
from hsdkit.errors import ConfigError
from hsdkit.plugins import Plugins, plugins


def toy(*overrides: str, inputs: list[str] | None = None, registry: Plugins | None = None) -> RunConfig:
    return compose([*TOY, *overrides], inputs=inputs or [], registry=registry or toy_registry())


def refusal(*overrides: str, **more: Any) -> str:
    with pytest.raises(ConfigError) as caught:
        toy(*overrides, **more)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def experiment(tmp_path: Path, text: str, name: str = "mine.yaml") -> str:
    (tmp_path / name).write_text(text)
    return f"experiment={tmp_path / name}"


def test_component_options_become_instances_of_their_own_dataclass():
    config = toy("verifier.tau=0.75", "target.model=/models/a", "verifier.fail=[2,3]")
    assert config.verifier.options == ToyVerifierConfig(tau=0.75, fail=(2, 3))
    assert config.target.options == ToyTargetConfig("/models/a")
    assert config.target.name == "toy"


def test_the_run_config_is_frozen():
    with pytest.raises(AttributeError):
        toy().output = "elsewhere"  # type: ignore[misc]


def test_keyword_arguments_take_names_mappings_and_dotted_keys():
    given = {"drafter": "toy", "target": {"name": "toy", "model": "m"}, "engine": "toy", "verifier": "toy"}
    config = compose({**given, "verifier.tau": 0.5, "pages": "2-", "input": "a.pdf"}, registry=toy_registry())
    assert (config.target.options.model, config.verifier.options.tau, config.pages) == ("m", 0.5, "2-")
    assert config.input == ("a.pdf",)


def test_inputs_come_from_option_and_arguments():
    assert toy("input=[a.pdf,b.pdf]", inputs=["c.pdf"]).input == ("a.pdf", "b.pdf", "c.pdf")


@pytest.mark.parametrize("text", ["0123", "1e3", "null and void", "a${b}c", "a\\${b", "yes", "[x]", "a=b", "a: b", ""])
def test_text_options_take_text_as_it_stands(text: str):
    config = toy(f"password={text}", f"target.model={text}")
    assert config.password == text
    assert config.target.options.model == text


def test_null_empties_an_optional_option():
    assert toy("password=x", "password=null").password is None


# -- layers


def test_an_experiment_sets_options_and_the_command_line_wins(tmp_path: Path):
    chosen = experiment(tmp_path, "output: there\nverifier: {name: toy, tau: 0.5, step: 2}\n")
    config = toy(chosen, "verifier.tau=0.9")
    assert (config.output, config.verifier.options.tau, config.verifier.options.step) == ("there", 0.9, 2.0)


def test_experiments_can_build_on_each_other(tmp_path: Path):
    experiment(tmp_path, "output: a\npages: '1'\n", "base.yaml")
    config = toy(experiment(tmp_path, f"experiment: {tmp_path / 'base.yaml'}\noutput: b\n"))
    assert (config.output, config.pages) == ("b", "1")


def test_a_circle_of_experiments_is_refused(tmp_path: Path):
    assert "circle" in refusal(experiment(tmp_path, f"experiment: {tmp_path / 'mine.yaml'}\n"))


def two_verifiers() -> Plugins:
    @dataclass(frozen=True)
    class OtherConfig:
        tau: float = 1.0

    class Other:
        @hookimpl
        def hsdkit_components(self) -> list[Component]:
            return [Component("verifier", "other", "", OtherConfig, OtherConfig)]

    registry = toy_registry()
    registry.register(Other(), "other")
    return registry


def test_an_experiment_for_another_verifier_keeps_the_shared_options_and_says_what_it_drops(tmp_path: Path):
    chosen = experiment(tmp_path, "verifier: {name: toy, tau: 0.5, step: 2}\n")
    config = toy(chosen, "verifier=other", registry=two_verifiers())
    assert config.verifier.options.tau == 0.5
    assert len(config.notes) == 1
    assert "verifier.step" in config.notes[0]
    assert "mine.yaml" in config.notes[0]


def test_options_of_another_target_are_not_carried_over(tmp_path: Path):
    @dataclass(frozen=True)
    class OtherConfig:
        model: str = "own"

    class Other:
        @hookimpl
        def hsdkit_components(self) -> list[Component]:
            return [Component("target", "other", "", OtherConfig, OtherConfig)]

    registry = toy_registry()
    registry.register(Other(), "other")
    chosen = experiment(tmp_path, "target: {name: toy, model: /models/toy}\n")
    config = toy(chosen, "target=other", registry=registry)
    assert config.target.options.model == "own"
    assert "target.model" in config.notes[0]


def test_every_shipped_experiment_composes():
    assert "paper" in experiments()
    for name in experiments():
        [choice] = override_layer([f"experiment={name}"])
        expected = (study_note(name),) if study_axes(choice) else ()
        assert compose([f"experiment={name}"]).notes == expected


def test_the_paper_experiment_is_the_published_setting():
    config = compose(["experiment=paper"])
    options = config.verifier.options
    assert config.verifier.name == "hsd"
    assert (options.n, options.tau, options.matching, options.max_packed) == (3, 0.75, "paper", 128)


def test_the_defaults_are_installed_components_and_exact():
    config = compose()
    assert (config.drafter.name, config.target.name, config.verifier.name) == ("auto", "tiny", "hsd")
    assert config.verifier.options.tau == 1.0


def test_every_installed_component_composes_from_its_own_dataclass():
    for kind in KINDS:
        for component, _ in plugins().components(kind):
            chosen = getattr(compose({kind: component.name}), kind)
            assert isinstance(chosen.options, component.config)


# -- round trip


def test_the_printed_config_reads_back_as_the_same_config(tmp_path: Path):
    config = toy("verifier.tau=0.5", "pages=1-3,7", "password=a${b", "input=x.pdf", "verifier.fail=[1]")
    again = toy(experiment(tmp_path, config.to_yaml()))
    assert again.verifier == config.verifier
    assert {**again.composed, "experiment": None} == config.composed


@given(st.text(st.characters(blacklist_categories=("Cs",))), st.floats(0.01, 1), st.integers(1024, 10**9))
def test_any_values_survive_the_round_trip(text: str, tau: float, pixels: int):
    given = {"password": text, "target.model": text, "verifier.tau": tau, "max_pixels": pixels}
    chosen = dict.fromkeys(KINDS, "toy")
    config = compose(chosen | given, registry=toy_registry())
    assert (config.password, config.target.options.model) == (text, text)
    printed = yaml.safe_load(config.to_yaml())
    assert printed["verifier"]["tau"] == tau


def test_settings_for_result_files_hold_no_password_and_no_input():
    settings = toy("password=secret", "input=a.pdf").settings()
    assert "secret" not in str(settings)
    assert "input" not in settings
    assert settings["verifier"] == {"name": "toy", **settings["verifier"]}


class Mode(Enum):
    FAST = 1
    SLOW = 2


@dataclass(frozen=True)
class Inner:
    depth: int = 1


@dataclass(frozen=True)
class TypedConfig:
    where: Path = Path("/a")
    mode: Mode = Mode.FAST
    inner: Inner = field(default_factory=Inner)
    table: dict[str, int] = field(default_factory=dict)


def test_paths_and_enums_in_options_print_as_plain_text(tmp_path: Path):
    class Plugin:
        @hookimpl
        def hsdkit_components(self) -> list[Component]:
            return [Component("drafter", "typed", "", TypedConfig, TypedConfig)]

    registry = Plugins()
    registry.register(Toys(), "toys")
    registry.register(Plugin(), "typed")
    config = toy(
        "drafter=typed", "drafter.where=/b", "drafter.mode=SLOW", "drafter.inner.depth=3", "drafter.table={a: 1}",
        registry=registry,
    )  # fmt: skip
    assert config.drafter.options == TypedConfig(Path("/b"), Mode.SLOW, Inner(3), {"a": 1})
    again = toy("drafter=typed", experiment(tmp_path, config.to_yaml()), registry=registry)
    assert again.drafter == config.drafter


# -- errors


@pytest.mark.parametrize(
    ("override", "said"),
    [
        ("verifier.tua=1", ["verifier 'toy' has no option 'tua'", "verifier.tau", "command line"]),
        ("tau=1", ["no option 'tau'", "verifier.tau"]),
        ("pagess=1", ["no option 'pagess'", "did you mean pages"]),
        ("verifier.tau.deep=1", ["no option"]),
        ("verifier=toi", ["no verifier named 'toi'", "'toy'", "command line"]),
        ("verifier.tau=high", ["verifier.tau='high' is not a number", "command line"]),
        ("verifier.uses_draft=7", ["verifier.uses_draft", "true or false"]),
        ("verifier.matching=alined", ["one of aligned, paper", "did you mean aligned"]),
        ("verifier.fail=[x]", ["verifier.fail", "a list (each an integer)"]),
        ("verifier.tau=2", ["verifier 'toy'", "tau must be above 0"]),
        ("rotate=91", ["one of 0, 90, 180, 270"]),
        ("dpi=[1", ["dpi", "a number or null"]),
        ("max_pixels=many", ["max_pixels='many' is not an integer"]),
        ("draft=sometimes", ["one of auto, always"]),
        ("experiment=papr", ["no experiment 'papr'", "did you mean paper", "command line"]),
        ("experiment=no/such.yaml", ["no experiment file no/such.yaml"]),
        ("=3", ["key=value"]),
    ],
)
def test_errors_name_key_value_source_and_what_was_meant(override: str, said: list[str]):
    message = refusal(override)
    for part in said:
        assert part in message


def test_errors_in_an_experiment_name_its_file(tmp_path: Path):
    assert "mine.yaml" in refusal(experiment(tmp_path, "verifier: {tua: 1}\n"))
    assert "mine.yaml" in refusal(experiment(tmp_path, "a: [1\n"))
    assert "mine.yaml" in refusal(experiment(tmp_path, "- a\n"))
    assert "mine.yaml" in refusal(experiment(tmp_path, "target: {model: [1]}\n"))


def test_a_password_is_never_in_an_error():
    with pytest.raises(ConfigError) as caught:
        compose(dict.fromkeys(KINDS, "toy") | {"password": ["secret"]}, registry=toy_registry())
    assert "secret" not in str(caught.value)


def test_an_option_of_another_component_says_whose_it_is():
    assert "it is an option of verifier=toy" in refusal("verifier=other", "verifier.step=1", registry=two_verifiers())


@pytest.mark.parametrize("wrong", ["dpi=-1", "dpi=nan", "max_pixels=0"])
def test_values_no_document_can_be_opened_with_are_refused_before_anything_is_loaded(wrong: str):
    with pytest.raises(ConfigError, match=f"^{wrong}: must be"):
        compose([*TOY, wrong], registry=toy_registry())
