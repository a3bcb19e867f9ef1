import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rope_lib import inverse_frequencies
from rope_lib.theory import reference
from rope_lib.theory.matrices import shift_matrix
from rope_lib.theory.sinusoidal import sinusoidal_encoding

dims = st.integers(1, 32).map(lambda pairs: 2 * pairs)
positions = st.integers(-10_000, 10_000)


@given(positions, dims, st.floats(2, 1e6))
def test_code_is_the_plain_loop(position, dim, base):
    """An angle up to 10^4 is rounded by 10^-12."""
    code = sinusoidal_encoding(torch.tensor(position), dim, base=base, dtype=torch.float64)
    assert code.tolist() == pytest.approx(reference.sinusoidal_encoding(position, dim, base), abs=1e-11)


def test_code_by_hand():
    assert sinusoidal_encoding(torch.tensor(0), 4).tolist() == [0, 1, 0, 1]
    expected = [0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004]  # sin 1, cos 1, sin 0.01, cos 0.01
    assert sinusoidal_encoding(torch.tensor(1), 4, dtype=torch.float64).tolist() == pytest.approx(expected, abs=1e-10)


def test_code_is_float32_rounded_once():
    """Far from zero, too, where an angle in float32 would be off by 0.03."""
    code = sinusoidal_encoding(torch.tensor([1_000_001]), 8)
    assert code.dtype == torch.float32
    exact = torch.tensor([reference.sinusoidal_encoding(1_000_001, 8)], dtype=torch.float64)
    torch.testing.assert_close(code.double(), exact, rtol=0, atol=2**-25 + 1e-9)


@given(positions, st.integers(-1000, 1000), dims, st.floats(2, 1e6))
def test_one_matrix_shifts_all_positions(position, delta, dim, base):
    settings = {"base": base, "dtype": torch.float64}
    code, moved = (sinusoidal_encoding(torch.tensor(p), dim, **settings) for p in (position, position + delta))
    torch.testing.assert_close(shift_matrix(delta, dim, base=base) @ code, moved, rtol=0, atol=1e-11)


@given(positions, positions, dims)
def test_product_is_the_cosine_sum(m, n, dim):
    first, second = sinusoidal_encoding(torch.tensor([m, n]), dim, dtype=torch.float64)
    assert (first @ second).item() == pytest.approx(((m - n) * inverse_frequencies(dim)).cos().sum().item(), abs=1e-10)


def test_shapes_are_those_of_the_positions():
    for shape in ((), (0,), (2, 3)):
        assert sinusoidal_encoding(torch.zeros(shape), 8).shape == (*shape, 8)


def test_errors_of_the_sinusoidal_code():
    with pytest.raises(ValueError, match=r"^dim is 5; it must be positive and even"):
        sinusoidal_encoding(torch.arange(3), 5)
    with pytest.raises(ValueError, match=r"^base is 1;"):
        sinusoidal_encoding(torch.arange(3), 4, base=1)
    with pytest.raises(TypeError, match=r"^positions is a int; it must be a tensor"):
        sinusoidal_encoding(3, 4)
    with pytest.raises(TypeError, match=r"^positions has dtype torch\.bfloat16"):
        sinusoidal_encoding(torch.arange(3).bfloat16(), 4)
    with pytest.raises(TypeError, match=r"^dtype is torch\.bfloat16; tables are torch\.float32"):
        sinusoidal_encoding(torch.arange(3), 4, dtype=torch.bfloat16)
