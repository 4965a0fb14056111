"""The prefix tree against a plain trie, and the packed sequence against its definition."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from hsdkit.decoding.protocol import Candidate
from hsdkit.decoding.tree import PackedTree, PrefixTree

ROOT = 99
EOS = 7

candidates = st.lists(
    st.builds(
        Candidate,
        tokens=st.lists(st.integers(0, 7), max_size=12),
        source=st.sampled_from("abc"),
        first=st.floats(0.01, 1),
        rest=st.floats(0.01, 1),
    ),
    max_size=8,
)


def paths(tree: PackedTree) -> dict[tuple[int, ...], int]:
    """Token path from the root of every node, found through `children` alone."""
    found: dict[tuple[int, ...], int] = {}
    stack: list[tuple[int, tuple[int, ...]]] = [(0, ())]
    while stack:
        node, path = stack.pop()
        for child in tree.children(node):
            assert tree.child(node, tree.tokens[child]) == child
            found[(*path, tree.tokens[child])] = child
            stack.append((child, (*path, tree.tokens[child])))
    return found


def survivals(tree: PrefixTree) -> dict[tuple[int, ...], float]:
    """Survival probability of every node by its path, read off the branches."""
    found: dict[tuple[int, ...], float] = {}
    runs: list[tuple[int, ...]] = []
    for branch in tree.branches:
        above = () if branch.parent < 0 else runs[branch.parent][: tree.branches[branch.parent].depth + branch.offset]
        runs.append(above + tuple(branch.tokens))
        for k in range(len(branch.tokens)):
            found[runs[-1][: branch.depth + k]] = branch.head * branch.rest**k
    return found


@given(candidates, st.integers(0, 10))
def test_it_holds_every_prefix_once_and_no_end_token(drafts: list[Candidate], limit: int) -> None:
    cut = [draft.tokens[:limit] for draft in drafts]
    cut = [tokens[: tokens.index(EOS)] if EOS in tokens else tokens for tokens in cut]
    want = {tuple(tokens[: depth + 1]) for tokens in cut for depth in range(len(tokens))}
    packed = PrefixTree(drafts, limit, {EOS}).pack(ROOT, 1000)
    assert set(paths(packed)) == want
    assert len(packed) == 1 + len(want)


@given(candidates)
def test_survival_is_what_the_first_candidate_says_and_never_above_the_parents(drafts: list[Candidate]) -> None:
    tree = PrefixTree(drafts, 20)
    found = survivals(tree)
    np.testing.assert_allclose(sorted(found.values()), np.sort(tree.survival), rtol=1e-9)
    for path, survival in found.items():
        assert survival <= found.get(path[:-1], 1.0) * (1 + 1e-9)
    if drafts:
        for depth in range(len(drafts[0].tokens)):
            path = tuple(drafts[0].tokens[: depth + 1])
            np.testing.assert_allclose(found[path], drafts[0].first * drafts[0].rest ** depth, rtol=1e-9)


@given(candidates, st.integers(0, 20))
def test_a_packed_tree_is_linearised_parents_first_with_the_mask_of_ancestors(
    drafts: list[Candidate], nodes: int
) -> None:
    packed = PrefixTree(drafts, 10, {EOS}).pack(ROOT, nodes)
    nodes_by_path = {(): 0, **paths(packed)}
    assert sorted(nodes_by_path.values()) == list(range(len(packed)))
    mask = packed.mask()
    for path, node in nodes_by_path.items():
        ancestors = [nodes_by_path[path[:k]] for k in range(len(path) + 1)]
        assert ancestors == sorted(ancestors)
        assert packed.depths[node] == len(path)
        assert np.flatnonzero(mask[node]).tolist() == ancestors


@given(candidates, st.integers(0, 20))
def test_the_budget_takes_the_likeliest_nodes(drafts: list[Candidate], nodes: int) -> None:
    tree = PrefixTree(drafts, 10, {EOS})
    packed = tree.pack(ROOT, nodes)
    kept = min(nodes, len(tree.survival))
    assert len(packed) == 1 + kept
    if kept == len(tree.survival):
        return
    whole = paths(tree.pack(ROOT, 1000))
    assert set(paths(packed)) <= set(whole)
    # Its expected gain is the best that any choice of that many nodes has.
    by_path = survivals(tree)
    gain = sum(by_path[path] for path in paths(packed))
    np.testing.assert_allclose(gain, np.sort(tree.survival)[::-1][:kept].sum(), rtol=1e-9)


def test_the_first_ranked_chain_lies_directly_behind_the_root() -> None:
    drafts = [Candidate([1, 2, 3, 4], "main", 0.9, 0.9), Candidate([1, 2, 5], "other", 0.5, 0.5)]
    packed = PrefixTree(drafts, 10).pack(ROOT, 10)
    assert packed.tokens == [ROOT, 1, 2, 3, 4, 5]
    assert [packed.source(n) for n in range(6)] == ["", "main", "main", "main", "main", "other"]


def test_forks_are_packed_depth_first() -> None:
    drafts = [
        Candidate([1, 2, 3], "a", 0.9, 0.9),
        Candidate([1, 5], "b", 0.8, 0.8),
        Candidate([1, 2, 6], "c", 0.7, 0.7),
        Candidate([8, 9], "d", 0.6, 0.6),
        Candidate([1, 5, 4], "e", 0.5, 0.5),
    ]
    assert PrefixTree(drafts, 10).pack(ROOT, 10).tokens == [ROOT, 1, 2, 3, 6, 5, 4, 8, 9]


def test_no_candidates_make_a_lone_root() -> None:
    packed = PrefixTree([], 10).pack(ROOT, 10)
    assert (packed.tokens, packed.depths, packed.children(0), packed.child(0, 1)) == ([ROOT], [0], [], None)
    assert packed.mask().tolist() == [[True]]
