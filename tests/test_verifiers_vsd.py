"""`vsd`: a smaller model drafts. Whatever it guesses, the output is that of plain decoding."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
import torch
from hsdkit_plugins.verifiers.vsd import VsdConfig
from models import make, page
from transformers import AutoModelForImageTextToText

from hsdkit.documents import Page
from hsdkit.errors import ConfigError
from hsdkit.plugins import plugins
from hsdkit.protocols import Engine, Target, Verdict, is_exact
from hsdkit.regions import Draft

PAGE = Page(1, page(), "a.png")
LENGTH = 40


class Run:
    """A target of random weights, its engine, and what plain decoding writes."""

    def __init__(self, folder: Path, architecture: str) -> None:
        torch.set_num_threads(1)
        self.folder = make(architecture, folder / architecture)
        component = plugins().component("target", architecture)
        self.target: Target = component.factory(component.config(model=str(self.folder)))
        self.engine: Engine = plugins().build("engine", "transformers", None, target=self.target)
        self.plain = self.verify("autoregressive").stages[0].sequences[0].tokens

    def verify(self, name: str, **options: Any) -> Verdict:
        config = plugins().component("verifier", name).config(max_new_tokens=LENGTH, stop_loops=False, **options)
        verdict: Verdict = plugins().build("verifier", name, config).verify(PAGE, Draft(), self.target, self.engine)
        return verdict


@pytest.fixture(scope="module", params=["qwen2_5_vl", "qwen3_vl"])
def run(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Run:
    return Run(tmp_path_factory.mktemp("vsd"), request.param)


def changed(run: Run, folder: Path, by: float) -> str:
    """The target with noise on its weights, as a checkpoint: a model that agrees with it less the more noise it has."""
    model = AutoModelForImageTextToText.from_pretrained(run.folder, dtype=torch.float32)
    dice = torch.Generator().manual_seed(1)
    with torch.no_grad():
        for p in model.parameters():
            if p.numel() > 1:
                p += by * p.std() * torch.randn(p.shape, generator=dice)
    model.save_pretrained(folder)
    for file in run.folder.iterdir():
        if not (folder / file.name).exists():
            (folder / file.name).write_bytes(file.read_bytes())
    return str(folder)


@pytest.mark.parametrize("by", [0.0, 0.02, 3.0])
@pytest.mark.parametrize("tokens", [1, 6])
def test_the_output_is_that_of_plain_decoding(run: Run, by: float, tokens: int, tmp_path: Path) -> None:
    verdict = run.verify("vsd", assistant=changed(run, tmp_path, by), tokens=tokens)
    (stage,) = verdict.stages
    assert stage.sequences[0].tokens == run.plain
    assert all(step.nodes <= tokens for step in stage.sequences[0].steps)


def test_a_model_that_says_the_same_is_always_accepted_with_images(run: Run) -> None:
    (stage,) = run.verify("vsd", assistant=str(run.folder), tokens=7).stages
    # One token from the prefill, then seven guesses and the model's own a step.
    assert stage.forwards == -(-(LENGTH - 1) // 8)
    assert {step.source for step in stage.sequences[0].steps} == {"model"}


def test_the_smaller_models_time_counts_as_decoding(run: Run) -> None:
    (stage,) = run.verify("vsd", assistant=str(run.folder), tokens=7).stages
    assert stage.times.host > 0.5 * stage.times.decode


def test_a_model_with_other_tokens_is_refused(run: Run, tmp_path: Path) -> None:
    other = changed(run, tmp_path, 0.0)
    file = tmp_path / "tokenizer.json"
    file.write_text(file.read_text().replace('"<|im_start|>"', '"<|im_other|>"'))
    with pytest.raises(ConfigError, match=r"verifier\.assistant=.*has other tokens than target"):
        run.verify("vsd", assistant=other)


def test_a_model_that_is_not_there_is_the_runs_error(run: Run, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"verifier\.assistant=.*nowhere"):
        run.verify("vsd", assistant=str(tmp_path / "nowhere"))


def test_an_engine_without_draft_models_is_refused(run: Run) -> None:
    class Other:
        pass

    verifier = plugins().build("verifier", "vsd", VsdConfig(assistant=str(run.folder)))
    with pytest.raises(ConfigError, match="choose engine=transformers"):
        verifier.verify(PAGE, Draft(), run.target, Other())


def test_options_that_make_no_sense() -> None:
    with pytest.raises(ConfigError, match=r"verifier\.assistant=FOLDER"):
        plugins().build("verifier", "vsd", VsdConfig())
    with pytest.raises(ValueError, match="tokens=0: must be between 1 and 127"):
        VsdConfig(assistant="x", tokens=0)
    with pytest.raises(ValueError, match="tau=2"):
        VsdConfig(assistant="x", tau=2)
    assert is_exact(plugins().build("verifier", "vsd", VsdConfig(assistant="x")))
