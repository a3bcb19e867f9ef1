"""Frequencies for contexts longer than the trained one, in the parameter names of the field.

Each `*_scaling` returns inv_freq, (rotary_dim // 2,) float64, in rad per token, on the CPU, for `cos_sin` or
`RotaryEmbedding(..., inv_freq=...)`. YaRN and LongRoPE go with an attention factor, by which the tables are multiplied.
`factor` is the new length over the trained one. `frequencies_from_config` chooses by a model's configuration.

Errors: those of `inverse_frequencies`; TypeError where another setting is no number; ValueError where factor is below 1
or infinite, or a length not positive. What a function refuses besides stands with it.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rope_lib._checks import check_flag, check_number
from rope_lib.frequencies import inverse_frequencies

RATIO = " (the new length over the trained one)"


def linear_scaling(rotary_dim: int, *, factor: float, base: float = 10000.0) -> Tensor:
    """Position interpolation: all frequencies divided by factor.

    Source: Chen et al. 2023, section 2.3.

    Example:
        >>> linear_scaling(4, factor=2.0)
        tensor([0.5000, 0.0050], dtype=torch.float64)
    """
    factor = check_number(factor, "factor", RATIO, at_least=1)
    return inverse_frequencies(rotary_dim, base=base, device="cpu") / factor


def ntk_scaling(rotary_dim: int, *, factor: float, base: float = 10000.0) -> Tensor:
    """NTK-aware: base * factor^(d / (d - 2)). The highest frequency stays, the lowest is divided by factor.

    Raises:
        ValueError: rotary_dim is 2: one frequency cannot both stay and shrink.

    Source: Peng et al. 2023, section 3.1.

    Example:
        >>> ntk_scaling(4, factor=2.0)
        tensor([1.0000, 0.0050], dtype=torch.float64)
    """
    factor = check_number(factor, "factor", RATIO, at_least=1)
    inv_freq = inverse_frequencies(rotary_dim, base=base, device="cpu")
    if rotary_dim == 2:
        raise ValueError("rotary_dim is 2; NTK-aware scaling needs at least 4, a fastest and a slowest pair")
    share = torch.linspace(0, 1, len(inv_freq), dtype=torch.float64, device="cpu")
    return inv_freq / factor**share  # as with the other base, which could be too large for a float


def dynamic_ntk_scaling(
    rotary_dim: int, *, factor: float, seq_len: int, max_position_embeddings: int, base: float = 10000.0
) -> Tensor:
    """NTK-aware with a factor that grows with the text: factor * seq_len / max_position_embeddings - (factor - 1).

    Up to the trained length nothing changes. Beyond it the frequencies depend on seq_len, so keys that
    were rotated and cached for a shorter text are wrong: cache keys before they are rotated.

    Source: the models' code; Peng et al. 2023, section 3.3, names the idea (there the factor is the ratio of lengths).

    Example:
        >>> lengths = {"seq_len": 3072, "max_position_embeddings": 2048}
        >>> dynamic_ntk_scaling(4, factor=2.0, **lengths)
        tensor([1.0000, 0.0050], dtype=torch.float64)
    """
    factor = check_number(factor, "factor", RATIO, at_least=1)
    seq_len = check_number(seq_len, "seq_len", above=0)
    max_position_embeddings = check_number(max_position_embeddings, "max_position_embeddings", above=0)
    stretch = 1 + factor * (max(seq_len, max_position_embeddings) / max_position_embeddings - 1)
    return ntk_scaling(rotary_dim, factor=stretch, base=base)


def ntk_by_parts_scaling(
    rotary_dim: int, *, factor: float, original_max_position_embeddings: int, beta_fast: float = 32.0,
    beta_slow: float = 1.0, base: float = 10000.0,
) -> Tensor:  # fmt: skip
    """Pairs that make many turns in the trained length stay, pairs that make few are interpolated.

    A pair with at least beta_fast turns keeps its frequency, one with at most beta_slow turns is divided by factor, and
    in between the weight is linear in the number of turns.

    Args:
        original_max_position_embeddings: the trained length, in tokens.
        beta_fast, beta_slow: turns in the trained length. (Llama 3.1: high_freq_factor 4, low_freq_factor 1.)

    Raises:
        ValueError: beta_fast is below beta_slow, or beta_slow not above 0.

    Source: Peng et al. 2023, section 3.2.

    Example:
        >>> trained = {"original_max_position_embeddings": 2048}  # 326, 3.3 turns
        >>> ntk_by_parts_scaling(4, factor=2.0, **trained)
        tensor([1.0000, 0.0054], dtype=torch.float64)
    """
    inv_freq, interpolated = _checked(rotary_dim, factor, original_max_position_embeddings, beta_fast, beta_slow, base)
    turns = float(original_max_position_embeddings) * inv_freq / (2 * math.pi)
    keep = ((turns - float(beta_slow)) / max(float(beta_fast - beta_slow), 1e-9)).clamp(0, 1)  # equal: a step
    return torch.lerp(interpolated, inv_freq, keep)


def yarn_scaling(
    rotary_dim: int, *, factor: float, original_max_position_embeddings: int, beta_fast: float = 32.0,
    beta_slow: float = 1.0, truncate: bool = True, base: float = 10000.0,
) -> Tensor:  # fmt: skip
    """The inverse frequencies of YaRN as it is deployed: the ramp is linear in the *index* of the pair.

    They go with `yarn_attention_factor`. Errors are those of `ntk_by_parts_scaling`.

    Args:
        beta_fast, beta_slow: turns in the trained length at which the ramp begins and ends.
        truncate: round the ends of the ramp outwards to whole pairs, as the authors' code does.

    Source: Peng et al. 2023, section 3.2, and the authors' code; the paper's ramp is that of `ntk_by_parts_scaling`.

    Example:
        >>> yarn_scaling(4, factor=2.0, original_max_position_embeddings=2048)
        tensor([1.0000, 0.0075], dtype=torch.float64)
    """
    check_flag(truncate, "truncate")
    inv_freq, interpolated = _checked(rotary_dim, factor, original_max_position_embeddings, beta_fast, beta_slow, base)
    rotary_dim = 2 * len(inv_freq)
    first, last = (
        rotary_dim * math.log(original_max_position_embeddings / (2 * math.pi * turns)) / (2 * math.log(base))
        for turns in (beta_fast, beta_slow)
    )
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rotary_dim - 1)
    pair = torch.arange(rotary_dim // 2, dtype=torch.float64, device="cpu")
    interpolate = ((pair - first) / max(last - first, 0.001)).clamp(0, 1)
    return torch.lerp(inv_freq, interpolated, interpolate)


def yarn_attention_factor(factor: float, *, mscale: float = 1.0, mscale_all_dim: float = 0.0) -> float:
    """0.1 ln(factor) + 1, by which YaRN multiplies the tables, so that scores grow by its square.

    Args:
        factor: at least 1.
        mscale, mscale_all_dim: DeepSeek's: the ratio of 0.1 mscale ln(factor) + 1 to the same with mscale_all_dim.
            (DeepSeek's models also multiply their scores by the square of the latter, outside of the rotation.)

    Raises:
        ValueError: a scale is negative or infinite.

    Source: Peng et al. 2023, equation 22; the ratio is that of DeepSeek's code.

    Example:
        >>> round(yarn_attention_factor(4.0), 4)
        1.1386
    """
    factor = check_number(factor, "factor", RATIO, at_least=1)
    mscale = check_number(mscale, "mscale", at_least=0)
    mscale_all_dim = check_number(mscale_all_dim, "mscale_all_dim", at_least=0)
    return (0.1 * mscale * math.log(factor) + 1) / (0.1 * mscale_all_dim * math.log(factor) + 1)


def longrope_scaling(rotary_dim: int, *, factors: Sequence[float], base: float = 10000.0) -> Tensor:
    """The inverse frequencies of LongRoPE: each divided by a factor of its own, found by a search.

    Args:
        factors: rotary_dim // 2 numbers, the long_factor or short_factor of a model's configuration.

    Raises:
        ValueError: factors has the wrong length or a number not positive and finite.

    Source: Ding et al. 2024, section 3.

    Example:
        >>> longrope_scaling(4, factors=[1.0, 2.0])
        tensor([1.0000, 0.0050], dtype=torch.float64)
    """
    inv_freq = inverse_frequencies(rotary_dim, base=base, device="cpu")
    factors = factors.tolist() if isinstance(factors, Tensor) and factors.ndim == 1 else factors
    if not isinstance(factors, Sequence) or isinstance(factors, str | bytes):
        raise TypeError(f"factors is {factors!r:.60}; it must be a list of numbers, such as a model's long_factor")
    if len(factors) != len(inv_freq):
        raise ValueError(f"factors has {len(factors)} numbers; it must have rotary_dim // 2 = {len(inv_freq)}")
    numbers = [check_number(factor, f"factors[{i}]", above=0) for i, factor in enumerate(factors)]
    return inv_freq / torch.tensor(numbers, dtype=torch.float64, device="cpu")


def longrope_attention_factor(factor: float, *, original_max_position_embeddings: int) -> float:
    """sqrt(1 + ln(factor) / ln(original_max_position_embeddings)), by which LongRoPE's models multiply the tables.

    Raises:
        ValueError: the length is not above 1.

    Source: the code of the Phi-3 models.

    Example:
        >>> trained = {"original_max_position_embeddings": 4096}
        >>> round(longrope_attention_factor(32.0, **trained), 4)
        1.1902
    """
    factor = check_number(factor, "factor", RATIO, at_least=1)
    trained = check_number(original_max_position_embeddings, "original_max_position_embeddings", above=1)
    return math.sqrt(1 + math.log(factor) / math.log(trained))


def proportional_scaling(rotary_dim: int, *, partial_rotary_factor: float, base: float = 10000.0) -> Tensor:
    """p-RoPE: a share of the pairs, the fastest ones, keep their frequencies; the others do not turn.

    The number of pairs is rounded down, as deployed: 0.29 of 100 pairs are 28, for 0.29 * 100 is 28.999999999999996.

    Raises:
        ValueError: partial_rotary_factor is not between 0 and 1.

    Source: Barbero et al. 2024, section 6.

    Example:
        >>> proportional_scaling(8, partial_rotary_factor=0.5)
        tensor([1.0000, 0.1000, 0.0000, 0.0000], dtype=torch.float64)
    """
    partial_rotary_factor = check_number(partial_rotary_factor, "partial_rotary_factor", at_least=0, at_most=1)
    inv_freq = inverse_frequencies(rotary_dim, base=base, device="cpu")
    inv_freq[int(partial_rotary_factor * len(inv_freq)) :] = 0
    return inv_freq


def _checked(
    rotary_dim: int, factor: float, length: int, beta_fast: float, beta_slow: float, base: float
) -> tuple[Tensor, Tensor]:
    """The inverse frequencies as trained and as interpolated, after the checks that by-parts and YaRN share."""
    length = check_number(length, "original_max_position_embeddings", above=0)
    beta_fast = check_number(beta_fast, "beta_fast")
    beta_slow = check_number(beta_slow, "beta_slow")
    if not beta_fast >= beta_slow > 0:
        raise ValueError(
            f"beta_fast is {beta_fast:g} and beta_slow {beta_slow:g}; needed are beta_fast >= beta_slow > 0, in turns "
            "per trained length. Are the two swapped? (Llama 3's files call them high_freq_factor, low_freq_factor)"
        )
    interpolated = linear_scaling(rotary_dim, factor=factor, base=base)
    return inverse_frequencies(rotary_dim, base=base, device="cpu"), interpolated
