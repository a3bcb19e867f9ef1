"""How fast each pair of dimensions turns, and the tables of cosines and sines."""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

from rope_lib._checks import FULL, check_dim, check_flag, check_inv_freq, check_number, check_positions


def inverse_frequencies(rotary_dim: int, *, base: float = 10000.0, device: torch.device | str | None = None) -> Tensor:
    """Angular velocities theta_i = base^(-2i / rotary_dim) for i = 0 .. rotary_dim/2 - 1.

    Args:
        rotary_dim: number of dimensions that are rotated; positive and even.
        base: the base b > 1; it sets the slowest pair.
        device: where the result lives.

    Returns:
        (rotary_dim // 2,) float64, in rad per token, falling from 1; on the CPU where the device has no float64.

    Raises:
        TypeError: rotary_dim is no int, or base no number.
        ValueError: rotary_dim is not positive and even, or base not finite and above 1.

    Source: Vaswani et al. 2017, section 3.5; Su et al. 2021, section 3.2.2 (there i counts from 1).

    Example:
        >>> inverse_frequencies(4, base=100.0)
        tensor([1.0000, 0.1000], dtype=torch.float64)
    """
    rotary_dim = check_dim(rotary_dim, "rotary_dim")
    base = check_number(base, "base", above=1)
    exponent = torch.arange(0, rotary_dim, 2, dtype=torch.float64, device="cpu") / rotary_dim
    return (base**-exponent).to(_float64_device(device))


def cos_sin(positions: Tensor, inv_freq: Tensor, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Tables of cos(m theta_i) and sin(m theta_i): angles in float64, rounded once to `dtype`.

    Args:
        positions: (...,) positions m in tokens; integers, or float32/float64 (fractional and negative ones are fine).
            Whole numbers are exact up to 2^24 in float32, and up to 2^53 in integers, which become float64.
        inv_freq: (rotary_dim // 2,) float64, in rad per token; exchanged with float64 positions it passes in silence.
        dtype: of the tables; float32 or float64.

    Returns:
        cos, sin: each (..., rotary_dim // 2), on the device of `positions`.

    Raises:
        TypeError: positions or inv_freq is no dense tensor, positions are half precision or boolean, inv_freq is not
            float64, or dtype neither float32 nor float64: each would damage the angles.
        ValueError: inv_freq is not a vector.

    Example:
        >>> cos, sin = cos_sin(torch.arange(1000, 1002), inverse_frequencies(4))
        >>> cos
        tensor([[ 0.5624, -0.8391],
                [-0.3919, -0.8336]])
    """
    check_positions(positions)
    check_inv_freq(inv_freq)
    return _tables(positions[..., None], inv_freq, dtype)


def _tables(positions: Tensor, inv_freq: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    if dtype not in FULL:
        raise TypeError(
            f"dtype is {dtype!r}; tables are torch.float32 or torch.float64 (half-precision queries and keys are "
            "rotated in float32 and rounded once)"
        )
    if inv_freq.is_meta and not positions.is_meta:
        raise ValueError("inv_freq is on meta and has no values; make it with device='cpu'")
    device = _float64_device(positions.device)
    angles = positions.to(device, torch.float64) * inv_freq.to(device)
    return angles.cos().to(positions.device, dtype), angles.sin().to(positions.device, dtype)


def _float64_device(device: torch.device | str | None) -> torch.device:
    """Apple's GPUs (mps) have no float64: angles are computed on the CPU for them."""
    device = torch.empty(0, device=device).device  # the default device for None; torch.compile can follow this
    return torch.device("cpu") if device.type == "mps" else device


def axial_cos_sin(positions: Tensor, inv_freq: Tensor, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """`cos_sin` for positions with several coordinates, such as row and column: each turns pairs of its own.

    Args:
        positions: (..., axes) in tokens, e.g. (row, column) of an image patch: the coordinates are the last axis.
        inv_freq: (rotary_dim // (2 * axes),) float64, by which each coordinate turns its pairs.

    Returns:
        cos, sin: each (..., axes * len(inv_freq)); the first len(inv_freq) pairs belong to the first coordinate.

    Raises:
        TypeError, ValueError: as `cos_sin`, or positions have no axis of coordinates.

    Source: the block form of Su et al. 2021, equation 15, with one coordinate per group of blocks.

    Example:
        >>> places = torch.tensor([[3, 5], [4, 5]])  # of two patches
        >>> cos, sin = axial_cos_sin(places, inverse_frequencies(4))
        >>> cos.shape  # four pairs, so eight dimensions
        torch.Size([2, 4])
    """
    check_positions(positions)
    if not positions.ndim:
        raise ValueError("positions is one number; it must be (..., axes), e.g. one (row, column) for each patch")
    cos, sin = cos_sin(positions, inv_freq, dtype=dtype)
    return cos.flatten(-2), sin.flatten(-2)


def sectioned_cos_sin(
    positions: Tensor, inv_freq: Tensor, *, sections: Sequence[int], interleaved_sections: bool,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:  # fmt: skip
    """`cos_sin` for positions with several coordinates that share the pairs, as in M-RoPE of Qwen2-VL and Qwen3-VL.

    The first sections[0] pairs turn by the first coordinate, the next sections[1] by the second, and so on; with
    interleaved_sections the pairs take the coordinates in turn. Where all coordinates agree, as for text, this is
    `cos_sin`, so a model that got the wrong one of the two goes wrong at its first image only.

    Args:
        positions: (..., axes) in tokens, e.g. (time, row, column): the coordinates are the last axis. (Hugging Face's
            position_ids have them first: movedim(0, -1).)
        inv_freq: (rotary_dim // 2,) float64, in rad per token: the speed of each pair, in any order. Where each
            coordinate has a spectrum of its own (Flux, Wan, CogVideoX), they are laid end to end, for example
            torch.cat([inverse_frequencies(dims) for dims in (16, 56, 56)]).
        sections: pairs of each coordinate, e.g. (16, 24, 24) for rotary_dim 128: `mrope_section` in a configuration.
        interleaved_sections: True for Qwen3-VL, Qwen3.5, Qwen3-Omni, whose files may lack `mrope_interleaved`: pair 0
            turns by the first coordinate, pair 1 by the second, and so on around; where a later coordinate has its
            pairs, the first one takes over. False for Qwen2-VL and Qwen2.5-VL. Neither is the order of ERNIE 4.5 VL:
            row and column in turn, then time.

    Returns:
        cos, sin: each (..., rotary_dim // 2). An attention_factor (YaRN) multiplies both.

    Raises:
        TypeError: as `cos_sin`; sections is no list, or interleaved_sections neither True nor False.
        ValueError: there is not one section, a whole number that is not negative, for each coordinate; they do not add
            up to len(inv_freq); or one of them is too large to be interleaved.

    Source: Wang et al. 2024, section 2.1; the split into sections follows the authors' code, in both forms.

    Example:
        >>> place, inv_freq = torch.tensor([[7, 0, 2]]), inverse_frequencies(16)
        >>> settings = {"sections": (2, 3, 3), "interleaved_sections": False}
        >>> cos, sin = sectioned_cos_sin(place, inv_freq, **settings)
        >>> cos.shape
        torch.Size([1, 8])
    """
    check_positions(positions)
    check_inv_freq(inv_freq)
    check_flag(interleaved_sections, "interleaved_sections")
    if not isinstance(sections, Sequence):
        raise TypeError(f"sections is {sections!r:.60}; it must be a tuple or list, such as (16, 24, 24)")
    axes = positions.shape[-1] if positions.ndim else 0
    whole = all(isinstance(section, int) and section >= 0 for section in sections)
    if not whole or sum(sections) != len(inv_freq) or axes != len(sections):
        raise ValueError(
            f"sections are {tuple(sections)}, inv_freq has {len(inv_freq)} entries, positions have {axes} coordinates; "
            "there must be one section per coordinate, a whole number, and they must add up to the length of inv_freq"
        )
    turns_by = [axis for axis, section in enumerate(sections) for _ in range(section)]
    if interleaved_sections:
        turns_by = [i % axes if i // axes < sections[i % axes] else 0 for i in range(len(inv_freq))]
        found = tuple(turns_by.count(axis) for axis in range(axes))
        if found != tuple(sections):
            raise ValueError(f"sections are {tuple(sections)}; interleaved, so many pairs would be {found}")
    coordinates = positions.index_select(-1, torch.tensor(turns_by, device="cpu").to(positions.device))
    return _tables(coordinates, inv_freq, dtype)
