"""Frequencies for contexts longer than the trained one, in the parameter names of the field.

Each function returns inv_freq for `cos_sin` or `RotaryEmbedding(..., inv_freq=...)`; YaRN and LongRoPE also return the
attention_factor by which the tables are multiplied. Shapes: inv_freq is (rotary_dim // 2,) float64, in rad per token,
on the CPU. `factor` is the new length over the trained one.
"""

import math
from collections.abc import Sequence

import torch
from torch import Tensor

from rope_lib._checks import check_dim, check_positions
from rope_lib.frequencies import inverse_frequencies


def linear_scaling(rotary_dim: int, *, factor: float, base: float = 10000.0) -> Tensor:
    """Position interpolation: all speeds divided by factor (Chen et al. 2023, section 2.3).

    Raises:
        ValueError: factor is below 1, or as `inverse_frequencies`.
    """
    _check_factor(factor)
    return inverse_frequencies(rotary_dim, base=base, device="cpu") / factor


def ntk_scaling(rotary_dim: int, *, factor: float, base: float = 10000.0) -> Tensor:
    """NTK-aware: base * factor^(d / (d - 2)). The fastest speed stays, the slowest is divided by factor.

    Raises:
        ValueError: factor is below 1, rotary_dim is 2 (one speed cannot both stay and shrink), or as
            `inverse_frequencies`.

    Source: Peng et al. 2023, section 3.1.
    """
    _check_factor(factor)
    if rotary_dim == 2:
        raise ValueError("rotary_dim is 2; NTK-aware scaling needs at least 4, a fastest and a slowest pair")
    return inverse_frequencies(rotary_dim, base=base * factor ** (rotary_dim / (rotary_dim - 2)), device="cpu")


def dynamic_ntk_scaling(
    rotary_dim: int, *, factor: float, seq_len: int, max_position_embeddings: int, base: float = 10000.0
) -> Tensor:
    """NTK-aware with a factor that grows with the text: factor * seq_len / max_position_embeddings - (factor - 1).

    Up to the trained length nothing changes. Beyond, the speeds depend on seq_len: keys that were rotated and cached
    for a shorter text are then wrong, so cache keys before rotating them.

    Raises:
        ValueError: as `ntk_scaling`, or a length is not positive.
    """
    _check_factor(factor)
    _check_length(seq_len, "seq_len")
    _check_length(max_position_embeddings, "max_position_embeddings")
    stretch = factor * max(seq_len, max_position_embeddings) / max_position_embeddings - (factor - 1)
    return ntk_scaling(rotary_dim, factor=stretch, base=base)


def ntk_by_parts_scaling(
    rotary_dim: int,
    *,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    base: float = 10000.0,
) -> Tensor:
    """Pairs that make many turns in the trained length stay, pairs that make few are interpolated.

    A pair with at least beta_fast turns keeps its speed, one with at most beta_slow turns is divided by factor, and in
    between the weight is linear in the number of turns.

    Raises:
        ValueError: as `linear_scaling`; the length is not positive; beta_fast is not above beta_slow.

    Source: Peng et al. 2023, section 3.2.
    """
    inv_freq, interpolated = _speeds(rotary_dim, factor, original_max_position_embeddings, beta_fast, beta_slow, base)
    turns = original_max_position_embeddings * inv_freq / (2 * math.pi)
    keep = ((turns - beta_slow) / (beta_fast - beta_slow)).clamp(0, 1)
    return torch.lerp(interpolated, inv_freq, keep)


def llama3_scaling(
    rotary_dim: int,
    *,
    factor: float = 8.0,
    low_freq_factor: float = 1.0,
    high_freq_factor: float = 4.0,
    original_max_position_embeddings: int = 8192,
    base: float = 500000.0,
) -> Tensor:
    """The scaling of Llama 3.1: NTK-by-parts under other names, with 4 turns in the place of 32.

    Raises:
        ValueError: as `ntk_by_parts_scaling`.
    """
    return ntk_by_parts_scaling(
        rotary_dim,
        factor=factor,
        original_max_position_embeddings=original_max_position_embeddings,
        beta_fast=high_freq_factor,
        beta_slow=low_freq_factor,
        base=base,
    )


def yarn_scaling(
    rotary_dim: int,
    *,
    factor: float,
    original_max_position_embeddings: int,
    beta_fast: float = 32.0,
    beta_slow: float = 1.0,
    attention_factor: float | None = None,
    truncate: bool = True,
    base: float = 10000.0,
) -> tuple[Tensor, float]:
    """YaRN as it is deployed: the ramp is linear in the *index* of the pair, from one turn count to the other.

    Args:
        beta_fast, beta_slow: turns in the trained length at which the ramp begins and ends.
        attention_factor: multiplies the tables, so that scores grow by its square; None means 0.1 ln(factor) + 1.
        truncate: round the ends of the ramp outwards to whole pairs, as the authors' code does.

    Returns:
        inv_freq and attention_factor.

    Raises:
        ValueError: as `ntk_by_parts_scaling`.

    Source: Peng et al. 2023, sections 3.2 and 3.4; the ramp follows the authors' code, where the paper's is linear in
    the number of turns (`ntk_by_parts_scaling`).
    """
    inv_freq, interpolated = _speeds(rotary_dim, factor, original_max_position_embeddings, beta_fast, beta_slow, base)
    first, last = (
        rotary_dim * math.log(original_max_position_embeddings / (2 * math.pi * turns)) / (2 * math.log(base))
        for turns in (beta_fast, beta_slow)
    )
    if truncate:
        first, last = math.floor(first), math.ceil(last)
    first, last = max(first, 0), min(last, rotary_dim - 1)
    pair = torch.arange(rotary_dim // 2, dtype=torch.float64, device="cpu")
    interpolate = ((pair - first) / max(last - first, 0.001)).clamp(0, 1)
    if attention_factor is None:
        attention_factor = 0.1 * math.log(factor) + 1
    return torch.lerp(inv_freq, interpolated, interpolate), attention_factor


def longrope_scaling(
    rotary_dim: int,
    *,
    factors: Sequence[float],
    factor: float,
    original_max_position_embeddings: int,
    attention_factor: float | None = None,
    base: float = 10000.0,
) -> tuple[Tensor, float]:
    """LongRoPE: each speed divided by a factor of its own, found by a search.

    Args:
        factors: rotary_dim // 2 numbers, the long_factor or short_factor of a model's configuration.
        attention_factor: multiplies the tables; None means sqrt(1 + ln(factor) / ln(original_max_position_embeddings)).

    Returns:
        inv_freq and attention_factor.

    Raises:
        ValueError: as `linear_scaling`; the length is not above 1; factors has the wrong length or a number that is
            not positive.

    Source: Ding et al. 2024, section 3; the default attention_factor is that of the models' code.
    """
    _check_factor(factor)
    if not original_max_position_embeddings > 1:  # its logarithm is divided by
        raise ValueError(f"original_max_position_embeddings is {original_max_position_embeddings}; it must be above 1")
    inv_freq = inverse_frequencies(rotary_dim, base=base, device="cpu")
    if len(factors) != len(inv_freq) or min(factors) <= 0:
        raise ValueError(
            f"factors has {len(factors)} numbers, the smallest {min(factors, default=None)}; it must have "
            f"rotary_dim // 2 = {len(inv_freq)} positive ones"
        )
    if attention_factor is None:
        attention_factor = math.sqrt(1 + math.log(factor) / math.log(original_max_position_embeddings))
    return inv_freq / torch.tensor(factors, dtype=torch.float64, device="cpu"), attention_factor


def proportional_scaling(rotary_dim: int, *, partial_rotary_factor: float, base: float = 10000.0) -> Tensor:
    """p-RoPE: the fraction partial_rotary_factor of the pairs (rounded down), the fastest, keep their speeds.

    The others stand still.

    Raises:
        ValueError: partial_rotary_factor is not between 0 and 1, or as `inverse_frequencies`.

    Source: Barbero et al. 2024, section 6.
    """
    if not 0 <= partial_rotary_factor <= 1:
        raise ValueError(f"partial_rotary_factor is {partial_rotary_factor}; it must be between 0 and 1")
    inv_freq = inverse_frequencies(rotary_dim, base=base, device="cpu")
    inv_freq[int(partial_rotary_factor * len(inv_freq)) :] = 0
    return inv_freq


def _speeds(
    rotary_dim: int, factor: float, length: int, beta_fast: float, beta_slow: float, base: float
) -> tuple[Tensor, Tensor]:
    """The speeds as trained and as interpolated, after the checks that by-parts and YaRN share."""
    _check_length(length, "original_max_position_embeddings")
    if not beta_fast > beta_slow > 0:
        raise ValueError(
            f"beta_fast is {beta_fast} and beta_slow {beta_slow}; needed are beta_fast > beta_slow > 0, in turns per "
            "trained length (are the two swapped?)"
        )
    interpolated = linear_scaling(rotary_dim, factor=factor, base=base)
    return inverse_frequencies(rotary_dim, base=base, device="cpu"), interpolated


def _check_factor(factor: float) -> None:
    if not (math.isfinite(factor) and factor >= 1):
        raise ValueError(f"factor is {factor}; it must be at least 1, the new length over the trained one")


def _check_length(length: int, name: str) -> None:
    if not length > 0:
        raise ValueError(f"{name} is {length}; it must be a positive number of tokens")


def xpos_scale(positions: Tensor, rotary_dim: int, *, scale_base: float = 512.0) -> Tensor:
    """The factors zeta_i^(m / scale_base) of xPos: multiply cos and sin of queries by them, those of keys by 1 / them.

    zeta_i = (2i / rotary_dim + 0.4) / 1.4 lies below 1 and rises with the pair, so slow pairs decay least. Count
    positions from a nearby origin: the score does not change, and the factors stay in range.

    Args:
        positions: (...,) in tokens.
        rotary_dim: positive and even.
        scale_base: tokens in which the factor zeta_i is reached.

    Returns:
        (..., rotary_dim // 2) float64.

    Raises:
        TypeError, ValueError: as `cos_sin` and `inverse_frequencies`, or scale_base is not positive.

    Source: Sun et al. 2023, section 3, and the authors' code.
    """
    check_positions(positions)
    check_dim(rotary_dim, "rotary_dim")
    if not scale_base > 0:
        raise ValueError(f"scale_base is {scale_base}; it must be a positive number of tokens")
    share = torch.arange(0, rotary_dim, 2, dtype=torch.float64, device=positions.device) / rotary_dim
    return ((share + 0.4) / 1.4) ** (positions[..., None].double() / scale_base)
