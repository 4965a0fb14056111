"""The ragged cache against plain lists of the keys each row should hold."""

from __future__ import annotations

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from hsdkit.decoding.cache import HEADROOM, RaggedCache


def states(rows: int, tokens: int, heads: int = 2, size: int = 3, first: float = 0.0) -> torch.Tensor:
    """(rows, heads, tokens, size) of distinct numbers."""
    count = rows * heads * tokens * size
    return torch.arange(first, first + count, dtype=torch.float32).reshape(rows, heads, tokens, size)


def prompted(lengths: list[int], layers: int = 2) -> tuple[RaggedCache, torch.Tensor]:
    cache = RaggedCache()
    padded = max(lengths)
    cache.begin_prompt(lengths, padded)
    prompt = states(len(lengths), padded)
    for layer in range(layers):
        cache.update(prompt, -prompt, layer)
    return cache, prompt


def test_a_pass_writes_behind_each_rows_own_tokens_over_the_padding() -> None:
    cache, prompt = prompted([4, 2])
    cache.begin(3)
    new = states(2, 3, first=1000)
    keys, values = cache.update(new, -new, 0)
    assert keys.shape == (2, 2, 7, 3)
    assert torch.equal(keys[0], torch.cat((prompt[0], new[0]), 1))
    assert torch.equal(keys[1, :, :5], torch.cat((prompt[1, :, :2], new[1]), 1))
    assert torch.equal(values, -keys)


@settings(max_examples=60)
@given(st.data())
def test_steps_leave_exactly_the_accepted_paths(data: st.DataObject) -> None:
    rows = data.draw(st.integers(1, 3))
    lengths = [data.draw(st.integers(1, 5)) for _ in range(rows)]
    cache, prompt = prompted(lengths)
    expected = [prompt[row, :, :length] for row, length in enumerate(lengths)]
    for step in range(data.draw(st.integers(1, 4))):
        width = data.draw(st.integers(1, 6))
        cache.begin(width)
        new = states(rows, width, first=1000.0 * (step + 1))
        for layer in range(2):
            cache.update(new, -new, layer)
        paths = [[0, *sorted(data.draw(st.sets(st.integers(1, width - 1))))] if width > 1 else [0] for _ in range(rows)]
        cache.keep(paths)
        expected = [torch.cat((old, new[row][:, paths[row]]), 1) for row, old in enumerate(expected)]
        for layer in cache.layers:
            for row, want in enumerate(expected):
                assert torch.equal(layer.keys[row, :, : cache.lengths[row]], want)
                assert torch.equal(layer.values[row, :, : cache.lengths[row]], -want)


def test_a_path_in_place_moves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    cache, _ = prompted([3, 3])
    cache.begin(4)
    new = states(2, 4, first=1000)
    cache.update(new, new, 0)
    monkeypatch.delattr(torch, "tensor")  # what an index of moves would be made with
    cache.keep([[0, 1, 2], [0]])
    assert cache.lengths.tolist() == [6, 4]


def test_growing_keeps_what_is_cached_and_adds_zeros() -> None:
    cache, prompt = prompted([4, 2])
    width = HEADROOM + 1
    cache.begin(width)
    assert cache.capacity >= 4 + width
    new = states(2, width, first=1000)
    keys, _ = cache.update(new, new, 0)
    assert torch.equal(keys[0], torch.cat((prompt[0], new[0]), 1))
    assert not keys[1, :, 2 + width :].any()  # never NaN from uninitialised memory


def test_layers_may_differ_in_shape() -> None:
    cache = RaggedCache()
    cache.begin_prompt([2], 2)
    cache.update(states(1, 2), states(1, 2, size=5), 0)
    keys, values = cache.update(states(1, 2, heads=4, size=7), states(1, 2, heads=4, size=7), 1)
    assert cache.layers[0].values.shape[3] == 5
    assert keys.shape == values.shape == (1, 4, 2, 7)


def test_selecting_rows_drops_the_others() -> None:
    cache, prompt = prompted([4, 2, 3])
    cache.select_rows([2, 0])
    assert cache.lengths.tolist() == [3, 4]
    cache.begin(1)
    keys, _ = cache.update(states(2, 1, first=500), states(2, 1, first=500), 0)
    assert torch.equal(keys[0, :, :3], prompt[2, :, :3])
    assert torch.equal(keys[1, :, :4], prompt[0])


def test_rows_join_behind_the_others_whatever_the_lengths() -> None:
    cache, first = prompted([4, 2])
    other, second = prompted([9])
    cache.join(other)
    assert cache.lengths.tolist() == cache.prompts.tolist() == [4, 2, 9]
    cache.begin(2)
    new = states(3, 2, first=1000)
    keys, values = cache.update(new, -new, 1)
    for row, prompt, length in ((0, first[0], 4), (1, first[1], 2), (2, second[0], 9)):
        assert torch.equal(keys[row, :, : length + 2], torch.cat((prompt[:, :length], new[row]), 1))
    assert torch.equal(values, -keys)


def test_rows_put_aside_come_back_as_they_were() -> None:
    cache, prompt = prompted([4, 2, 3])
    aside = cache.split_off(1)
    assert (cache.lengths.tolist(), aside.lengths.tolist(), aside.capacity) == ([4], [2, 3], 3)
    aside.come_back()
    cache.join(aside)
    assert cache.lengths.tolist() == [4, 2, 3]
    for row, length in enumerate((4, 2, 3)):
        assert torch.equal(cache.layers[1].keys[row, :, :length], prompt[row, :, :length])
        assert torch.equal(cache.layers[1].values[row, :, :length], -prompt[row, :, :length])


def test_a_bounded_cache_grows_by_what_is_needed_only() -> None:
    cache = RaggedCache(most=2 * (HEADROOM + 6))
    cache.begin_prompt([4, 2], 4)
    cache.update(states(2, 4), states(2, 4), 0)
    cache.begin(HEADROOM + 1)
    assert cache.capacity == HEADROOM + 6
    assert cache.token_bytes == 2 * 2 * 3 * 4
