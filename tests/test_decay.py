import cmath
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rope_lib import reference, sinusoidal_encoding
from rope_lib.decay import cosine_sum, cosine_sum_limit, partial_sums, relative_upper_bound

dims = st.integers(1, 40).map(lambda pairs: 2 * pairs)
bases = st.floats(1.5, 1e6)
distances = st.integers(-10_000, 10_000)


@given(distances, dims, bases)
def test_partial_sums_are_the_plain_loop(delta, dim, base):
    loop = reference.partial_sums(delta, dim, base)
    fast = partial_sums(torch.tensor(delta), dim=dim, base=base).tolist()
    assert all(abs(a - b) < 1e-10 for a, b in zip(fast, loop, strict=True))


@given(distances, dims, bases)
def test_bound_and_cosine_sum_come_from_the_partial_sums(delta, dim, base):
    loop = reference.partial_sums(delta, dim, base)
    bound = relative_upper_bound(torch.tensor(delta), dim=dim, base=base).item()
    assert bound == pytest.approx(sum(map(abs, loop)) / len(loop), abs=1e-10)
    assert cosine_sum(torch.tensor(delta), dim=dim, base=base).item() == pytest.approx(loop[-1].real, abs=1e-10)


@given(distances, dims, bases)
def test_bound_is_at_least_one_half_and_largest_at_zero(delta, dim, base):
    """|S_j| + |S_{j+1}| >= |S_{j+1} - S_j| = 1, and |S_j| <= j."""
    bound = relative_upper_bound(torch.tensor([delta, 0]), dim=dim, base=base)
    assert bound[0] >= 0.5 - 1e-12
    assert bound[0] <= bound[1] + 1e-12
    assert bound[1].item() == pytest.approx((dim // 2 + 1) / 2)


@given(st.lists(st.complex_numbers(max_magnitude=5), min_size=6, max_size=6), st.integers(0, 5000))
def test_the_bound_bounds(h, delta):
    score = abs(sum(x * cmath.exp(1j * delta * reference.inverse_frequency(i, 12)) for i, x in enumerate(h)))
    steps = [abs(b - a) for a, b in zip(h, [*h[1:], 0], strict=True)]
    bound = relative_upper_bound(torch.tensor(delta), dim=12).item()
    assert score <= max(steps) * 6 * bound + 1e-9


def test_a_million_distances_in_little_memory():
    far = torch.arange(1_000_000)
    bound = relative_upper_bound(far, dim=128)
    total = cosine_sum(far, dim=128)
    assert bound.shape == total.shape == far.shape
    for delta in (1, 999_999):
        loop = reference.partial_sums(delta, 128)
        assert bound[delta].item() == pytest.approx(sum(map(abs, loop)) / 64, abs=1e-8)
        assert total[delta].item() == pytest.approx(loop[-1].real, abs=1e-8)


def test_cosine_sum_is_the_product_of_sinusoidal_codes():
    codes = sinusoidal_encoding(torch.arange(50), 32, dtype=torch.float64)
    torch.testing.assert_close(codes @ codes[0], cosine_sum(torch.arange(50), dim=32), rtol=0, atol=1e-12)


@pytest.mark.parametrize("base", [100.0, 1e4])
def test_cosine_sum_approaches_its_limit(base):
    """A left Riemann sum of cos(Delta b^-u) over 0 <= u <= 1 is off by at most the total variation over N."""
    for delta in (0, 1, -7, 50, 300):
        variation = 2 + 2 * abs(delta) / math.pi  # cos over angles from Delta / b to Delta
        for dim in (128, 8192):
            mean = cosine_sum(torch.tensor(delta), dim=dim, base=base).item() / (dim // 2)
            assert abs(mean - cosine_sum_limit(torch.tensor(delta), base=base).item()) <= variation / (dim // 2)


def test_limit_is_logarithmic_for_middle_distances():
    """1 - (gamma + ln Delta) / ln b, for 1 << Delta << b."""
    euler = 0.5772156649
    for delta in (50, 100, 200):
        limit = cosine_sum_limit(torch.tensor(delta), base=1e6).item()
        assert limit == pytest.approx(
            1 - (euler + math.log(delta)) / math.log(1e6), abs=1 / delta / math.log(1e6) + 1e-8
        )


def test_shapes_and_errors():
    assert relative_upper_bound(torch.zeros(2, 3), dim=8).shape == (2, 3)
    assert partial_sums(torch.zeros(2, 3), dim=8).shape == (2, 3, 4)
    assert cosine_sum_limit(torch.zeros(2, 3)).shape == (2, 3)
    for function in (partial_sums, relative_upper_bound, cosine_sum):
        with pytest.raises(ValueError, match="rotary_dim is 7"):
            function(torch.arange(3), dim=7)
        with pytest.raises(TypeError, match=r"positions has dtype torch\.bfloat16"):
            function(torch.arange(3).bfloat16(), dim=8)
    with pytest.raises(ValueError, match="base is 1"):
        cosine_sum_limit(torch.arange(3), base=1)
