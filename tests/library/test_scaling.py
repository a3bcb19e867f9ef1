import json
import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from rope_lib import RotaryEmbedding, inverse_frequencies, scaling
from rope_lib.theory import reference
from tests.conftest import ROOT
from tests.library.calls import CALLS, RIGHT

PEER = json.loads((ROOT / "tests" / "data" / "transformers_rope.json").read_text())["cases"]
LONG_FACTOR = [1 + 0.5 * pair for pair in range(16)]
METHODS = [name for name in CALLS if name.startswith("scaling.") and name.endswith("_scaling")]


def llama3(rotary_dim):
    """Llama 3.1's own names and numbers."""
    turns = {"beta_fast": 4.0, "beta_slow": 1.0}
    trained = {"original_max_position_embeddings": 8192, "base": 500_000.0}
    return scaling.ntk_by_parts_scaling(rotary_dim, factor=8.0, **turns, **trained)


OURS = {  # each case with the settings that made the stored numbers
    "linear": lambda: (scaling.linear_scaling(32, factor=4), 1.0),
    "dynamic_short": lambda: (
        scaling.dynamic_ntk_scaling(32, factor=2, seq_len=1000, max_position_embeddings=2048),
        1.0,
    ),
    "dynamic_long": lambda: (
        scaling.dynamic_ntk_scaling(32, factor=2, seq_len=10000, max_position_embeddings=2048),
        1.0,
    ),
    "yarn": lambda: (
        scaling.yarn_scaling(32, factor=16, original_max_position_embeddings=4096),
        scaling.yarn_attention_factor(16),
    ),
    "yarn_no_truncate": lambda: (
        scaling.yarn_scaling(
            32,
            factor=40,
            original_max_position_embeddings=4096,
            beta_fast=20,
            beta_slow=2,
            truncate=False,
            base=150000,
        ),
        scaling.yarn_attention_factor(40),
    ),
    "yarn_attention_factor": lambda: (  # this factor was given, not computed
        scaling.yarn_scaling(32, factor=4, original_max_position_embeddings=512),
        1.25,
    ),
    "llama3": lambda: (llama3(32), 1.0),
    "longrope": lambda: (
        scaling.longrope_scaling(32, factors=LONG_FACTOR),
        scaling.longrope_attention_factor(8, original_max_position_embeddings=4096),
    ),
    "proportional": lambda: (scaling.proportional_scaling(32, partial_rotary_factor=0.5), 1.0),
}


@pytest.mark.parametrize("name", OURS)
def test_an_independent_implementation_agrees(name):
    """The stored numbers were computed in float32, whose powers are good to some 1e-6."""
    inv_freq, attention_factor = OURS[name]()
    assert inv_freq.tolist() == pytest.approx(PEER[name]["inv_freq"], rel=2e-6, abs=0)
    assert attention_factor == pytest.approx(PEER[name]["attention_factor"], rel=1e-12, abs=0)


dims = st.integers(2, 64).map(lambda pairs: 2 * pairs)
factors = st.floats(1, 64)


@given(dims, factors, st.floats(100, 1e6))
def test_position_interpolation_divides_all_speeds(dim, factor, base):
    scaled = scaling.linear_scaling(dim, factor=factor, base=base)
    loop = [reference.inverse_frequency(pair, dim, base) / factor for pair in range(dim // 2)]
    assert scaled.tolist() == pytest.approx(loop, rel=1e-12, abs=0)


@given(dims, factors, st.floats(100, 1e6))
def test_ntk_is_another_base_that_keeps_the_fastest_and_divides_the_slowest(dim, factor, base):
    plain, scaled = inverse_frequencies(dim, base=base), scaling.ntk_scaling(dim, factor=factor, base=base)
    assert scaled[0] == 1
    assert scaled[-1].item() == pytest.approx(plain[-1].item() / factor, rel=1e-12, abs=0)
    ratios = scaled[1:] / scaled[:-1]  # one base: the speeds are a geometric series
    assert ratios.tolist() == pytest.approx([ratios[0].item()] * len(ratios), rel=1e-12, abs=0)


def test_ntk_needs_no_base_that_a_float_could_hold():
    """base * factor^(8 / 6) would be 10^404; three pairs of four are slowed by roots of the factor."""
    plain, scaled = inverse_frequencies(8), scaling.ntk_scaling(8, factor=1e300)
    assert (scaled / plain).tolist() == pytest.approx([1, 1e-100, 1e-200, 1e-300], rel=1e-12, abs=0)


@given(dims, factors, st.floats(100, 1e6), st.integers(100, 100_000), st.floats(0.1, 4), st.floats(0.1, 60))
def test_by_parts_is_the_plain_loop(dim, factor, base, length, beta_slow, width):
    beta_fast = beta_slow + width
    settings = (dim, factor, length, beta_fast, beta_slow, base)
    loop = [reference.ntk_by_parts_frequency(pair, *settings) for pair in range(dim // 2)]
    scaled = scaling.ntk_by_parts_scaling(
        dim,
        factor=factor,
        original_max_position_embeddings=length,
        beta_fast=beta_fast,
        beta_slow=beta_slow,
        base=base,
    )
    assert scaled.tolist() == pytest.approx(loop, rel=1e-9, abs=0)


@given(
    st.integers(4, 64).map(lambda pairs: 2 * pairs),
    factors,
    st.floats(1000, 1e6),
    st.integers(1000, 100_000),
    st.floats(0.5, 4),
    st.floats(1.1, 30),
)
def test_yarn_is_linear_in_the_logarithm_of_the_turns(dim, factor, base, length, beta_slow, ratio):
    """The index of a pair is linear in the logarithm of its turns. The sizes keep the ramp among the dimensions; its
    slope is at most 1 / ln 1.1, so the rounding of a logarithm, times it and times factor, stays far below 1e-9.
    """
    beta_fast, loop = ratio * beta_slow, []
    for pair in range(dim // 2):
        speed = reference.inverse_frequency(pair, dim, base)
        weight = math.log(beta_fast * 2 * math.pi / (length * speed)) / math.log(ratio)
        weight = min(max(weight, 0), 1)
        loop.append((1 - weight) * speed + weight * speed / factor)
    scaled = scaling.yarn_scaling(
        dim,
        factor=factor,
        original_max_position_embeddings=length,
        beta_fast=beta_fast,
        beta_slow=beta_slow,
        truncate=False,
        base=base,
    )
    assert scaled.tolist() == pytest.approx(loop, rel=1e-9, abs=0)


@pytest.mark.parametrize("scale", [scaling.ntk_by_parts_scaling, scaling.yarn_scaling])
def test_equal_turns_are_a_step(scale):
    """In 2048 tokens pairs 0 to 4 of eight make 326, 103, 33, 10 and 3.3 turns: at 20, the first three stay."""
    settings = {"factor": 2, "original_max_position_embeddings": 2048, "beta_fast": 20, "beta_slow": 20}
    exact_ends = {"truncate": False} if scale is scaling.yarn_scaling else {}
    divided = torch.tensor([1.0] * 3 + [2.0] * 5, dtype=torch.float64)
    scaled = scale(16, **settings, **exact_ends)
    torch.testing.assert_close(scaled, inverse_frequencies(16) / divided, rtol=1e-15, atol=0)
    turns = (2048 * inverse_frequencies(16)[3] / (2 * math.pi)).item()  # exactly: the pair is on one of the sides
    on_the_edge = scale(16, **settings | {"beta_fast": turns, "beta_slow": turns}, **exact_ends)
    assert on_the_edge.isfinite().all()
    near = 1e-2 if scale is scaling.yarn_scaling else 1e-8  # the step of yarn is a thousandth of a pair wide
    for beta, divisor in ((turns * (1 - near), 1), (turns * (1 + near), 2)):
        beside = scale(16, **settings | {"beta_fast": beta, "beta_slow": beta}, **exact_ends)
        assert beside[3].item() == pytest.approx(inverse_frequencies(16)[3].item() / divisor, rel=1e-15, abs=0)


@given(dims, factors, st.integers(600, 100_000), st.booleans())
def test_yarn_lies_between_the_two_ends_and_falls(dim, factor, length, truncate):
    inv_freq = scaling.yarn_scaling(dim, factor=factor, original_max_position_embeddings=length, truncate=truncate)
    plain = inverse_frequencies(dim)
    assert (inv_freq <= plain * (1 + 1e-12)).all()
    assert (inv_freq >= plain / factor * (1 - 1e-12)).all()
    assert (inv_freq.diff() < 0).all()


@pytest.mark.parametrize(
    ("dim", "length", "base", "weights"),
    [
        (8, 16, 100.0, [0, 1, 1, 1]),
        (4, 205, 4.0, [0, 1 / 3]),
        (8, 3, 100.0, [0, 1, 1, 1]),
        (8, 1_000_000, 2.0, [0, 0, 0, 0]),
    ],
    ids=["begins before the first pair", "ends after the last one", "ends before the first", "begins after the last"],
)
def test_the_ramp_of_yarn_stays_among_the_dimensions(dim, length, base, weights):
    """By hand: ramps from -3 to 1, 0 to 6, -4 to 0 and 49 to 70, cut to 0 .. 1, 0 .. 3, a step at 0, one at 49."""
    inv_freq = scaling.yarn_scaling(dim, factor=2, original_max_position_embeddings=length, base=base)
    weight = torch.tensor(weights, dtype=torch.float64)
    torch.testing.assert_close(inv_freq, inverse_frequencies(dim, base=base) * (1 - weight / 2))


@pytest.mark.parametrize("name", METHODS)
def test_a_factor_of_one_changes_nothing_and_the_base_is_used(name):
    function, arguments = RIGHT[f"{name}, without effect"]
    torch.testing.assert_close(function(**arguments), inverse_frequencies(16), rtol=1e-15, atol=0)
    expected = inverse_frequencies(16, base=50.0)
    torch.testing.assert_close(function(**arguments, base=50.0), expected, rtol=1e-15, atol=0)


def test_defaults_are_those_of_the_papers():
    by_parts = scaling.ntk_by_parts_scaling(64, factor=8, original_max_position_embeddings=2048)
    loop = [reference.ntk_by_parts_frequency(pair, 64, 8, 2048, 32, 1) for pair in range(32)]
    assert by_parts.tolist() == pytest.approx(loop, rel=1e-12, abs=0)


@pytest.mark.parametrize("factor", [1, 1.2, 1.7, 2, 3.3, 40])
def test_a_text_of_the_trained_length_or_less_is_short(factor):
    """Whatever the rounding: 1.7 * 13 / 13 - 0.7 is below 1."""
    for trained in (13, 109, 2048):
        for seq_len in (1, trained - 1, trained):
            lengths = {"seq_len": seq_len, "max_position_embeddings": trained}
            scaled = scaling.dynamic_ntk_scaling(8, factor=factor, **lengths)
            torch.testing.assert_close(scaled, inverse_frequencies(8), rtol=1e-14, atol=0)


def test_dynamic_ntk_by_hand():
    grown = scaling.dynamic_ntk_scaling(8, factor=2, seq_len=100, max_position_embeddings=50, base=50.0)
    torch.testing.assert_close(grown, scaling.ntk_scaling(8, factor=3, base=50.0))


def test_long_factors_divide_one_by_one_in_float64():
    factors = (1.1, 1.3, 1.7, 2.9)
    scaled = scaling.longrope_scaling(8, factors=factors, base=100.0)
    loop = [reference.inverse_frequency(pair, 8, 100.0) / factor for pair, factor in enumerate(factors)]
    assert scaled.tolist() == pytest.approx(loop, rel=1e-15, abs=0)


@pytest.mark.parametrize(("dim", "share", "turning"), [(32, 0.3, 4), (10, 0.5, 2), (14, 0.5, 3), (8, 1, 4), (8, 0, 0)])
def test_the_share_of_pairs_is_rounded_down(dim, share, turning):
    """As transformers does: int(rope_proportion * head_dim // 2)."""
    assert int((scaling.proportional_scaling(dim, partial_rotary_factor=share) > 0).sum()) == turning


def test_attention_factors_by_hand():
    assert scaling.yarn_attention_factor(math.e) == pytest.approx(1.1, rel=1e-15, abs=0)
    assert scaling.yarn_attention_factor(math.e, mscale=2.0) == pytest.approx(1.2, rel=1e-15, abs=0)
    assert scaling.yarn_attention_factor(math.e, mscale_all_dim=3.0) == pytest.approx(1.1 / 1.3, rel=1e-15, abs=0)
    assert scaling.yarn_attention_factor(40, mscale=0.707, mscale_all_dim=0.707) == 1  # DeepSeek-V2
    assert scaling.longrope_attention_factor(8, original_max_position_embeddings=2) == pytest.approx(
        2, rel=1e-15, abs=0
    )
    assert scaling.yarn_attention_factor(1) == 1
    assert scaling.longrope_attention_factor(1, original_max_position_embeddings=4096) == 1


def test_attention_factor_multiplies_scores_by_its_square(generator):
    q, k = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    inv_freq = scaling.yarn_scaling(8, factor=8, original_max_position_embeddings=1024)
    factor = scaling.yarn_attention_factor(8)
    plain, warm = (
        RotaryEmbedding(8, interleaved=True, inv_freq=inv_freq, attention_factor=f)(q, k, positions=torch.arange(6))
        for f in (1.0, factor)
    )
    torch.testing.assert_close(warm[0] @ warm[1].T, factor**2 * plain[0] @ plain[1].T)


def test_position_interpolation_is_fractional_positions(generator):
    q, k = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    positions = torch.arange(6)
    scaled = RotaryEmbedding(8, interleaved=True, inv_freq=scaling.linear_scaling(8, factor=4))
    squeezed = RotaryEmbedding(8, interleaved=True)(q, k, positions=positions / 4)
    for ours, expected in zip(scaled(q, k, positions=positions), squeezed, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-14)


def test_speeds_are_made_on_the_cpu_in_float64():
    """Whatever the default device is: a checkpoint may be loaded on another one."""
    with torch.device("meta"):
        speeds = [CALLS[name].function(**CALLS[name].right) for name in METHODS]
    assert {(x.device.type, x.dtype) for x in speeds} == {("cpu", torch.float64)}


@pytest.mark.parametrize(("pairs", "share", "turning"), [(100, 0.29, 28), (100, 0.3, 30), (8, 0.99, 7), (8, 0.0, 0)])
def test_pairs_of_a_share_are_rounded_down_as_deployed(pairs, share, turning):
    """0.29 * 100 is 28.999999999999996."""
    speeds = scaling.proportional_scaling(2 * pairs, partial_rotary_factor=share)
    assert (speeds > 0).sum() == turning


def test_a_ramp_that_ends_at_a_pair_ends_there():
    """The slowest of eight pairs makes one turn in base * 2 pi tokens: with truncate, the ramp still ends at pair 8."""
    base = 4096 / (2 * math.pi)
    found = scaling.yarn_scaling(16, factor=8.0, original_max_position_embeddings=4096, base=base)
    begin = math.floor(16 * math.log(base / 32) / (2 * math.log(base)))
    weight = ((torch.arange(8, dtype=torch.float64) - begin) / (8 - begin)).clamp(min=0)
    torch.testing.assert_close(found, inverse_frequencies(16, base=base) * (1 - weight * 7 / 8), rtol=1e-12, atol=0)


TRAINED = {"original_max_position_embeddings": 2048}


@pytest.mark.parametrize(
    ("function", "settings"),
    [
        (scaling.linear_scaling, {"factor": 4}),
        (scaling.ntk_scaling, {"factor": 4, "base": 500}),
        (scaling.dynamic_ntk_scaling, {"factor": 2, "seq_len": 9000, "max_position_embeddings": 4096}),
        (scaling.ntk_by_parts_scaling, {"factor": 4, "beta_fast": 32, "beta_slow": 1, **TRAINED}),
        (scaling.yarn_scaling, {"factor": 4, "beta_fast": 32, "beta_slow": 1, "base": 500, **TRAINED}),
        (scaling.proportional_scaling, {"partial_rotary_factor": 1}),
    ],
)
@pytest.mark.parametrize("of", [torch.tensor, lambda n: torch.tensor([n]), lambda n: torch.tensor(n).int(), np.int64])
def test_a_number_may_come_in_a_tensor_of_one_element(function, settings, of):
    """transformers' own dynamic update hands the length of a text over so."""
    changed = {name: of(value) for name, value in settings.items()}
    assert torch.equal(function(of(8), **changed), function(8, **settings))
    with pytest.raises(TypeError, match=rf"{next(iter(settings))}.* is tensor\(.*; it must be a number"):
        function(8, **(settings | {next(iter(settings)): torch.tensor([1, 2])}))
    with pytest.raises(TypeError, match=r"rotary_dim is tensor\(8\.\); it must be an int"):
        function(torch.tensor(8.0), **settings)


def test_numbers_of_longrope_may_come_in_a_tensor():
    factors = [1.0, 1.5, 2.0, 4.0]
    expected = scaling.longrope_scaling(8, factors=factors)
    assert torch.equal(scaling.longrope_scaling(8, factors=torch.tensor(factors)), expected)
    assert torch.equal(scaling.longrope_scaling(8, factors=[torch.tensor(factor) for factor in factors]), expected)
    assert scaling.yarn_attention_factor(torch.tensor(4)) == scaling.yarn_attention_factor(4)
    usual = scaling.longrope_attention_factor(8, **TRAINED)
    assert scaling.longrope_attention_factor(torch.tensor(8), **TRAINED) == usual
    with pytest.raises(TypeError, match=r"factors is tensor\(\[\[1\."):
        scaling.longrope_scaling(8, factors=torch.ones(1, 4))


@pytest.mark.parametrize("number", [torch.tensor(True), torch.tensor(2.0, requires_grad=True), torch.tensor(2j)])
def test_what_would_lose_something_is_refused(number):
    with pytest.raises(TypeError, match=r"factor is tensor\(.*; it must be a number"):
        scaling.linear_scaling(8, factor=number)
