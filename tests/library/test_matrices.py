import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.theory import reference
from rope_lib.theory.matrices import rotation_matrix, shift_matrix

dims = st.integers(1, 8).map(lambda pairs: 2 * pairs)
positions = st.floats(-1000, 1000)
bases = st.floats(2, 1e6)


@given(positions, dims, bases)
def test_columns_are_the_loop_on_the_basis_vectors(position, dim, base):
    matrix = rotation_matrix(position, inverse_frequencies(dim, base=base))
    for j in range(dim):
        unit = [float(j == row) for row in range(dim)]
        turned = reference.rotate(unit, position, interleaved=True, base=base)
        assert matrix[:, j].tolist() == pytest.approx(turned, abs=1e-12)  # angles below 10^3 are known to 2.2e-13


def test_a_matrix_by_hand():
    """A quarter turn of the first pair, counter-clockwise, and half a turn of the second."""
    matrix = rotation_matrix(1, torch.tensor([math.pi / 2, math.pi], dtype=torch.float64))
    assert matrix.round().tolist() == [[0, -1, 0, 0], [1, 0, 0, 0], [0, 0, -1, 0], [0, 0, 0, -1]]
    assert shift_matrix(math.pi / 2, 2).round().tolist() == [[0, 1], [-1, 0]]


def test_the_matrix_does_what_the_rotation_does(generator):
    x = torch.randn(5, 8, generator=generator, dtype=torch.float64)
    inv_freq = inverse_frequencies(8)
    products = torch.stack([rotation_matrix(m, inv_freq) @ x[m] for m in range(5)])
    fast = apply_rotary_emb(x, *cos_sin(torch.arange(5), inv_freq, dtype=torch.float64), interleaved=True)
    torch.testing.assert_close(products, fast)


@given(positions, positions, dims)
def test_turns_add_up(m, n, dim):
    inv_freq = inverse_frequencies(dim)
    product = rotation_matrix(m, inv_freq).T @ rotation_matrix(n, inv_freq)
    torch.testing.assert_close(product, rotation_matrix(n - m, inv_freq), rtol=0, atol=2e-12)


@given(positions, positions, dims, bases)
def test_a_shift_moves_the_code_of_each_position(position, delta, dim, base):
    code, moved = (
        torch.tensor(reference.sinusoidal_encoding(p, dim, base), dtype=torch.float64)
        for p in (position, position + delta)
    )
    torch.testing.assert_close(shift_matrix(delta, dim, base=base) @ code, moved, rtol=0, atol=2e-12)


def test_ten_thousand_is_the_base_of_a_shift_unless_another_is_given():
    assert torch.equal(shift_matrix(3, 6), shift_matrix(3, 6, base=10000.0))


def test_a_position_may_be_a_number_or_a_tensor_of_one():
    inv_freq = inverse_frequencies(4)
    for position in (2, 2.0, torch.tensor(2), torch.tensor(2.0)):
        assert torch.equal(rotation_matrix(position, inv_freq), rotation_matrix(2, inv_freq))
        assert torch.equal(shift_matrix(position, 4), rotation_matrix(-2, inv_freq))


def test_matrices_live_where_the_speeds_live(device):
    here = inverse_frequencies(4, device=device)
    assert rotation_matrix(2, here).device == here.device
    assert rotation_matrix(torch.tensor(2), here).device == here.device
    assert shift_matrix(2, 4, device=device).device == here.device
    with torch.device("meta"):
        assert rotation_matrix(2, here).device == here.device
        assert shift_matrix(2, 4, device="cpu").device.type == "cpu"
        assert shift_matrix(2, 4).device.type == "meta"
    assert rotation_matrix(2, here.to("meta")).shape == (4, 4)


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: rotation_matrix(torch.arange(3), inverse_frequencies(4)), ValueError, r"has shape \(3,\)"),
        (lambda: rotation_matrix(torch.tensor([1]), inverse_frequencies(4)), ValueError, r"has shape \(1,\)"),
        (
            lambda: rotation_matrix([1, 2], inverse_frequencies(4)),
            TypeError,
            r"^position is \[1, 2\]; it must be a number",
        ),
        (lambda: rotation_matrix(inverse_frequencies(4), 1), TypeError, "inv_freq is a int; it must be a tensor"),
        (lambda: rotation_matrix(1, 8), TypeError, "is it the base, or the dimension"),
        (lambda: rotation_matrix(1, inverse_frequencies(4).float()), TypeError, "inv_freq has dtype torch.float32"),
        (lambda: rotation_matrix(1, inverse_frequencies(4)[None]), ValueError, r"inv_freq has shape \(1, 2\)"),
        (lambda: shift_matrix(torch.arange(3), 4), ValueError, r"has shape \(3,\); it must be one number"),
        (lambda: shift_matrix(1, 5), ValueError, "^dim is 5; it must be positive and even"),
        (lambda: shift_matrix(1, -2), ValueError, "^dim is -2"),
        (lambda: shift_matrix(1, 4.0), TypeError, "^dim is 4.0; it must be an int"),
        (lambda: shift_matrix(1, 4, base=1), ValueError, "base is 1; it must be a finite number above 1"),
    ],
)
def test_errors(call, error, text):
    with pytest.raises(error, match=text):
        call()
