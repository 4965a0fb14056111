"""The training's own attention kernel gives the values and gradients of torch's."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

torch = pytest.importorskip("torch")
from training.attention import amx_kernel, attend  # noqa: E402 (only where torch is)


def _results(function, inputs, grad, causal):
    inputs = [x.detach().clone().requires_grad_() for x in inputs]
    out = function(*inputs, causal)
    out.backward(grad.to(out.dtype))
    return [out.detach().float(), *(x.grad.float() for x in inputs)]


def _exact(q, k, v, causal):
    return torch.nn.functional.scaled_dot_product_attention(q, k, v, is_causal=causal)


def _close(found, exact):
    for a, b in zip(found, exact, strict=True):
        assert float((a - b).norm()) < 0.02 * float(b.norm()) + 0.01 * a.numel() ** 0.5


@settings(max_examples=30, deadline=None)
@given(
    st.integers(1, 3), st.integers(1, 600), st.booleans(), st.sampled_from([0.1, 1.0, 6.0, 30.0]), st.integers(0, 99)
)
def test_amx_equals_torch(heads, length, causal, size, seed):
    if amx_kernel() is None:
        pytest.skip("needs a CPU with AMX, and g++")  # here, so that collecting the tests compiles nothing
    torch.manual_seed(seed)
    shape = (2, heads, length, 32)
    inputs = [(size * torch.randn(shape)).bfloat16(), torch.randn(shape).bfloat16(), torch.randn(shape).bfloat16()]
    grad = torch.randn(shape).bfloat16()
    exact = _results(_exact, [x.float() for x in inputs], grad, causal)
    found = _results(attend, inputs, grad, causal)
    # Where one key has nearly all of the share, gradients of queries and keys are differences of nearly equal numbers.
    compared = [0, 3] if size > 10 else range(4)
    _close([found[i] for i in compared], [exact[i] for i in compared])
    assert all(bool(x.isfinite().all()) for x in found)


@pytest.mark.parametrize("causal", [False, True])
def test_other_shapes_and_types_take_torchs_kernel(causal):
    torch.manual_seed(0)
    inputs = [torch.randn(1, 40, 2, 16).transpose(1, 2) for _ in range(3)]  # strided, as the model's are
    grad = torch.randn(1, 2, 40, 16)
    for a, b in zip(_results(attend, inputs, grad, causal), _results(_exact, inputs, grad, causal), strict=True):
        torch.testing.assert_close(a, b)
