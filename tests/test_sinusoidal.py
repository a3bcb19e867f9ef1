import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rope_lib import inverse_frequencies, reference, shift_matrix, sinusoidal_encoding
from rope_lib.sinusoidal import learned_encoding

dims = st.integers(1, 32).map(lambda pairs: 2 * pairs)
positions = st.integers(-10_000, 10_000)


@given(positions, dims, st.floats(2, 1e6))
def test_code_is_the_plain_loop(position, dim, base):
    code = sinusoidal_encoding(torch.tensor(position), dim, base=base, dtype=torch.float64)
    assert code.tolist() == pytest.approx(reference.sinusoidal_encoding(position, dim, base), abs=1e-11)


def test_code_by_hand():
    assert sinusoidal_encoding(torch.tensor(0), 4).tolist() == [0, 1, 0, 1]
    expected = [0.8414709848, 0.5403023059, 0.0099998333, 0.9999500004]  # sin 1, cos 1, sin 0.01, cos 0.01
    assert sinusoidal_encoding(torch.tensor(1), 4, dtype=torch.float64).tolist() == pytest.approx(expected, abs=1e-10)


@given(positions, st.integers(-1000, 1000), dims)
def test_shift_matrix_shifts(position, delta, dim):
    code, moved = (sinusoidal_encoding(torch.tensor(p), dim, dtype=torch.float64) for p in (position, position + delta))
    torch.testing.assert_close(shift_matrix(delta, dim) @ code, moved, rtol=0, atol=1e-11)


@given(positions, positions, dims)
def test_product_is_the_cosine_sum(m, n, dim):
    first, second = sinusoidal_encoding(torch.tensor([m, n]), dim, dtype=torch.float64)
    assert (first @ second).item() == pytest.approx(((m - n) * inverse_frequencies(dim)).cos().sum().item(), abs=1e-10)


def test_shapes_and_device():
    assert sinusoidal_encoding(torch.zeros(2, 3), 8).shape == (2, 3, 8)
    assert sinusoidal_encoding(torch.zeros(0), 8).shape == (0, 8)


def test_errors():
    with pytest.raises(ValueError, match="dim is 5; it must be positive and even"):
        sinusoidal_encoding(torch.arange(3), 5)
    with pytest.raises(ValueError, match="dim is -2"):
        shift_matrix(1, -2)
    with pytest.raises(TypeError, match="positions is a int"):
        sinusoidal_encoding(3, 4)


def test_learned_code_is_a_row_of_the_table_and_learns():
    table = torch.arange(12.0).view(4, 3).requires_grad_()
    assert learned_encoding(torch.tensor([[0, 3], [1, 1]]), table)[0, 1].tolist() == [9, 10, 11]
    learned_encoding(torch.tensor([1, 1]), table).sum().backward()
    assert table.grad[:, 0].tolist() == [0, 2, 0, 0]


@pytest.mark.parametrize(("position", "error"), [(4, "reach from 4 to 4, but table has 4 rows"), (-1, "from -1 to -1")])
def test_learned_code_ends_with_its_table(position, error):
    with pytest.raises(ValueError, match=error):
        learned_encoding(torch.tensor([position]), torch.zeros(4, 3))
    with pytest.raises(TypeError, match=r"positions has dtype torch.float32"):
        learned_encoding(torch.tensor([0.0]), torch.zeros(4, 3))


def test_the_shift_takes_the_base():
    code = sinusoidal_encoding(torch.tensor([3, 8]), 6, base=50.0, dtype=torch.float64)
    torch.testing.assert_close(shift_matrix(5, 6, base=50.0) @ code[0], code[1])


def test_small_integers_are_no_mask():
    table = torch.arange(8.0).view(4, 2)
    for dtype in (torch.uint8, torch.int16, torch.int32, torch.int64):
        rows = learned_encoding(torch.tensor([3, 0, 0, 1], dtype=dtype), table)
        assert torch.equal(rows, table[[3, 0, 0, 1]])
