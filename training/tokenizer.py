"""A byte-level BPE of two thousand tokens, trained on the generator's own text.

Table tags and the signs of LaTeX are tokens of their own.
"""

import random
from collections.abc import Iterator
from pathlib import Path

from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import PreTrainedTokenizerFast

from training.pages import PageSpec, draw_page
from training.symbols import (
    ANCHORS,
    END,
    FORMULA,
    IMAGE,
    PAD,
    SPECIAL,
    START,
    STRUCTURE,
    VIDEO,
    VISION_END,
    VISION_START,
)
from training.words import COMMON, Writer

VOCABULARY = 2048

# The model has one task, so text parts of the user's message are ignored.
CHAT_TEMPLATE = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{% if m['content'] is not string %}{% for c in m['content'] %}"
    "{% if c['type'] == 'image' %}" + "".join(ANCHORS) + "<|vision_start|><|image_pad|><|vision_end|>"
    "{% endif %}{% endfor %}{% endif %}"
    "{% elif m['role'] == 'assistant' %}<|im_start|>"
    "{{ m['content'] if m['content'] is string else m['content'][0]['text'] }}<|im_end|>{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<|im_start|>{% endif %}"
)


def train_tokenizer(pages: int = 1500, seed: int = 0) -> Tokenizer:
    """Trains the BPE on the Markdown of `pages` pages and on plain sentences of common and dictionary words."""
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [pre_tokenizers.Digits(individual_digits=True), pre_tokenizers.ByteLevel(add_prefix_space=False)]
    )
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    trainer = trainers.BpeTrainer(
        vocab_size=VOCABULARY - len(SPECIAL) - len(STRUCTURE) - len(FORMULA),
        initial_alphabet=alphabet,
        min_frequency=2,
        show_progress=False,
    )
    tokenizer.train_from_iterator(_corpus(pages, seed), trainer)
    tokenizer.add_special_tokens([AddedToken(s, special=True, normalized=False) for s in SPECIAL])
    tokenizer.add_tokens([AddedToken(s, special=False, normalized=False) for s in (*STRUCTURE, *FORMULA)])
    return tokenizer


def _corpus(pages: int, seed: int) -> Iterator[str]:
    rng = random.Random(seed)
    prose = Writer(rng, "train", "prose")
    for _ in range(pages):
        yield draw_page(PageSpec(320, 320, degraded=False, pdf=False), rng).text
        yield " ".join(prose.prose(40))
        yield " ".join(rng.choices(COMMON, k=20))


def wrap_tokenizer(tokenizer: Tokenizer) -> PreTrainedTokenizerFast:
    """The same tokenizer as transformers loads it, with the names a vision-language processor asks for."""
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        bos_token=START,
        eos_token=END,
        pad_token=PAD,
        extra_special_tokens={
            "image_token": IMAGE,
            "video_token": VIDEO,
            "vision_start_token": VISION_START,
            "vision_end_token": VISION_END,
        },
        clean_up_tokenization_spaces=False,
        chat_template=CHAT_TEMPLATE,
    )


def load_tokenizer(path: Path) -> Tokenizer:
    """Loads the trained tokenizer; trains it first if there is none yet."""
    if not path.exists():
        path.parent.mkdir(parents=True, exist_ok=True)
        train_tokenizer().save(str(path))
    return Tokenizer.from_file(str(path))


def loosened(tokenizer: Tokenizer, share: float = 0.15) -> Tokenizer:
    """A copy that leaves out a share of the merges at random."""
    copy = Tokenizer.from_str(tokenizer.to_str())
    copy.model.dropout = share
    return copy
