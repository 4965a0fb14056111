"""The training forward pass computes what the stock class computes, and the tokenizer loses nothing."""

import random

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("training.pages")
canvas = pytest.importorskip("training.canvas")
words = pytest.importorskip("training.words")
if not (canvas.FONT_ROOT / "lato").exists() or not words.DICTIONARY.exists():
    pytest.skip("needs the Debian fonts and the word list", allow_module_level=True)

from training.forward import LEAD, make_plan, read, see  # noqa: E402
from training.model import make_model  # noqa: E402
from training.pages import PageSpec  # noqa: E402
from training.samples import make_batch, to_patches  # noqa: E402
from training.tokenizer import loosened, train_tokenizer, wrap_tokenizer  # noqa: E402 (only where the fonts are)


@pytest.fixture(scope="module")
def tokenizer():
    return train_tokenizer(pages=20)


@pytest.mark.parametrize(
    "text", ["# A\n\n- b\n  - c", '<table><tr><td colspan="2">1,5</td></tr></table>', "é 日本 \u0000"]
)
def test_tokenizer_round_trip(tokenizer, text):
    wrapped = wrap_tokenizer(tokenizer)
    assert wrapped.decode(wrapped.encode(text, add_special_tokens=False)) == text


def test_digits_are_single_tokens(tokenizer):
    assert len(tokenizer.encode("1234").ids) == 4


def test_signs_of_a_formula_are_single_tokens(tokenizer):
    text = "$$\n\\alpha _{2} = \\frac{x}{y}\n$$"
    tokens = tokenizer.encode(text).tokens
    assert tokens[:3] == ["$$\n", "\\alpha ", "_{"]
    assert tokens[-6:] == ["\\frac{", "x", "}{", "y", "}", "\n$$"]
    assert tokenizer.decode(tokenizer.encode(text).ids) == text


def test_batch_cells_follow_the_text(tokenizer):
    batch = make_batch(lambda _: PageSpec(256, 96, degraded=False), 2, random.Random(1), tokenizer)
    assert batch.patches.shape == (2, 4 * 96, 64)
    assert batch.glyphs.shape == batch.tokens.shape == (2, 96, 8)
    assert (batch.places <= 95).all()
    assert batch.ids[0, batch.lengths[0] - 1] == tokenizer.token_to_id("<|im_end|>")


def test_loose_texts_say_the_same_and_leave_the_dense_targets_alone(tokenizer):
    def drawn(share):
        loose = loosened(tokenizer, share)
        return make_batch(lambda _: PageSpec(256, 96, as_read=True), 12, random.Random(1), tokenizer, loose)

    # Half of the texts are split by the other tokenizer: here by one that leaves out all merges.
    plain, split = drawn(0.0), drawn(1.0)
    assert (plain.tokens == split.tokens).all()
    assert 0 < (plain.lengths < split.lengths).sum() < 12
    for i in range(12):
        texts = [tokenizer.decode(batch.ids[i, : batch.lengths[i]].tolist()) for batch in (plain, split)]
        assert texts[0] == texts[1]


def test_training_forward_equals_the_stock_class(tokenizer):
    torch.manual_seed(0)
    model = make_model(tokenizer).eval()
    batch = make_batch(lambda _: PageSpec(208, 144, degraded=False), 2, random.Random(2), tokenizer)
    ids, places, lengths, taught = map(torch.from_numpy, (batch.ids, batch.places, batch.lengths, batch.taught))
    patches = torch.from_numpy(batch.patches).float()
    plan = make_plan(model, 208, 144)
    config = model.config
    with torch.no_grad():
        cells = see(model, patches, plan)
        ours = model.lm_head(read(model, cells, ids, places, lengths, taught, plan).hidden)
        count = cells.shape[1]
        lead = [*config.anchor_token_ids, config.vision_start_token_id]
        image = [*[config.image_token_id] * count, config.vision_end_token_id]
        prompt = torch.tensor([[*lead, *image, config.text_config.bos_token_id]] * 2)
        inputs = torch.cat([prompt, ids[:, :-1]], 1)
        stock = model(
            input_ids=inputs,
            attention_mask=torch.ones_like(inputs),
            mm_token_type_ids=(inputs == config.image_token_id).int(),
            pixel_values=patches.reshape(-1, 1, 64).expand(-1, 3, 64).reshape(-1, 192),
            image_grid_thw=torch.tensor([[1, 18, 26]] * 2),
        ).logits[:, LEAD + count + 1 :]
    assert torch.allclose(ours, stock, atol=1e-4)


def test_the_first_layer_tells_cells_where_they_lie(tokenizer):
    """Codes of one axis differ between any two rows (columns) more than they do within one."""
    torch.manual_seed(0)
    model = make_model(tokenizer).eval()
    text, table = model.model.language_model, model.get_input_embeddings().weight
    plan = make_plan(model, 320, 288)
    cells = table[torch.randint(300, min(model.config.anchor_token_ids), (1, 18 * 20))]
    lead = table[torch.tensor([[*model.config.anchor_token_ids, model.config.vision_start_token_id]])]
    x = torch.cat([lead, cells], 1)
    with torch.no_grad():
        rope = text.rotary_emb(x, plan.positions[:, None, :-1])
        mask = torch.full((x.shape[1], x.shape[1]), -torch.inf).triu(1)[None, None]
        after = text.layers[0](x, attention_mask=mask, position_embeddings=rope)
    codes = (after - x)[0, LEAD:].unflatten(0, (18, 20))
    rows, columns = codes.mean(1), codes.mean(0)
    noise = (codes - rows[:, None] - columns[None] + codes.mean((0, 1))).norm(dim=-1).max()
    nearest = min(torch.pdist(rows).min(), torch.pdist(columns).min())
    assert nearest > 2 * noise


def test_patches_keep_the_merge_order():
    image = (np.arange(32 * 32).reshape(32, 32) % 251).astype(np.uint8)
    patches = (to_patches(image).astype(np.float32) + 1) * 127.5
    assert patches.shape == (16, 64)
    assert np.allclose(patches[1], image[:8, 8:16].ravel(), atol=0.1)
    assert np.allclose(patches[2], image[8:16, :8].ravel(), atol=0.1)
