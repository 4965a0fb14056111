"""`matching=suffix`: trees of arctic-inference as candidates. What needs the library is skipped where it is missing."""

from __future__ import annotations

from importlib.util import find_spec

import pytest
from hypothesis import given
from hypothesis import strategies as st
from simulate import subwords

from hsdkit.decoding.matching import build
from hsdkit.decoding.matching.suffix import chains_of
from hsdkit.decoding.protocol import Matcher
from hsdkit.decoding.tree import PrefixTree
from hsdkit.errors import ConfigError
from hsdkit.protocols import DecodeSettings

SUFFIX = DecodeSettings(matching="suffix")
missing = find_spec("arctic_inference") is None
needs_library = pytest.mark.skipif(missing, reason="arctic-inference is not installed: pip install hsdkit[suffix]")


def test_a_tree_is_its_chains_likeliest_first():
    #  1 - 2 - 3
    #   \- 4 - 5      6
    tokens, parents = [1, 2, 6, 3, 4, 5], [-1, 0, -1, 1, 0, 4]
    shares = [0.8, 0.5, 0.2, 0.4, 0.3, 0.3]
    found = chains_of(tokens, parents, shares)
    assert [(c.tokens, c.fork, c.first, c.last) for c in found] == [
        ([1, 2, 3], 0, 0.8, 0.4),
        ([1, 4, 5], 1, 0.3, 0.3),
        ([6], 0, 0.2, 0.2),
    ]
    assert chains_of([], [], []) == []


@given(st.lists(st.integers(0, 10**6), max_size=40), st.randoms(use_true_random=False))
def test_chains_hold_every_node_of_any_tree_once(numbers: list[int], dice):
    parents = [dice.randrange(-1, i) for i in range(len(numbers))]
    shares: list[float] = []
    for parent in parents:
        shares.append((shares[parent] if parent >= 0 else 1.0) * dice.uniform(0.1, 1))
    paths = []
    for i, parent in enumerate(parents):
        paths.append([*(paths[parent] if parent >= 0 else []), numbers[i]])
    chains = chains_of(numbers, parents, shares)
    own = [c.tokens[: k + 1] for c in chains for k in range(c.fork, len(c.tokens))]
    assert sorted(own) == sorted(paths)
    assert all(c.last <= c.first for c in chains)


@pytest.mark.skipif(not missing, reason="arctic-inference is installed")
def test_without_the_library_it_is_refused_with_the_command_that_installs_it():
    with pytest.raises(ConfigError, match=r'matching=suffix: needs arctic-inference.*pip install "hsdkit\[suffix\]"'):
        build(SUFFIX, ("a draft",), subwords())


def matcher(*drafts: str, own: bool = True) -> Matcher:
    built = build(DecodeSettings(matching="suffix", self_lookup=own), drafts, subwords())
    assert built is not None
    return built


@needs_library
def test_what_follows_the_longest_suffix_in_the_draft_is_proposed():
    codec = subwords()
    text = codec.encode("Licensed under the Apache License, Version 2.0 (the License);")
    m = matcher("Licensed under the Apache License, Version 2.0 (the License);")
    assert m.propose(20) == []
    m.update(text[:6], 0, "")
    best = m.propose(20)[0]
    assert best.source == "suffix"
    assert best.tokens == text[6 : 6 + len(best.tokens)]
    assert len(best.tokens) >= 5
    assert 0 < best.first < 1
    assert 0 < best.rest < 1


@needs_library
def test_regions_that_go_on_differently_make_a_tree():
    known = "Licensed under the Apache License"
    m = matcher(f"{known}, Version 2", f"{known} is free", f"{known} is old", f"{known} is free")
    m.update(subwords().encode(known), 0, "")
    tree = PrefixTree(m.propose(20), 20)
    assert len(tree.branches) > 1
    assert sorted(tree.survival.tolist(), reverse=True)[0] < 1


@needs_library
def test_the_own_text_is_looked_up_unless_told_otherwise():
    codec = subwords()
    text = codec.encode("The harbour was closed. The harbour")
    for own in (True, False):
        m = matcher("something else", own=own)
        for token in text:
            m.update([token], 0, "")
        proposed = m.propose(8)
        assert bool(proposed) is own
    assert build(DecodeSettings(matching="suffix", self_lookup=False), (), codec) is None


@needs_library
def test_a_draft_that_fails_is_trusted_less():
    codec = subwords()
    text = codec.encode("Licensed under the Apache License, Version 2.0 (the License);")
    m = matcher("Licensed under the Apache License, Version 2.0 (the License);")
    m.update(text[:6], 0, "")
    before = m.propose(20)[0].first
    for _ in range(10):
        m.propose(20)
        m.update(text[:6], 0, "")
    assert m.propose(20)[0].first < before


@needs_library
def test_limits_are_kept_and_the_same_is_proposed_again():
    codec = subwords()
    text = codec.encode("a b c d e f g h " * 20)

    def run() -> list:
        m = matcher("a b c d e f g h " * 20)
        offered = []
        for i, token in enumerate(text[:60]):
            m.update([token], 0, "")
            offered.append(m.propose(i % 12))
        return offered

    first = run()
    assert all(len(c.tokens) <= i % 12 for i, step in enumerate(first) for c in step)
    assert run() == first
