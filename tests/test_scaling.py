import json
import math

import pytest
import torch
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from rope_lib import RotaryEmbedding, apply_rotary_emb, cos_sin, inverse_frequencies, reference, scaling

PEER = json.loads((ROOT / "tests" / "data" / "transformers_rope.json").read_text())["cases"]
LONG_FACTOR = [1 + 0.5 * pair for pair in range(16)]
OURS = {  # each case with the settings that made the stored numbers
    "linear": lambda: scaling.linear_scaling(32, factor=4),
    "dynamic_short": lambda: scaling.dynamic_ntk_scaling(32, factor=2, seq_len=1000, max_position_embeddings=2048),
    "dynamic_long": lambda: scaling.dynamic_ntk_scaling(32, factor=2, seq_len=10000, max_position_embeddings=2048),
    "yarn": lambda: scaling.yarn_scaling(32, factor=16, original_max_position_embeddings=4096),
    "yarn_no_truncate": lambda: scaling.yarn_scaling(
        32,
        factor=40,
        original_max_position_embeddings=4096,
        beta_fast=20,
        beta_slow=2,
        truncate=False,
        base=150000,
    ),
    "yarn_attention_factor": lambda: scaling.yarn_scaling(
        32, factor=4, original_max_position_embeddings=512, attention_factor=1.25
    ),
    "llama3": lambda: scaling.llama3_scaling(32),
    "longrope": lambda: scaling.longrope_scaling(
        32, factors=LONG_FACTOR, factor=8, original_max_position_embeddings=4096
    ),
    "proportional": lambda: scaling.proportional_scaling(32, partial_rotary_factor=0.5),
}


@pytest.mark.parametrize("name", PEER)
def test_an_independent_implementation_agrees(name):
    """The stored numbers were computed in float32, whose powers are good to some 1e-6."""
    ours = OURS[name]()
    inv_freq, attention_factor = ours if isinstance(ours, tuple) else (ours, 1.0)
    assert inv_freq.tolist() == pytest.approx(PEER[name]["inv_freq"], rel=2e-6, abs=0)
    assert attention_factor == pytest.approx(PEER[name]["attention_factor"], rel=1e-12)


dims = st.integers(2, 64).map(lambda pairs: 2 * pairs)
factors = st.floats(1, 64)


@given(dims, factors, st.floats(100, 1e6))
def test_ntk_keeps_the_fastest_and_divides_the_slowest(dim, factor, base):
    plain, scaled = inverse_frequencies(dim, base=base), scaling.ntk_scaling(dim, factor=factor, base=base)
    assert scaled[0] == 1
    assert scaled[-1].item() == pytest.approx(plain[-1].item() / factor, rel=1e-12)


@given(dims, factors, st.floats(100, 1e6), st.integers(100, 100_000), st.floats(0.1, 4), st.floats(0.1, 60))
def test_by_parts_is_the_plain_loop(dim, factor, base, length, beta_slow, width):
    beta_fast = beta_slow + width
    fast = scaling.ntk_by_parts_scaling(
        dim,
        factor=factor,
        original_max_position_embeddings=length,
        beta_fast=beta_fast,
        beta_slow=beta_slow,
        base=base,
    )
    settings = (dim, factor, length, beta_fast, beta_slow, base)
    loop = [reference.ntk_by_parts_frequency(pair, *settings) for pair in range(dim // 2)]
    assert fast.tolist() == pytest.approx(loop, rel=1e-9)


@given(dims, factors, st.integers(600, 100_000), st.booleans())
def test_yarn_lies_between_the_two_ends_and_falls(dim, factor, length, truncate):
    inv_freq, attention_factor = scaling.yarn_scaling(
        dim, factor=factor, original_max_position_embeddings=length, truncate=truncate
    )
    plain = inverse_frequencies(dim)
    assert (inv_freq <= plain * (1 + 1e-12)).all()
    assert (inv_freq >= plain / factor * (1 - 1e-12)).all()
    assert (inv_freq.diff() < 0).all()
    assert attention_factor == pytest.approx(1 + 0.1 * math.log(factor))


def test_a_factor_of_one_changes_nothing():
    plain = inverse_frequencies(16)
    for scaled in (
        scaling.linear_scaling(16, factor=1),
        scaling.ntk_scaling(16, factor=1),
        scaling.dynamic_ntk_scaling(16, factor=1, seq_len=10, max_position_embeddings=10),
        scaling.ntk_by_parts_scaling(16, factor=1, original_max_position_embeddings=2048),
        scaling.yarn_scaling(16, factor=1, original_max_position_embeddings=2048)[0],
        scaling.llama3_scaling(16, factor=1, base=10000),
        scaling.proportional_scaling(16, partial_rotary_factor=1),
    ):
        torch.testing.assert_close(scaled, plain, rtol=1e-15, atol=0)


def test_position_interpolation_is_fractional_positions(generator):
    q, k = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    scaled = RotaryEmbedding(8, interleaved=True, inv_freq=scaling.linear_scaling(8, factor=4))
    squeezed = RotaryEmbedding(8, interleaved=True)(q, k, positions=torch.arange(6).double() / 4)
    for ours, expected in zip(scaled(q, k), squeezed, strict=True):
        torch.testing.assert_close(ours, expected, rtol=0, atol=1e-14)


def test_attention_factor_multiplies_scores_by_its_square_and_survives_casting(generator):
    q, k = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    inv_freq, attention_factor = scaling.yarn_scaling(8, factor=8, original_max_position_embeddings=1024)
    plain = RotaryEmbedding(8, interleaved=True, inv_freq=inv_freq)
    warm = RotaryEmbedding(8, interleaved=True, inv_freq=inv_freq, attention_factor=attention_factor)
    scores = [rotated_q @ rotated_k.T for rotated_q, rotated_k in (plain(q, k), warm(q, k))]
    torch.testing.assert_close(scores[1], attention_factor**2 * scores[0])
    assert torch.equal(warm.to(torch.bfloat16)(q, k)[0], warm(q, k)[0])


def test_xpos_scores_are_relative_and_decay(generator):
    q, k = torch.randn(2, 6, 8, generator=generator, dtype=torch.float64)
    scores = []
    for shift in (0, 300):
        positions = torch.arange(6) * 50 + shift
        cos, sin = cos_sin(positions, inverse_frequencies(8), dtype=torch.float64)
        scale = scaling.xpos_scale(positions, 8)
        rotated_q = apply_rotary_emb(q, cos * scale, sin * scale, interleaved=True)
        rotated_k = apply_rotary_emb(k, cos / scale, sin / scale, interleaved=True)
        scores.append(rotated_q @ rotated_k.T)
    torch.testing.assert_close(*scores, rtol=1e-9, atol=1e-9)
    scale = scaling.xpos_scale(torch.tensor([0, 512]), 8)
    assert scale[0].tolist() == [1] * 4
    assert scale[1].tolist() == pytest.approx([(i / 4 + 0.4) / 1.4 for i in range(4)])


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda: scaling.linear_scaling(8, factor=0.5), "factor is 0.5; it must be at least 1"),
        (lambda: scaling.linear_scaling(7, factor=2), "rotary_dim is 7"),
        (lambda: scaling.ntk_scaling(2, factor=2), "rotary_dim is 2; NTK-aware scaling needs at least 4"),
        (
            lambda: scaling.dynamic_ntk_scaling(8, factor=2, seq_len=0, max_position_embeddings=10),
            "seq_len is 0; it must be a positive number of tokens",
        ),
        (
            lambda: scaling.ntk_by_parts_scaling(
                8, factor=2, original_max_position_embeddings=10, beta_fast=1, beta_slow=32
            ),
            "beta_fast is 1 and beta_slow 32; .*are the two swapped",
        ),
        (
            lambda: scaling.yarn_scaling(8, factor=2, original_max_position_embeddings=-1),
            "original_max_position_embeddings is -1",
        ),
        (
            lambda: scaling.longrope_scaling(8, factors=[1, 2], factor=2, original_max_position_embeddings=10),
            "factors has 2 numbers, the smallest 1; it must have rotary_dim // 2 = 4 positive ones",
        ),
        (
            lambda: scaling.longrope_scaling(8, factors=[1, 2, 0, 4], factor=2, original_max_position_embeddings=10),
            "factors has 4 numbers, the smallest 0",
        ),
        (lambda: scaling.proportional_scaling(8, partial_rotary_factor=2), "partial_rotary_factor is 2"),
        (lambda: scaling.linear_scaling(8, factor=2, base=math.inf), "base is inf; it must be a finite number"),
        (
            lambda: RotaryEmbedding(8, interleaved=True, inv_freq=torch.ones(8).double()),
            r"inv_freq has shape \(8,\); it must be \(4,\)",
        ),
        (lambda: scaling.xpos_scale(torch.arange(3), 8, scale_base=0), "scale_base is 0; it must be a positive number"),
        (
            lambda: RotaryEmbedding(8, interleaved=True, base=5e5, inv_freq=scaling.linear_scaling(8, factor=4)),
            "base is 500000.0, but inv_freq is given too",
        ),
        (
            lambda: scaling.longrope_scaling(8, factors=[1] * 4, factor=2, original_max_position_embeddings=1),
            "original_max_position_embeddings is 1; it must be above 1",
        ),
    ],
)
def test_errors(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize(
    "inv_freq", [torch.ones(4), torch.ones(4).bfloat16(), (torch.ones(4).double(), 1.1), [1.0, 0.1, 0.01, 0.001]]
)
def test_other_speeds_must_be_float64(inv_freq):
    with pytest.raises(TypeError, match=r"must be a float64 tensor \(YaRN and LongRoPE return one"):
        RotaryEmbedding(8, interleaved=True, inv_freq=inv_freq)


def test_a_text_of_one_token_is_short():
    plain = scaling.dynamic_ntk_scaling(8, factor=2, seq_len=1, max_position_embeddings=64)
    torch.testing.assert_close(plain, inverse_frequencies(8))


@pytest.mark.parametrize(("dim", "share", "turning"), [(32, 0.3, 4), (10, 0.5, 2), (14, 0.5, 3), (8, 1, 4), (8, 0, 0)])
def test_the_share_of_pairs_is_rounded_down(dim, share, turning):
    """As transformers does: int(rope_proportion * head_dim // 2)."""
    assert int((scaling.proportional_scaling(dim, partial_rotary_factor=share) > 0).sum()) == turning


def test_further_settings_are_used():
    x = scaling.xpos_scale(torch.tensor([7]), 4, scale_base=7.0)
    torch.testing.assert_close(x, torch.tensor([[0.4 / 1.4, 0.9 / 1.4]], dtype=torch.float64))
    grown = scaling.dynamic_ntk_scaling(8, factor=2, seq_len=100, max_position_embeddings=50, base=50.0)
    torch.testing.assert_close(grown, scaling.ntk_scaling(8, factor=3, base=50.0))
    _, factor = scaling.longrope_scaling(
        8, factors=[1] * 4, factor=2, original_max_position_embeddings=8, attention_factor=1.5
    )
    assert factor == 1.5


@pytest.mark.parametrize(
    ("dim", "length", "base", "weights"),
    [(8, 16, 100.0, [0, 1, 1, 1]), (4, 205, 4.0, [0, 1 / 3])],
    ids=["begins before the first pair", "ends after the last one"],
)
def test_the_ramp_of_yarn_stays_among_the_dimensions(dim, length, base, weights):
    """By hand: ramps from -3 to 1 and from 0 to 6, cut to 0 .. 1 and 0 .. 3."""
    inv_freq, _ = scaling.yarn_scaling(dim, factor=2, original_max_position_embeddings=length, base=base)
    weight = torch.tensor(weights, dtype=torch.float64)
    torch.testing.assert_close(inv_freq, inverse_frequencies(dim, base=base) * (1 - weight / 2))
