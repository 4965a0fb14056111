"""Decoding without a model: the target's output is known, and only the number of steps it takes is of interest."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import cache
from pathlib import Path

from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from hsdkit.decoding.codec import TokenizerCodec
from hsdkit.decoding.protocol import Matcher
from hsdkit.decoding.tree import PrefixTree

#: What an OCR engine takes one character for.
_PAIRS = "0O O0 1l lI I1 ij 5S S5 8B B8 rn nr ce ec ao oa uv vu gq qg tf ft hb bh dl DO PF RP EF ., ,."
MISREAD = {pair[0]: pair[1] for pair in _PAIRS.split()} | {"m": "rn"}


def misread(text: str, errors: float, rng: random.Random) -> str:
    """The text with that share of its characters replaced (65%), dropped (15%) or followed by one too many (20%)."""
    read = []
    for char in text:
        draw = rng.random()
        if draw < errors * 0.65:
            read.append(MISREAD.get(char, rng.choice("etaoinsr")))
        elif draw < errors * 0.8:
            continue
        elif draw < errors:
            read.append(char + rng.choice(["'", " ", ".", char]))
        else:
            read.append(char)
    return "".join(read)


def tokens_per_step(matcher: Matcher | None, output: Sequence[int], nodes: int = 127) -> float:
    """Tokens a step when a target that writes `output` verifies at most `nodes` draft tokens a step. The first token is
    the prefill's."""
    matcher_update = matcher.update if matcher is not None else lambda *_: None
    matcher_update(output[:1], 0, "")
    done, steps = 1, 0
    while done < len(output):
        candidates = matcher.propose(nodes) if matcher is not None else []
        tree = PrefixTree(candidates, nodes).pack(output[done - 1], nodes)
        node, accepted = 0, 0
        while done + accepted < len(output) and (child := tree.child(node, output[done + accepted])) is not None:
            node, accepted = child, accepted + 1
        matcher_update(output[done : done + accepted + 1], accepted, tree.source(node))
        done += accepted + 1
        steps += 1
    return (len(output) - 1) / max(steps, 1)


@cache
def licence() -> tuple[str, ...]:
    """Paragraphs of plain English that every checkout has: the licence."""
    text = (Path(__file__).parent.parent / "LICENSE").read_text()
    paragraphs = (" ".join(block.split()) for block in text.split("\n\n"))
    return tuple(paragraph for paragraph in paragraphs if len(paragraph) > 60)


@cache
def subwords(vocabulary: int = 1200) -> TokenizerCodec:
    """A byte-level BPE tokenizer trained on that text: about 3.5 characters a token."""
    backend = Tokenizer(models.BPE())
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=vocabulary, initial_alphabet=alphabet, show_progress=False)
    backend.train_from_iterator(licence(), trainer)
    backend.add_special_tokens(["<|end|>"])
    return TokenizerCodec(PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>"))


@cache
def characters() -> TokenizerCodec:
    """One token a byte, and one for a blank line: the embedded model's way."""
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    backend = Tokenizer(models.BPE({char: index for index, char in enumerate(alphabet)}, []))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    backend.decoder = decoders.ByteLevel()
    backend.add_special_tokens(["<|end|>"])
    backend.add_tokens(["\n\n"])
    return TokenizerCodec(PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<|end|>"))
