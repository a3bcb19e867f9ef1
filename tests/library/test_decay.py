import cmath
import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rope_lib.theory import reference
from rope_lib.theory.decay import abel_bound, cosine_sum, cosine_sum_limit, mean_partial_sum
from rope_lib.theory.sinusoidal import sinusoidal_encoding
from tests import oracles

dims = st.integers(1, 40).map(lambda pairs: 2 * pairs)
bases = st.floats(1.5, 1e6)
distances = st.integers(-10_000, 10_000)


def score(h, delta, base=10000.0):
    """|sum of h_i exp(i Delta theta_i)|, term by term."""
    speeds = [reference.inverse_frequency(pair, 2 * len(h), base) for pair in range(len(h))]
    return abs(sum(x * cmath.exp(1j * delta * speed) for x, speed in zip(h, speeds, strict=True)))


@given(distances, dims, bases)
def test_both_sums_are_the_plain_loop(delta, dim, base):
    """An angle up to 10^4 is rounded by 10^-12, and 40 of them are added."""
    loop = oracles.partial_sums(delta, dim, base)
    bound = mean_partial_sum(torch.tensor(delta), dim=dim, base=base).item()
    assert bound == pytest.approx(sum(map(abs, loop)) / len(loop), abs=1e-10)
    assert cosine_sum(torch.tensor(delta), dim=dim, base=base).item() == pytest.approx(loop[-1].real, abs=1e-10)


def test_many_distances_are_as_few():
    """More of them than one core does at a time."""
    many = torch.arange(70_000).view(2, 7, 5000)
    found = mean_partial_sum(many, dim=6)
    assert found.shape == many.shape
    for delta in (0, 32767, 32768, 69999):
        assert found.flatten()[delta] == mean_partial_sum(torch.tensor(delta), dim=6)


def test_the_base_is_ten_thousand_unless_another_is_named():
    delta = torch.tensor([3, 70])
    h = torch.tensor([1.0, 3.0])
    for curve in (
        lambda **base: mean_partial_sum(delta, dim=4, **base),
        lambda **base: cosine_sum(delta, dim=4, **base),
        lambda **base: cosine_sum_limit(delta, **base),
        lambda **base: abel_bound(h, delta, **base),
    ):
        assert torch.equal(curve(), curve(base=10000.0))
        assert not torch.equal(curve(), curve(base=9999.0))


@given(distances, dims, bases)
def test_the_mean_is_at_least_one_half_and_largest_at_zero(delta, dim, base):
    """|S_j| + |S_{j+1}| >= |S_{j+1} - S_j| = 1, and |S_j| <= j."""
    mean = mean_partial_sum(torch.tensor([delta, 0]), dim=dim, base=base)
    assert mean[0] >= 0.5 - 1e-12
    assert mean[0] <= mean[1] + 1e-12
    assert mean[1].item() == pytest.approx((dim // 2 + 1) / 2)


@given(st.lists(st.complex_numbers(max_magnitude=5), min_size=1, max_size=8), st.integers(0, 5000), bases)
def test_the_bound_is_the_plain_loop_and_bounds(h, delta, base):
    steps = [abs(b - a) for a, b in zip(h, [*h[1:], 0], strict=True)]
    loop = max(steps) * sum(map(abs, oracles.partial_sums(delta, 2 * len(h), base)))
    bound = abel_bound(torch.tensor(h, dtype=torch.complex128), torch.tensor(delta), base=base).item()
    assert bound == pytest.approx(loop, abs=1e-9)
    assert score(h, delta, base) <= bound + 1e-9


@pytest.mark.parametrize("h", [[7.0], [-2.0 + 1j], [3.0, 2.0, 1.0], [2j, 1j]])
def test_the_bound_is_reached(h):
    """Equal steps down to 0, and S_j all of one direction: at distance 0, or with one pair at any."""
    for delta in (0, 5) if len(h) == 1 else (0,):
        bound = abel_bound(torch.tensor(h), torch.tensor([delta]))
        assert bound.dtype == torch.float64
        assert bound.tolist() == pytest.approx([score(h, delta)], rel=1e-6)  # h is float32 here


def test_the_bound_by_hand():
    """Speeds 1 and 1/10, distance pi: |S_1| = 1, |S_2| = |exp(i pi / 10) - 1|. Steps 3 and, down to zero, 1."""
    bound = abel_bound(torch.tensor([4, 1]), torch.tensor([math.pi], dtype=torch.float64), base=100.0)
    assert bound.tolist() == pytest.approx([3 * (1 + 2 * math.sin(math.pi / 20))], rel=1e-12)


@pytest.mark.parametrize(
    ("h", "dtype"),
    [
        ([0, 9, 5], torch.uint8),  # steps 9 and -4: a byte would wrap
        ([1024, -3, 5], torch.bfloat16),  # the step 1027 would become 1024, and the bound too small
        ([1 / 3, 0, 0], torch.float32),
        ([1j / 3, 0, 0], torch.complex64),
    ],
)
def test_the_bound_is_float64_whatever_the_type_of_h(h, dtype):
    h, delta = torch.tensor(h).to(dtype), torch.tensor([7])
    exact = abel_bound(h.to(torch.complex128), delta)
    torch.testing.assert_close(abel_bound(h, delta), exact, rtol=1e-15, atol=0)


def test_many_bounds_at_once_are_each_alone(generator):
    h = torch.randn(5, 4, generator=generator, dtype=torch.complex128)
    delta = torch.tensor([0, 3, 100])
    together = abel_bound(h, delta[:, None])
    assert together.shape == (3, 5)
    for row in range(5):
        torch.testing.assert_close(together[:, row], abel_bound(h[row], delta), rtol=1e-12, atol=0)


class Largest(TorchDispatchMode):
    """Remembers the size of the largest tensor."""

    elements = 0

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        result = function(*args, **kwargs or {})
        self.elements = max([self.elements, *(x.numel() for x in tree_leaves(result) if isinstance(x, torch.Tensor))])
        return result


@pytest.mark.parametrize("curve", [mean_partial_sum, cosine_sum])
def test_no_tensor_is_larger_than_the_distances(curve):
    """However many pairs there are; far distances lose nothing: an angle of 10^6 is rounded by 10^-10."""
    far = torch.arange(999_000, 1_000_000)
    with Largest() as largest:
        values = curve(far, dim=128)
    assert values.shape == far.shape
    assert largest.elements == len(far)
    loop = oracles.partial_sums(999_999, 128)
    expected = loop[-1].real if curve is cosine_sum else sum(map(abs, loop)) / 64
    assert values[-1].item() == pytest.approx(expected, abs=1e-8)


def test_cosine_sum_is_the_product_of_sinusoidal_codes():
    codes = sinusoidal_encoding(torch.arange(50), 32, dtype=torch.float64)
    torch.testing.assert_close(codes @ codes[0], cosine_sum(torch.arange(50), dim=32), rtol=0, atol=1e-12)


@pytest.mark.parametrize("base", [100.0, 1e4])
@pytest.mark.parametrize("delta", [0, 1, -7, 50, 300, 0.25, -0.5])
def test_cosine_sum_approaches_its_limit(base, delta):
    """A left Riemann sum of cos(Delta b^-u) over 0 <= u <= 1 is off by at most the total variation over N."""
    variation = min(2 + 2 * abs(delta) / math.pi, abs(delta))  # cos over angles from Delta / b to Delta
    for dim in (128, 8192):
        mean = cosine_sum(torch.tensor(delta, dtype=torch.float64), dim=dim, base=base).item() / (dim // 2)
        limit = cosine_sum_limit(torch.tensor(delta), base=base)
        assert limit.dtype == torch.float64
        assert abs(mean - limit.item()) <= variation / (dim // 2)


def test_limit_is_logarithmic_for_middle_distances():
    """1 - (gamma + ln Delta) / ln b, for 1 << Delta << b."""
    euler = 0.5772156649
    for delta in (50, 100, 200):
        limit = cosine_sum_limit(torch.tensor(delta), base=1e6).item()
        assert limit == pytest.approx(
            1 - (euler + math.log(delta)) / math.log(1e6), abs=1 / delta / math.log(1e6) + 1e-8
        )


CURVES = {
    "mean_partial_sum": lambda x: mean_partial_sum(x, dim=8),
    "cosine_sum": lambda x: cosine_sum(x, dim=8),
    "cosine_sum_limit": cosine_sum_limit,
    "abel_bound": lambda x: abel_bound(torch.ones(4), x),
}
curves = pytest.mark.parametrize("curve", CURVES.values(), ids=CURVES)


@curves
def test_shapes_are_those_of_the_distances(curve):
    for shape in ((), (0,), (2, 3)):
        assert curve(torch.zeros(shape)).shape == shape
        assert curve(torch.zeros(shape)).dtype == torch.float64


@curves
def test_distances_that_are_no_exact_tensor_are_named(curve):
    with pytest.raises(TypeError, match=r"^distances has dtype torch\.bfloat16"):
        curve(torch.arange(3).bfloat16())
    with pytest.raises(TypeError, match=r"^distances is a list; it must be a tensor"):
        curve([1, 2])


def test_the_limit_is_made_on_the_cpu():
    distances = torch.arange(3, device="cpu")
    with torch.device("meta"):
        assert cosine_sum_limit(distances).device.type == "cpu"


def test_errors():
    for curve in (mean_partial_sum, cosine_sum):
        with pytest.raises(ValueError, match=r"^dim is 7; it must be positive and even"):
            curve(torch.arange(3), dim=7)
        with pytest.raises(ValueError, match=r"^base is 1;"):
            curve(torch.arange(3), dim=8, base=1)
    with pytest.raises(ValueError, match=r"^base is 1;"):
        cosine_sum_limit(torch.arange(3), base=1)
    for shape in ((), (0,), (3, 0)):
        with pytest.raises(
            ValueError, match=r"^h has shape \(.*\), distances \(3,\); h must be \(..., N\), one number for each pair"
        ):
            abel_bound(torch.zeros(shape), torch.arange(3))


@pytest.mark.parametrize("distance", [torch.tensor([-128], dtype=torch.int8), torch.tensor([128], dtype=torch.uint16)])
def test_the_limit_of_small_types(distance):
    """-(-128) is no int8, and uint16 knows few operations."""
    assert torch.equal(cosine_sum_limit(distance), cosine_sum_limit(torch.tensor([128])))


@pytest.mark.parametrize("curve", [mean_partial_sum, cosine_sum])
def test_a_curve_has_the_slope_that_its_gradient_says(curve):
    distances = torch.tensor([0.7, 12.3, 400.1], dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(lambda distances: curve(distances, dim=8), distances)
