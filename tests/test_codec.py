"""The codec: exact bytes of tokens, for both families of tokenizers."""

from __future__ import annotations

import json
from functools import cache

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import AddedToken, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hsdkit.decoding.codec import TextStream, TokenizerCodec
from hsdkit.errors import TargetError

TEXT = (
    "The quick brown fox — naïve café, 中文字符 and 日本語, 👩‍👧 emoji.\n\n<table><tr><td>1</td></tr></table>\nהטקסט "
    * 3
)


@cache
def byte_level(vocabulary: int = 400) -> PreTrainedTokenizerFast:
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    backend.train_from_iterator(
        [TEXT], trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
    )
    backend.add_special_tokens([AddedToken("<|end|>", special=True, normalized=False)])
    backend.add_tokens([AddedToken("<td>", normalized=False)])
    return PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>")


@cache
def sentencepiece(prefix: str) -> PreTrainedTokenizerFast:
    """Llama style, with the space before the text from the normalizer (`Prepend`) or from `Metaspace`."""
    backend = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    replace = normalizers.Replace(" ", "▁")
    if prefix == "normalizer":
        backend.normalizer = normalizers.Sequence([normalizers.Prepend("▁"), replace])
    else:
        backend.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=False)
    backend.decoder = decoders.Sequence(
        [decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse(), decoders.Strip(" ", 1, 0)]
    )
    special = ["<unk>", "<s>", "</s>", *(f"<0x{byte:02X}>" for byte in range(256))]
    trainer = trainers.BpeTrainer(
        vocab_size=400,
        special_tokens=special,
        initial_alphabet=list("▁abcdefghijklmnopqrstuvwxyz"),
        show_progress=False,
    )
    backend.train_from_iterator(["the quick brown fox jumps over the lazy dog"] * 2, trainer)
    # Training lists the byte tokens as special; in a real tokenizer they are ordinary entries of the model.
    state = json.loads(backend.to_str())
    state["added_tokens"] = [entry for entry in state["added_tokens"] if not entry["content"].startswith("<0x")]
    return PreTrainedTokenizerFast(tokenizer_object=Tokenizer.from_str(json.dumps(state)), eos_token="</s>")


TOKENIZERS = {
    "byte-level": byte_level,
    "sentencepiece, prefix in the normalizer": lambda: sentencepiece("normalizer"),
    "sentencepiece, prefix in the pre-tokenizer": lambda: sentencepiece("pre_tokenizer"),
}


@pytest.mark.parametrize("family", TOKENIZERS)
@given(text=st.text() | st.text(alphabet="ab 中é👩\n▁<td>") | st.just(TEXT))
@settings(max_examples=60)
def test_the_bytes_of_the_tokens_are_the_bytes_of_the_text(family: str, text: str) -> None:
    if family != "byte-level":
        text = text.replace("▁", "")  # there, `▁` and the space are one token
    codec = TokenizerCodec(TOKENIZERS[family]())
    tokens = codec.encode(text)
    assert b"".join(map(codec.token_bytes, tokens)) == text.encode()
    assert codec.text(tokens) == text


@pytest.mark.parametrize("family", TOKENIZERS)
@given(data=st.data())
@settings(max_examples=60)
def test_pieces_join_to_the_text_whatever_the_tokens(family: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[family]()
    codec = TokenizerCodec(tokenizer)
    tokens = data.draw(st.lists(st.integers(0, len(tokenizer) - 1), max_size=30))
    stream = TextStream(codec)
    pieces = [stream.push((token,)) for token in tokens]
    assert "".join(pieces) + stream.flush() == codec.text(tokens)


def test_special_tokens_have_no_bytes_and_are_never_encoded() -> None:
    codec = TokenizerCodec(byte_level())
    end = byte_level().eos_token_id
    assert codec.token_bytes(end) == b""
    tokens = codec.encode("a<|end|>b")
    assert end not in tokens
    assert codec.text(tokens) == "a<|end|>b"


def test_added_tokens_that_are_text_keep_their_bytes() -> None:
    codec = TokenizerCodec(byte_level())
    (token,) = codec.encode("<td>")
    assert codec.token_bytes(token) == b"<td>"


def test_ids_outside_the_vocabulary_have_no_bytes() -> None:
    codec = TokenizerCodec(byte_level())
    assert codec.token_bytes(10**6) == b""
    assert codec.token_bytes(-1) == b""


def test_earlier_calls_of_the_tokenizer_do_not_shorten_or_pad_the_encoding() -> None:
    tokenizer = byte_level()
    tokenizer.pad_token = "<|end|>"
    tokenizer(["long text " * 9, "x"], truncation=True, max_length=4, padding="max_length")
    codec = TokenizerCodec(tokenizer)
    assert codec.text(codec.encode(TEXT)) == TEXT


def test_a_character_cut_between_tokens_comes_out_whole() -> None:
    codec = TokenizerCodec(byte_level())
    tokens = codec.encode("x\U0001f9ff\U0001f9ffy")
    stream = TextStream(codec)
    seen = [stream.push([token]) for token in tokens]
    assert "".join(seen) + stream.flush() == "x\U0001f9ff\U0001f9ffy"
    assert "\ufffd" not in "".join(seen)
    assert stream.flush() == ""


def test_a_tokenizer_without_exact_bytes_is_refused() -> None:
    backend = Tokenizer(models.WordPiece({"[UNK]": 0, "a": 1}, unk_token="[UNK]"))
    backend.decoder = decoders.WordPiece()
    with pytest.raises(TargetError, match="byte-level BPE and SentencePiece"):
        TokenizerCodec(PreTrainedTokenizerFast(tokenizer_object=backend))
