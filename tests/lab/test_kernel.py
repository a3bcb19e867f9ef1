"""The kernel of the page on costs, on a GPU or in Triton's interpreter, where Triton is installed."""

import os

import pytest
import torch
from torch.testing import assert_close

from lab.traffic import kernel_listing
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.theory import reference

DEVICE = "cuda" if torch.cuda.is_available() else "cpu"
if DEVICE == "cpu":
    os.environ.setdefault("TRITON_INTERPRET", "1")


@pytest.fixture(scope="module")
def kernel():
    pytest.importorskip("triton", reason="the kernel needs Triton: pip install triton")
    from lab import kernel

    return kernel


def tables(length, rotary_dim, dtype=torch.float32, start=0):
    at = torch.arange(start, start + length, device=DEVICE)
    return cos_sin(at, inverse_frequencies(rotary_dim, device=DEVICE), dtype=dtype)


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.float64])
@pytest.mark.parametrize("rotary_dim", [24, 10])
@pytest.mark.parametrize("interleaved", [True, False])
def test_forward_is_the_library(kernel, interleaved, rotary_dim, dtype, generator):
    x = torch.randn(2, 3, 5, 24, generator=generator, dtype=torch.float64).to(DEVICE, dtype)
    cos, sin = tables(5, rotary_dim, torch.float64 if dtype == torch.float64 else torch.float32, start=10**6)
    turned = apply_rotary_emb(x[..., :rotary_dim], cos, sin, interleaved=interleaved)
    whole = torch.cat((turned, x[..., rotary_dim:]), dim=-1)
    rounding = {"rtol": 2**-7, "atol": 1e-6} if dtype == torch.bfloat16 else {}  # the interpreter cuts off, and no more
    assert_close(kernel.rotated(x, cos, sin, interleaved=interleaved), whole, **rounding)


@pytest.mark.parametrize("interleaved", [True, False])
def test_forward_is_the_plain_loop(kernel, interleaved, generator):
    x = torch.randn(4, 8, generator=generator, dtype=torch.float64)
    cos, sin = tables(4, 8, torch.float64)
    rows = [reference.rotate(row.tolist(), m, interleaved=interleaved) for m, row in enumerate(x)]
    found = kernel.rotated(x.to(DEVICE), cos, sin, interleaved=interleaved)
    assert_close(found.cpu(), torch.tensor(rows, dtype=torch.float64))


@pytest.mark.parametrize("rotary_dim", [8, 6])
@pytest.mark.parametrize("interleaved", [True, False])
def test_the_way_back_is_what_small_steps_give(kernel, interleaved, rotary_dim, generator):
    """With a factor, so that transposed and undone differ."""
    x = torch.randn(2, 3, 8, generator=generator, dtype=torch.float64).to(DEVICE).requires_grad_()
    cos, sin = (1.3 * table for table in tables(3, rotary_dim, torch.float64))
    turned = lambda x: kernel.rotated(x, cos, sin, interleaved=interleaved)  # noqa: E731
    assert torch.autograd.gradcheck(turned, x)
    assert torch.autograd.gradgradcheck(lambda x: turned(x) * x, x)  # the way back is part of the graph


def test_what_does_not_fit_is_refused(kernel):
    x, (cos, sin) = torch.zeros(2, 5, 8, device=DEVICE), tables(5, 8)
    for args, said in {
        (x[:, :4], cos, sin): r"x is \(2, 4, 8\), cos \(5, 4\), sin \(5, 4\); wanted",
        (x[..., :6], cos, sin): "4 pairs do not fit into head_dim 6",
        (x, cos.T.contiguous().T, sin): "must be contiguous",
        (x, cos.clone().requires_grad_(), sin): "wants a gradient, which this kernel has not",
    }.items():
        with pytest.raises(ValueError, match=said):
            kernel.rotated(*args, interleaved=True)


def test_the_page_can_show_it():
    """Also where Triton is not installed."""
    shown = kernel_listing()
    assert shown.startswith("@triton.jit\ndef turn(")
    assert shown.endswith("return back, None, None, None")
    assert max(map(len, shown.splitlines())) <= 76
