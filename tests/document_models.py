"""Tiny random checkpoints of document parsers, with the token names, chat templates and files of the published ones."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import transformers
from models import TRAINING_TEXT, hunyuan_of, make_tokenizer, mrope, random, text_config
from tokenizers import AddedToken, Tokenizer, decoders, normalizers, trainers
from tokenizers import models as tokenizer_models

#: All templates walk over turns whose content is text, or a list of images and texts.
_PARTS = (
    "{{% if m['content'] is string %}}{{{{ m['content'] }}}}{{% else %}}{{% for c in m['content'] %}}"
    "{{% if c['type'] == 'image' %}}{image}{{% else %}}{{{{ c['text'] }}}}{{% endif %}}{{% endfor %}}{{% endif %}}"
)


def template(image: str, before: str, after: str, answer: str, begin: str = "") -> str:
    """A chat template: `begin`, then each turn's content between `before` and `after` (Jinja; `m` is the turn)."""
    turns = f"{{% for m in messages %}}{before}{_PARTS.format(image=image)}{after}{{% endfor %}}"
    return f"{begin}{turns}{{% if add_generation_prompt %}}{answer}{{% endif %}}"


def save(folder: Path, model: Any, tokenizer: Any, images: Any = None, image_class: str = "", **processor: Any) -> Path:
    """As published: processors by the names their files have, `processor` as the content of processor_config.json."""
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    if images is not None:
        images.save_pretrained(folder)
        _change(folder / "preprocessor_config.json", image_processor_type=image_class)
    if processor:
        (folder / "processor_config.json").write_text(json.dumps(processor))
    return folder


def hunyuanocr(folder: Path) -> Path:
    mark = "<｜hy_place▁holder▁no▁{}｜>".format
    specials = ["<｜hy_▁pad▁｜>", "<｜hy_begin▁of▁sentence｜>", "<｜hy_User｜>", "<｜hy_Assistant｜>"]
    specials += [mark(n) for n in (2, 3, 100, 101, 102, 103)]
    before = "{% if m['role'] == 'user' %}{% endif %}"
    after = "{% if m['role'] == 'system' %}" + mark(3) + "{% else %}<｜hy_User｜>{% endif %}"
    tokenizer = make_tokenizer(
        specials=specials,
        template=template(mark(100) + mark(102) + mark(101), before, after, "", "<｜hy_begin▁of▁sentence｜>"),
        eos=mark(2),
        pad="<｜hy_▁pad▁｜>",
        extra_special_tokens={
            "image_start_token": mark(100),
            "image_end_token": mark(101),
            "image_token": mark(102),
        },
    )
    model, images = hunyuan_of(
        tokenizer,
        image_token_id=tokenizer.image_token_id,
        im_start_id=tokenizer.image_start_token_id,
        im_end_id=tokenizer.image_end_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    save(folder, model, tokenizer, images, "HunYuanVLImageProcessor", processor_class="HunYuanVLProcessor")
    # Published before `transformers` had the model: rotary positions by their older names.
    path = folder / "config.json"
    text = json.loads(path.read_text())["text_config"]
    rope = text.pop("rope_parameters")
    theta, sections = rope.pop("rope_theta"), rope.pop("mrope_section")
    rope |= {"type": "xdrope", "xdrope_section": sections}
    del rope["rope_type"]
    _change(path, text_config=text | {"rope_theta": theta, "rope_scaling": rope})
    return folder


def paddleocr_vl(folder: Path) -> Path:
    specials = ["<|begin_of_sentence|>", "<|IMAGE_START|>", "<|IMAGE_PLACEHOLDER|>", "<|IMAGE_END|>"]
    specials += ["<fcel>", "<ecel>", "<lcel>", "<ucel>", "<xcel>", "<nl>"]
    tokenizer = _sentencepiece(
        specials,
        chat_template=template(
            "<|IMAGE_START|><|IMAGE_PLACEHOLDER|><|IMAGE_END|>",
            "{% if m['role'] == 'user' %}User: {% endif %}",
            "\n",
            "Assistant: ",
            "<|begin_of_sentence|>",
        ),
        extra_special_tokens={"image_token": "<|IMAGE_PLACEHOLDER|>"},
    )
    config = transformers.PaddleOCRVLConfig(
        text_config=text_config(tokenizer, head_dim=16, rope_parameters=mrope([2, 3, 3])),
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "image_size": 56,
            "patch_size": 14,
            "spatial_merge_size": 2,
        },
        image_token_id=tokenizer.image_token_id,
        vision_start_token_id=tokenizer.convert_tokens_to_ids("<|IMAGE_START|>"),
        vision_end_token_id=tokenizer.convert_tokens_to_ids("<|IMAGE_END|>"),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    images = transformers.PaddleOCRVLImageProcessorPil(
        patch_size=14, merge_size=2, size={"shortest_edge": 3136, "longest_edge": 18816}
    )
    model = random(transformers.PaddleOCRVLForConditionalGeneration, config, seed=2)
    save(folder, model, tokenizer, images, "PaddleOCRVLImageProcessor", processor_class="PaddleOCRVLProcessor")
    # Published with code beside it, although `transformers` has the model, and with bounds by their older names.
    _change(folder / "config.json", auto_map={"AutoConfig": "configuration_paddleocr_vl.PaddleOCRVLConfig"})
    code = {"AutoImageProcessor": "image_processing_paddleocr_vl.PaddleOCRVLImageProcessor"}
    _change(folder / "preprocessor_config.json", auto_map=code, size=None, min_pixels=3136, max_pixels=18816)
    return folder


def glm_ocr(folder: Path) -> Path:
    specials = ["<|endoftext|>", "[gMASK]", "<sop>", "<|system|>", "<|user|>", "<|assistant|>"]
    specials += ["<|begin_of_image|>", "<|end_of_image|>", "<|image|>", "<|video|>"]
    tokenizer = make_tokenizer(
        specials=specials,
        template=template(
            "<|begin_of_image|><|image|><|end_of_image|>",
            "<|{{ m['role'] }}|>\n",
            "",
            "<|assistant|>\n",
            "[gMASK]<sop>",
        ),
        eos="<|endoftext|>",
        pad="<|endoftext|>",
    )
    ids = tokenizer.convert_tokens_to_ids
    config = transformers.GlmOcrConfig(
        text_config=text_config(tokenizer, head_dim=16, rope_parameters=mrope([2, 3, 3], partial_rotary_factor=1.0)),
        vision_config={
            "depth": 2,
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_heads": 4,
            "out_hidden_size": 64,
            "patch_size": 14,
            "image_size": 56,
            "spatial_merge_size": 2,
            "temporal_patch_size": 2,
        },
        image_token_id=ids("<|image|>"),
        video_token_id=ids("<|video|>"),
        image_start_token_id=ids("<|begin_of_image|>"),
        image_end_token_id=ids("<|end_of_image|>"),
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    images = transformers.Glm46VImageProcessorPil(
        patch_size=14, merge_size=2, temporal_patch_size=2, size={"shortest_edge": 3136, "longest_edge": 18816}
    )
    model = random(transformers.GlmOcrForConditionalGeneration, config, seed=1)
    model.generation_config.eos_token_id = [ids("<|endoftext|>"), ids("<|user|>")]
    return save(folder, model, tokenizer, images, "Glm46VImageProcessor", processor_class="Glm46VProcessor")


def lightonocr(folder: Path) -> Path:
    specials = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", "<|vision_pad|>", "<|vision_end|>", "<|image_pad|>"]
    tokenizer = make_tokenizer(
        specials=specials,
        template=template("<|image_pad|>", "<|im_start|>{{ m['role'] }}\n", "<|im_end|>\n", "<|im_start|>assistant\n"),
        extra_special_tokens={
            "image_token": "<|image_pad|>",
            "image_break_token": "<|vision_pad|>",
            "image_end_token": "<|vision_end|>",
        },
    )
    config = transformers.LightOnOcrConfig(
        text_config=text_config(tokenizer, head_dim=16) | {"model_type": "qwen3"},
        vision_config={
            "model_type": "pixtral",
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_attention_heads": 4,
            "head_dim": 8,
            "num_hidden_layers": 2,
            "image_size": 224,
            "patch_size": 14,
        },
        spatial_merge_size=2,
        image_token_id=tokenizer.image_token_id,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
    )
    images = transformers.PixtralImageProcessorPil(patch_size={"height": 28, "width": 28}, size={"longest_edge": 168})
    model = random(transformers.LightOnOcrForConditionalGeneration, config, seed=5)
    options = {"processor_class": "LightOnOcrProcessor", "patch_size": 14, "spatial_merge_size": 2}
    save(folder, model, tokenizer, images, "PixtralImageProcessor", **options)
    _change(folder / "config.json", model_type="mistral3")  # as published
    return folder


def granite_docling(folder: Path) -> Path:
    specials = ["<|pad|>", "<|start_of_role|>", "<|end_of_role|>", "<|end_of_text|>"]
    specials += ["<fake_token_around_image>", "<image>", "<global-img>", "<end_of_utterance>"]
    specials += [f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7)]
    specials += [f"<loc_{n}>" for n in range(501)]
    specials += ["<doctag>", "</doctag>", "<text>", "</text>", "<otsl>", "</otsl>", "<fcel>", "<ched>", "<nl>"]
    tokenizer = make_tokenizer(
        specials=specials,
        template=template(
            "<image>",
            "<|start_of_role|>{{ m['role'] }}<|end_of_role|>",
            "<|end_of_text|>\n",
            "<|start_of_role|>assistant<|end_of_role|>",
        ),
        eos="<|end_of_text|>",
        pad="<|pad|>",
    )
    config = transformers.Idefics3Config(
        text_config=text_config(tokenizer) | {"model_type": "llama"},
        vision_config={
            "hidden_size": 32,
            "intermediate_size": 64,
            "num_attention_heads": 4,
            "num_hidden_layers": 2,
            "image_size": 64,
            "patch_size": 8,
        },
        scale_factor=4,
        image_token_id=tokenizer.convert_tokens_to_ids("<image>"),
    )
    images = transformers.Idefics3ImageProcessorPil(
        size={"longest_edge": 128}, max_image_size={"longest_edge": 64}, do_image_splitting=True
    )
    model = random(transformers.Idefics3ForConditionalGeneration, config, seed=4)
    model.generation_config.eos_token_id = tokenizer.eos_token_id
    options = {"processor_class": "Idefics3Processor", "image_seq_len": 4}
    return save(folder, model, tokenizer, images, "Idefics3ImageProcessor", **options)


def _change(path: Path, **values: Any) -> None:
    """Set values of a JSON file; None drops one."""
    changed = json.loads(path.read_text()) | values
    path.write_text(json.dumps({key: value for key, value in changed.items() if value is not None}))


def _sentencepiece(specials: list[str], **more: Any) -> transformers.PreTrainedTokenizerBase:
    """BPE over characters with byte fallback and `▁` for a space, as ERNIE's."""
    bpe = Tokenizer(tokenizer_models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    bpe.normalizer = normalizers.Replace(" ", "▁")
    bpe.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    first = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    bpe.train_from_iterator(
        [TRAINING_TEXT], trainers.BpeTrainer(vocab_size=420, special_tokens=first, show_progress=False)
    )
    # Training lists the byte tokens as special; in a real tokenizer they are ordinary entries of the model.
    state = json.loads(bpe.to_str())
    state["added_tokens"] = [entry for entry in state["added_tokens"] if not entry["content"].startswith("<0x")]
    bpe = Tokenizer.from_str(json.dumps(state))
    bpe.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in specials])
    return transformers.PreTrainedTokenizerFast(
        tokenizer_object=bpe, bos_token="<s>", eos_token="</s>", pad_token="<unk>", unk_token="<unk>", **more
    )


DOCUMENT_MODELS: dict[str, Callable[[Path], Path]] = {
    "hunyuanocr": hunyuanocr,
    "paddleocr_vl": paddleocr_vl,
    "glm_ocr": glm_ocr,
    "lightonocr": lightonocr,
    "granite_docling": granite_docling,
}
