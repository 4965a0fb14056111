"""Metrics on words: BLEU and METEOR (nltk), precision, recall and F1 of the sets of words."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache
from typing import Any

_CHINESE = re.compile("[一-龥]")


def has_chinese(text: str) -> bool:
    return _CHINESE.search(text) is not None


def words(text: str, chinese: bool) -> list[str]:
    """Words between white space; with `chinese` those that jieba cuts, white space being words too."""
    if not chinese:
        return text.split()
    import logging

    import jieba

    jieba.setLogLevel(logging.WARNING)
    return list(jieba.lcut(text))


def bleu(reference: Sequence[str], hypothesis: Sequence[str]) -> float:
    """Sentence BLEU with n-grams up to 4, not smoothed."""
    import warnings

    from nltk.translate.bleu_score import sentence_bleu

    with warnings.catch_warnings():  # of hypotheses that share no n-gram of some length
        warnings.simplefilter("ignore")
        return float(sentence_bleu([list(reference)], list(hypothesis)))


def meteor(reference: Sequence[str], hypothesis: Sequence[str]) -> float:
    """METEOR of nltk: exact words, stems, and synonyms where `has_wordnet()`."""
    from nltk.translate.meteor_score import meteor_score

    net = _wordnet() or _NoSynonyms()
    return float(meteor_score([list(reference)], list(hypothesis), wordnet=net))


def has_wordnet() -> bool:
    """Whether WordNet, which METEOR takes synonyms from, is among nltk's data."""
    return _wordnet() is not None


def precision_recall_f1(reference: Sequence[str], hypothesis: Sequence[str]) -> tuple[float, float, float]:
    """Of the sets of words; 0 where one is empty."""
    expected, given = set(reference), set(hypothesis)
    common = len(expected & given)
    precision = common / len(given) if given else 0.0
    recall = common / len(expected) if expected else 0.0
    return precision, recall, 2 * precision * recall / (precision + recall) if common else 0.0


class _NoSynonyms:
    """Takes WordNet's place: knows no word."""

    @staticmethod
    def synsets(word: str) -> list[Any]:
        return []


@cache
def _wordnet() -> Any:
    from nltk.corpus import wordnet

    try:
        wordnet.ensure_loaded()
    except LookupError:
        return None
    return wordnet
