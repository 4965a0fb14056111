"""The acceptance walk: the greedy rule, tau on probabilities, ends, and processors that depend on the path."""

from __future__ import annotations

import itertools
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from transformers import LogitsProcessorList, NoRepeatNGramLogitsProcessor, RepetitionPenaltyLogitsProcessor

from hsdkit.decoding.acceptance import Verdicts, walk
from hsdkit.decoding.protocol import Candidate
from hsdkit.decoding.tree import PackedTree, PrefixTree

V = 10


def tree(*chains: list[int]) -> PackedTree:
    return PrefixTree([Candidate(list(c), "x", 0.9, 0.9) for c in chains], 20).pack(0, 100)


def verdicts(logits: torch.Tensor) -> Verdicts:
    return Verdicts(logits, logits.argmax(-1).tolist())


def says(*tokens: int) -> torch.Tensor:
    """(K, V) logits whose argmax at node k is tokens[k]."""
    logits = torch.zeros(len(tokens), V)
    logits[range(len(tokens)), list(tokens)] = 5.0
    return logits


def test_the_models_choice_is_followed_and_its_own_token_ends_the_path() -> None:
    assert walk(tree([1, 2, 3], [4, 5]), verdicts(says(4, 0, 0, 0, 5, 8))) == ([0, 4, 5], 8)


def test_a_full_rejection_still_gives_the_bonus_token() -> None:
    assert walk(tree([1, 2]), verdicts(says(3, 2, 1))) == ([0], 3)


def test_an_end_token_in_the_path_stops_there_without_a_bonus() -> None:
    assert walk(tree([1, 2, 3]), verdicts(says(1, 2, 3, 4)), eos={2}) == ([0, 1, 2], None)


def test_of_equal_logits_the_first_token_wins_as_in_generate() -> None:
    logits = torch.zeros(3, V)
    assert walk(tree([1], [0]), verdicts(logits)) == ([0, 2], 0)
    assert walk(tree([1]), verdicts(logits[:2])) == ([0], 0)  # an equal that is not the argmax is not exact


@pytest.mark.parametrize("offset", [-300.0, 0.0, 300.0])
@pytest.mark.parametrize(("probability", "accepted"), [(0.36, True), (0.38, True), (0.37, True), (0.30, False)])
def test_tau_compares_probabilities_not_logits(offset: float, probability: float, accepted: bool) -> None:
    """tau=0.75: the draft's token needs 0.75 times the best one's probability, wherever the logits lie."""
    best = 0.45
    rest = (1 - best - probability) / (V - 2)
    row = torch.full((V,), math.log(rest))
    row[3], row[1] = math.log(best), math.log(probability)
    logits = torch.stack((row + offset, says(7)[0]))
    expected = ([0, 1], 7) if accepted else ([0], 3)
    assert walk(tree([1]), verdicts(logits), tau=0.75) == expected


def test_the_likeliest_child_is_the_one_tried() -> None:
    logits = says(9, 6, 6)
    logits[0, 1], logits[0, 2] = 4.8, 4.9
    assert walk(tree([1], [2]), verdicts(logits), tau=0.75) == ([0, 2], 6)


@given(st.lists(st.lists(st.integers(0, V - 1), min_size=1, max_size=6), max_size=6), st.integers(0, 10_000))
def test_with_tau_1_the_walk_is_greedy_decoding(chains: list[list[int]], seed: int) -> None:
    packed = tree(*chains)
    logits = torch.randn(len(packed), V, generator=torch.Generator().manual_seed(seed))
    path, bonus = walk(packed, verdicts(logits))
    node = 0
    for child in path[1:]:
        assert child in packed.children(node)
        assert packed.tokens[child] == int(logits[node].argmax())
        node = child
    assert bonus == int(logits[node].argmax())
    assert packed.child(node, bonus) is None


@given(
    st.lists(st.lists(st.integers(0, V - 1), min_size=1, max_size=5), min_size=1, max_size=5),
    st.integers(0, 10_000),
    st.sampled_from([0.9, 0.75, 0.3]),
)
def test_with_tau_below_1_every_accepted_child_passes_the_rule_and_no_other_was_likelier(
    chains: list[list[int]], seed: int, tau: float
) -> None:
    packed = tree(*chains)
    probabilities = torch.randn(len(packed), V, generator=torch.Generator().manual_seed(seed)).softmax(-1)
    path, bonus = walk(packed, verdicts(probabilities.log()), tau)
    for node, child in itertools.pairwise(path):
        row = probabilities[node]
        assert row[packed.tokens[child]] >= tau * row.max() - 1e-6
        assert row[packed.tokens[child]] == max(row[packed.tokens[c]] for c in packed.children(node))
    last = probabilities[path[-1]]
    assert all(last[packed.tokens[c]] < tau * last.max() + 1e-6 for c in packed.children(path[-1]))
    assert bonus == int(last.argmax())


def test_processors_see_prompt_output_and_path() -> None:
    """A repetition penalty turns each choice away from what the path already holds, and so does an n-gram ban."""
    context = [1, 2, 3]
    processors = LogitsProcessorList([RepetitionPenaltyLogitsProcessor(2.0), NoRepeatNGramLogitsProcessor(2)])
    packed = tree([4, 5, 6], [5, 6])
    logits = torch.randn(len(packed), V, generator=torch.Generator().manual_seed(3)).abs()
    logits[0, 4] = logits[1, 5] = 9.0  # 4 then 5; after them the penalty decides
    path, bonus = walk(packed, Verdicts(logits, logits.argmax(-1).tolist(), processors, context))
    assert path[:3] == [0, 1, 2]
    tokens: list[int] = []
    for node, token in zip(path, [*(packed.tokens[n] for n in path[1:]), bonus], strict=True):
        scores = processors(torch.tensor([context + tokens]), logits[node, None].clone())
        assert token == int(scores.argmax())
        tokens.append(int(token or 0))
