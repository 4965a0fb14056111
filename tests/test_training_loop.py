"""The training loop's schedule, its checkpoints' weights, and the folder it exports."""

import dataclasses

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("training.train")
canvas = pytest.importorskip("training.canvas")
words = pytest.importorskip("training.words")
if not (canvas.FONT_ROOT / "lato").exists() or not words.DICTIONARY.exists():
    pytest.skip("needs the Debian fonts and the word list", allow_module_level=True)

from training.export import export  # noqa: E402
from training.learner import Learner, load_matching, with_slips  # noqa: E402
from training.phases import JOINT, PHASES  # noqa: E402
from training.tokenizer import train_tokenizer  # noqa: E402
from training.train import WARM_UP, Machine, rate  # noqa: E402


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(pages=20)


@pytest.fixture(scope="module")
def learner(tokenizer):
    torch.manual_seed(0)
    return Learner(tokenizer)


@pytest.mark.parametrize("decay", [0.0, 0.5, 1.0])
def test_the_rate_warms_up_and_falls_at_the_end(decay):
    phase = dataclasses.replace(JOINT[0], decay=decay)
    assert rate(phase, 0, 0.0) < phase.rate / 10
    assert rate(phase, WARM_UP, 0.0) == pytest.approx(phase.rate)
    last = rate(phase, WARM_UP, 1.01)  # the last step may end a little after the phase's time
    assert last == pytest.approx(phase.rate if decay == 0 else 0.02 * phase.rate)


def test_ranks_must_draw_the_same_sizes():
    with pytest.raises(ValueError, match="rank"):
        Machine(ranks=2, workers=4)


def test_every_phase_trains_its_half_and_nothing_else(learner):
    names = {
        half: set(learner.trained(dataclasses.replace(JOINT[0], half=half))) for half in ("vision", "oracle", "both")
    }
    assert not any("layers" in n or n.startswith("oracle") for n in names["vision"])
    assert not any("visual" in n or n.startswith("glyphs") for n in names["oracle"])
    assert not any(n.startswith("oracle") for n in names["both"])
    assert {p.half for p in PHASES.values()} == set(names)


def test_weights_that_do_not_fit_start_fresh(learner, capsys):
    state = dict(learner.state_dict())
    state["glyphs.out.bias"] = torch.zeros(3)
    load_matching(learner, state)
    assert "glyphs.out.bias" in capsys.readouterr().out


def test_tokens_that_share_letters_share_spelling(learner, tokenizer):
    index = learner.spelling.index
    a, b = tokenizer.token_to_id("a"), tokenizer.token_to_id("b")
    assert (index[a] != index[b]).any()
    assert (index[tokenizer.token_to_id("<table>")] == learner.spelling.padding).all()
    assert torch.equal(learner.table(), learner.model.get_input_embeddings().weight)  # spelling starts at zero


def test_an_export_loads_with_the_auto_classes_and_reads(learner, tokenizer, tmp_path):
    from PIL import Image
    from transformers import AutoModelForImageTextToText, AutoProcessor

    tokenizer.save(str(tmp_path / "tokenizer.json"))
    torch.save({"learner": learner.state_dict()}, tmp_path / "some.pt")
    export(tmp_path / "some.pt", tmp_path / "out")
    model = AutoModelForImageTextToText.from_pretrained(tmp_path / "out", dtype=torch.float32)
    processor = AutoProcessor.from_pretrained(tmp_path / "out")
    message = {"role": "user", "content": [{"type": "image", "image": Image.new("RGB", (96, 64), "white")}]}
    inputs = processor.apply_chat_template(
        [message], add_generation_prompt=True, tokenize=True, return_dict=True, return_tensors="pt"
    )
    assert inputs["input_ids"].shape == (1, 6 * 4 + 7)  # four anchors, both ends of the image, the start
    assert model.generate(**inputs, max_new_tokens=3).shape[1] > inputs["input_ids"].shape[1]


def test_half_of_the_texts_read_on_from_wrong_tokens_of_their_own_page():
    torch.manual_seed(0)
    ids = torch.arange(1, 101) + 1000 * torch.arange(400)[:, None]
    lengths = torch.full((400,), 50)
    read = with_slips(ids, lengths)
    changed = read != ids
    assert changed.any(1).float().mean() == pytest.approx(0.5, abs=0.1)
    assert changed[changed.any(1)].float().mean() == pytest.approx(0.06, abs=0.01)
    assert (read // 1000 == ids // 1000).all()  # of the same page
    assert (read[changed] % 1000 <= 50).all()  # and no padding
