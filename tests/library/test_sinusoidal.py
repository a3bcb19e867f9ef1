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


def test_learned_code_is_a_row_of_the_table_and_learns():
    table = torch.arange(12.0).view(4, 3).requires_grad_()
    assert learned_encoding(torch.tensor([[0, 3], [1, 1]]), table)[0, 1].tolist() == [9, 10, 11]
    learned_encoding(torch.tensor([1, 1]), table).sum().backward()
    assert table.grad[:, 0].tolist() == [0, 2, 0, 0]


def test_no_positions_no_codes():
    assert learned_encoding(torch.zeros(2, 0, dtype=torch.int64), torch.zeros(4, 3)).shape == (2, 0, 3)


@pytest.mark.parametrize(
    ("position", "text"),
    [
        (4, "^positions reach from 0 to 4, but table has 4 rows, 0 to 3; a learned code knows no other"),
        (-1, "^positions reach from -1 to 0, but"),
    ],
)
def test_learned_code_ends_with_its_table(position, text):
    with pytest.raises(ValueError, match=text):
        learned_encoding(torch.tensor([0, position]), torch.zeros(4, 3))


@pytest.mark.parametrize("positions", [torch.tensor([0.0]), torch.tensor([True]), torch.tensor([1.0]).half()])
def test_rows_are_counted_by_integers(positions):
    with pytest.raises(TypeError, match=rf"^positions has dtype {positions.dtype}"):
        learned_encoding(positions, torch.zeros(4, 3))


@pytest.mark.parametrize("dtype", [torch.uint8, torch.int16, torch.int32, torch.int64])
def test_small_integers_are_no_mask(dtype):
    table = torch.arange(8.0).view(4, 2)
    rows = learned_encoding(torch.tensor([3, 0, 0, 1], dtype=dtype), table)
    assert torch.equal(rows, table[[3, 0, 0, 1]])


@pytest.mark.parametrize("dtype", [torch.uint8, torch.uint16, torch.uint32, torch.uint64])
def test_rows_are_counted_by_whole_numbers_of_any_kind(dtype):
    table = torch.tensor([[0.5], [0.7]])
    assert learned_encoding(torch.tensor([1, 0]).to(dtype), table).tolist() == table.flip(0).tolist()
