"""How fast each pair of dimensions turns, and the tables of cosines and sines."""

from collections.abc import Sequence

import torch
from torch import Tensor

from rope_lib._checks import HALF, check_base, check_dim, check_positions


def inverse_frequencies(rotary_dim: int, *, base: float = 10000.0, device: torch.device | str | None = None) -> Tensor:
    """Angular velocities theta_i = base^(-2i / rotary_dim) for i = 0 .. rotary_dim/2 - 1.

    Args:
        rotary_dim: number of dimensions that are rotated; positive and even.
        base: the base b > 1; it sets the slowest pair.
        device: where the result lives.

    Returns:
        (rotary_dim // 2,) float64, in rad per token, falling from 1. On devices without float64 the tensor stays on
        the CPU.

    Raises:
        TypeError, ValueError: rotary_dim is not a positive even int, or base is not above 1.

    Source: Vaswani et al. 2017, section 3.5; Su et al. 2021, section 3.2.2 (there i counts from 1).
    """
    check_dim(rotary_dim, "rotary_dim")
    check_base(base)
    exponent = torch.arange(0, rotary_dim, 2, dtype=torch.float64, device="cpu") / rotary_dim
    return (base**-exponent).to(_float64_device(device))


def cos_sin(positions: Tensor, inv_freq: Tensor, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
    """Tables of cos(m theta_i) and sin(m theta_i): angles in float64, rounded once to `dtype`.

    Args:
        positions: (...,) positions m in tokens; integers, or float32/float64 (fractional and negative ones are fine).
        inv_freq: (rotary_dim // 2,) float64, in rad per token.
        dtype: of the tables; float32 or float64.

    Returns:
        cos, sin: each (..., rotary_dim // 2), on the device of `positions`.

    Raises:
        TypeError: half-precision positions, frequencies or tables, which would spoil the angles.
        ValueError: inv_freq is not a vector.
    """
    check_positions(positions)
    if inv_freq.dtype != torch.float64:
        raise TypeError(
            f"inv_freq has dtype {inv_freq.dtype}; angles need torch.float64 "
            "(was the module cast with .to(...), or the table made in float32?)"
        )
    if inv_freq.ndim != 1:
        raise ValueError(f"inv_freq has shape {tuple(inv_freq.shape)}; it must be (rotary_dim // 2,)")
    _check_table_dtype(dtype)
    return _tables(positions[..., None], inv_freq, dtype)


def _tables(positions: Tensor, inv_freq: Tensor, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
    device = _float64_device(positions.device)
    angles = positions.to(device, torch.float64) * inv_freq.to(device)
    return angles.cos().to(positions.device, dtype), angles.sin().to(positions.device, dtype)


def _float64_device(device: torch.device | str | None) -> torch.device:
    """Apple's GPUs (mps) have no float64: angles are computed on the CPU for them."""
    device = torch.empty(0, device=device).device  # the default device for None; torch.compile can follow this
    return torch.device("cpu") if device.type == "mps" else device


def axial_cos_sin(
    positions: Tensor, rotary_dim: int, *, base: float = 10000.0, dtype: torch.dtype = torch.float32
) -> tuple[Tensor, Tensor]:
    """Tables for positions with several coordinates, such as row and column: each coordinate turns pairs of its own.

    Args:
        positions: (..., axes) in tokens, e.g. (row, column) of an image patch.
        rotary_dim: a multiple of 2 * axes; the first rotary_dim / (2 axes) pairs belong to the first coordinate.
        base, dtype: as in `inverse_frequencies` of rotary_dim / axes, and `cos_sin`.

    Returns:
        cos, sin: each (..., rotary_dim // 2).

    Raises:
        ValueError: rotary_dim does not split into pairs for each coordinate.
        TypeError: as `cos_sin`.

    Source: the block form of Su et al. 2021, equation 15, with one coordinate per group of blocks.
    """
    check_positions(positions)
    axes = positions.shape[-1] if positions.ndim else 0
    if not axes or rotary_dim % (2 * axes):
        raise ValueError(
            f"rotary_dim is {rotary_dim} and positions have {axes} coordinates; rotary_dim must be a multiple of "
            f"{2 * axes} (is the last axis of positions that of the coordinates?)"
        )
    inv_freq = inverse_frequencies(rotary_dim // axes, base=base, device=positions.device)
    tables = cos_sin(positions, inv_freq, dtype=dtype)
    return tuple(table.flatten(-2) for table in tables)


def sectioned_cos_sin(
    positions: Tensor,
    rotary_dim: int,
    *,
    sections: Sequence[int],
    base: float = 10000.0,
    dtype: torch.dtype = torch.float32,
) -> tuple[Tensor, Tensor]:
    """Tables for positions with several coordinates that share one spectrum: the multimodal form of Qwen2-VL.

    The first sections[0] pairs, the fastest, turn by the first coordinate, the next sections[1] by the second, and so
    on. Where all coordinates agree, as for text, this is `cos_sin`.

    Args:
        positions: (..., axes) in tokens, e.g. (time, row, column).
        rotary_dim: twice the sum of sections.
        sections: pairs of each coordinate, e.g. (16, 24, 24) for rotary_dim 128.
        base, dtype: as in `inverse_frequencies` and `cos_sin`.

    Returns:
        cos, sin: each (..., rotary_dim // 2).

    Raises:
        ValueError: sections do not fit rotary_dim or the coordinates.
        TypeError: as `cos_sin`.

    Source: Wang et al. 2024, section 2.1; the split into sections follows the authors' code.
    """
    check_positions(positions)
    axes = positions.shape[-1] if positions.ndim else 0
    if 2 * sum(sections) != rotary_dim or axes != len(sections):
        raise ValueError(
            f"sections are {tuple(sections)}, rotary_dim is {rotary_dim}, positions have {axes} "
            "coordinates; there must be one section per coordinate, and sections must add up to rotary_dim // 2"
        )
    _check_table_dtype(dtype)
    pairs = torch.tensor(sections, device=positions.device)
    inv_freq = inverse_frequencies(rotary_dim, base=base, device=positions.device)
    return _tables(positions.repeat_interleave(pairs, dim=-1, output_size=rotary_dim // 2), inv_freq, dtype)


def _check_table_dtype(dtype: torch.dtype) -> None:
    if dtype in HALF or not dtype.is_floating_point:
        raise TypeError(
            f"dtype is {dtype}; tables are float32 or float64 (apply_rotary_emb rotates half-precision "
            "tensors in float32 and rounds once)"
        )
