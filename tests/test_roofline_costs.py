"""Costs from a config: against counts by hand, against torch's own counter, against the parameters of real models."""

from __future__ import annotations

from typing import Any

import pytest
import torch
import transformers
from hypothesis import given, settings
from hypothesis import strategies as st
from torch.utils.flop_counter import FlopCounterMode

from hsdkit.errors import ConfigError
from hsdkit.roofline import Cost, Pass, decoder_cost, device, read_shape, speedup_of_sums, vision_cost
from hsdkit.roofline.costs import touched_expert_weights, used_expert_weights
from hsdkit.roofline.shape import Decoder, Experts

SMALL = {
    "model_type": "llama",
    "hidden_size": 8,
    "intermediate_size": 20,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "vocab_size": 50,
}


def test_a_pass_of_a_small_llama_counted_by_hand() -> None:
    decoder = read_shape(SMALL, "small").decoder
    cost = decoder_cost(decoder, Pass(rows=1, width=3, cached=10, logits=3), "fp32")
    # One layer: queries and outputs 8 x 8 each, keys and values 8 x 4 each, three matrices of 8 x 20.
    layer = 2 * 64 + 2 * 32 + 3 * 160
    head = 8 * 50
    # 3 queries of 4 heads of size 2 look at 13 keys, twice (scores, sums), two operations each, in two layers.
    attention = 2 * (3 * 4 * 2 * 13 * 2 * 2)
    assert cost.flops == 2 * 3 * (2 * layer + head) + attention
    # Weights once; three embeddings; keys and values (2 heads of 2) of 13 read and 3 written; logits.
    cache = 2 * (2 * 2 * 2) * (13 + 3)
    assert cost.bytes == 4 * (2 * layer + head + 3 * 8 + cache + 3 * 50)


@pytest.mark.parametrize(("rows", "width", "cached"), [(1, 1, 40), (1, 16, 40), (3, 5, 17)])
def test_the_operations_are_those_that_torch_counts(rows: int, width: int, cached: int) -> None:
    config = transformers.LlamaConfig(
        **{**SMALL, "hidden_size": 64, "intermediate_size": 96, "vocab_size": 300}, attn_implementation="eager"
    )
    model = transformers.LlamaForCausalLM(config).eval()
    cache = transformers.DynamicCache(config=config)
    with torch.inference_mode():
        model(torch.zeros((rows, cached), dtype=torch.long), past_key_values=cache)
        with FlopCounterMode(display=False) as counter:
            model(torch.zeros((rows, width), dtype=torch.long), past_key_values=cache)
    decoder = read_shape(config.to_dict(), "llama").decoder
    ours = decoder_cost(decoder, Pass(rows, width, cached, width), "fp32").flops
    assert ours == pytest.approx(counter.get_total_flops(), rel=0.01)  # it counts rotary frequencies too


def _parameters(model_class: Any, config: Any) -> int:
    """Matrices of a model that is never given memory."""
    with torch.device("meta"):
        model = model_class(config)
    return sum(p.numel() for p in model.parameters() if p.ndim >= 2)


@pytest.mark.parametrize(
    ("model_class", "config"),
    [
        (transformers.LlamaForCausalLM, transformers.LlamaConfig(num_hidden_layers=3, num_key_value_heads=8)),
        (transformers.Qwen2ForCausalLM, transformers.Qwen2Config(num_hidden_layers=3, tie_word_embeddings=True)),
        (transformers.Qwen3ForCausalLM, transformers.Qwen3Config(num_hidden_layers=3, head_dim=96)),
        (transformers.MixtralForCausalLM, transformers.MixtralConfig(num_hidden_layers=2)),
        (
            transformers.Qwen3MoeForCausalLM,
            transformers.Qwen3MoeConfig(num_hidden_layers=4, decoder_sparse_step=2, mlp_only_layers=[3]),
        ),
        (transformers.Qwen2MoeForCausalLM, transformers.Qwen2MoeConfig(num_hidden_layers=2)),
    ],
    ids=lambda v: type(v).__name__ if not isinstance(v, type) else "",
)
def test_weights_of_decoders_are_those_of_the_real_model(model_class: Any, config: Any) -> None:
    shape = read_shape(config.to_dict(), "real")
    assert shape.weights == pytest.approx(_parameters(model_class, config), rel=1e-3)


@pytest.mark.parametrize(
    ("model_class", "config"),
    [
        (transformers.Qwen2_5_VLForConditionalGeneration, transformers.Qwen2_5_VLConfig()),
        (transformers.Qwen3VLForConditionalGeneration, transformers.Qwen3VLConfig(vision_config={"depth": 8})),
    ],
    ids=["qwen2_5_vl", "qwen3_vl"],
)
def test_weights_with_vision_towers_are_within_a_few_percent_of_the_real_model(model_class: Any, config: Any) -> None:
    """Patch embeddings, learned positions and additional mergers are not counted."""
    config.text_config.num_hidden_layers = 2
    shape = read_shape(config.to_dict(), "real")
    assert shape.vision is not None
    assert shape.weights == pytest.approx(_parameters(model_class, config), rel=0.06)


def test_the_vision_tower_costs_what_torch_counts() -> None:
    config = transformers.Qwen3VLConfig(
        text_config={"hidden_size": 48},
        vision_config={
            "depth": 3, "hidden_size": 64, "intermediate_size": 128, "num_heads": 4, "out_hidden_size": 48,
            "patch_size": 4, "spatial_merge_size": 2, "deepstack_visual_indexes": [],
        },
    )  # fmt: skip
    from transformers.models.qwen3_vl.modeling_qwen3_vl import Qwen3VLVisionModel

    config.vision_config._attn_implementation = "eager"
    tower = Qwen3VLVisionModel(config.vision_config).eval()
    patches = torch.zeros((16 * 16, 3 * 2 * 4 * 4))
    with torch.inference_mode(), FlopCounterMode(display=False) as counter:
        tower(patches, grid_thw=torch.tensor([[1, 16, 16]]))
    vision = read_shape(config.to_dict(), "tower").vision
    assert vision is not None
    embedding = 2 * patches.numel() * 64
    ours = vision_cost(vision, 64, "fp32").flops
    assert ours == pytest.approx(counter.get_total_flops() - embedding, rel=0.01)


SIZES = st.integers(1, 300)
EXPERTS = Decoder(64, 4, 4, 2, 16, 128, 100, experts=Experts(count=16, used=3, size=32, shared=32, layers=3))
DENSE = Decoder(64, 4, 4, 2, 16, 128, 100)


@settings(deadline=None)
@given(st.sampled_from([DENSE, EXPERTS]), SIZES, SIZES, SIZES, st.integers(1, 8))
def test_more_tokens_rows_or_cache_cost_more_and_weights_are_read_once(
    decoder: Decoder, width: int, more: int, cached: int, rows: int
) -> None:
    base = decoder_cost(decoder, Pass(rows, width, cached, width), "bf16")
    wider = decoder_cost(decoder, Pass(rows, width + more, cached, width + more), "bf16")
    longer = decoder_cost(decoder, Pass(rows, width, cached + more, width), "bf16")
    assert base.flops < longer.flops
    assert base.flops < wider.flops
    assert base.bytes < longer.bytes
    assert base.bytes < wider.bytes
    alone = decoder_cost(decoder, Pass(rows, more, cached, more), "bf16")
    assert wider.bytes < base.bytes + alone.bytes  # the point of verifying several tokens at once
    assert decoder_cost(decoder, Pass(rows, width, cached, width), "fp32").bytes == 2 * base.bytes


@settings(deadline=None)
@given(st.integers(1, 5000))
def test_experts_read_lie_between_those_of_one_token_and_all(tokens: int) -> None:
    one, all_ = used_expert_weights(EXPERTS), 3 * 16 * EXPERTS.expert_weights
    assert one * 0.999 <= touched_expert_weights(EXPERTS, tokens) <= all_
    assert touched_expert_weights(EXPERTS, 1) == pytest.approx(one)


def test_layers_with_a_window_see_no_further() -> None:
    text = {**SMALL, "sliding_window": 100, "layer_types": ["full_attention", "sliding_attention"]}
    windowed, full = read_shape(text, "w").decoder, read_shape(SMALL, "f").decoder
    near, far = Pass(1, 1, 50, 1), Pass(1, 1, 5000, 1)
    assert decoder_cost(windowed, near, "fp32") == decoder_cost(full, near, "fp32")
    saved = decoder_cost(full, far, "fp32").flops - decoder_cost(windowed, far, "fp32").flops
    assert saved == 4 * 4 * 2 * (5001 - 101)


@pytest.mark.parametrize(
    ("config", "says"),
    [
        ({}, "says no hidden_size"),
        ({**SMALL, "hidden_size": 0}, "positive"),
        ({**SMALL, "hidden_size": "wide"}, "positive"),
        ({**SMALL, "model_type": "gpt2"}, "gpt2"),
        ({**SMALL, "kv_lora_rank": 512}, "latent attention"),
        ({**SMALL, "layer_types": ["linear_attention"] * 2}, "linear_attention"),
    ],
)
def test_configs_that_are_not_understood_are_refused(config: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigError, match=says):
        read_shape(config, "odd")


def test_a_tower_that_its_config_does_not_describe_is_said_to_be_left_out() -> None:
    shape = read_shape({**SMALL, "vision_config": {"hidden_size": 64}}, "m")
    assert shape.vision is None
    assert any("depth" in what for what in shape.left_out)


def test_the_papers_figures_give_the_papers_speedup() -> None:
    """Appendix B: 1.31 to 288 operations per byte and 41.5 times the operations are 2.81 times the speed on an A100."""
    plain, hsd = Cost(1.31, 1.0), Cost(41.5 * 1.31, 41.5 * 1.31 / 288)
    assert hsd.bytes == pytest.approx(0.189, rel=0.01)
    assert speedup_of_sums(plain, hsd, device("a100"), "bf16") == pytest.approx(2.81, abs=0.01)
