"""Chapter 9: by how much scaling by parts slows each pair down."""

import math

import torch
from torch import Tensor

from lab.practice import Exercise
from rope_lib import inverse_frequencies
from rope_lib.scaling import ntk_scaling, yarn_scaling


def _speeds(dim: int, base: float) -> Tensor:
    return inverse_frequencies(dim, base=base, device="cpu")


def _turns(dim: int, base: float, length: float) -> Tensor:
    return length * _speeds(dim, base) / (2 * math.pi)


def _keep(turns: Tensor, fast: float = 32.0) -> Tensor:
    """The weight of the old speed."""
    return ((turns - 1) / (fast - 1)).clamp(0, 1)


def _slowed(keep: Tensor, factor: float) -> Tensor:
    """Old speed over new, where the new one is a mean of the old one and of its share."""
    return 1 / (keep + (1 - keep) / factor)


def _right(dim: int, base: float, length: int, factor: float) -> Tensor:
    return _slowed(_keep(_turns(dim, base, length)), factor)


def _by_index(dim: int, base: float, length: int, factor: float) -> Tensor:
    """YaRN's code, but for the rounding of the ramp's ends."""
    scaled = yarn_scaling(dim, factor=factor, original_max_position_embeddings=length, truncate=False, base=base)
    return _speeds(dim, base) / scaled


def _one_index_each(dim: int, base: float, length: int, factor: float) -> Tensor:
    speeds = base ** -(torch.arange(dim // 2, dtype=torch.float64) / dim)
    return _slowed(_keep(length * speeds / (2 * math.pi)), factor)


WHERE = 'Reread chapter 9, "The methods, one formula each".'

exercise = Exercise(
    asked="slowdown(dim, base, length, factor)",
    right=_right,
    cases=[
        (4, 100.0, 128, 2.0),
        (8, 10_000.0, 512, 4.0),
        (32, 10_000.0, 128, 8.0),
        (128, 10_000.0, 4096, 8.0),
        (128, 500_000.0, 8192, 16.0),
    ],
    mistakes={
        f"The slow pairs stay and the fast ones are slowed: whose weight is whose? {WHERE}": (
            lambda dim, base, length, factor: _slowed(1 - _keep(_turns(dim, base, length)), factor)
        ),
        "The turns are counted in radians. How many of those has a turn?": (
            lambda dim, base, length, factor: _slowed(_keep(2 * math.pi * _turns(dim, base, length)), factor)
        ),
        "The turns are counted in the longer text. What has the model met? "
        'Reread chapter 9, "Which angles has the model met?".': (
            lambda dim, base, length, factor: _slowed(_keep(factor * _turns(dim, base, length)), factor)
        ),
        "Some pairs become faster than they were, others are slowed by more than the factor. Where do weights end?": (
            lambda dim, base, length, factor: _slowed((_turns(dim, base, length) - 1) / 31, factor)
        ),
        "The mean was taken of the slowdowns, 1 and the factor. It is a mean of two *speeds*.": (
            lambda dim, base, length, factor: 1 + (1 - _keep(_turns(dim, base, length))) * (factor - 1)
        ),
        "These are new speeds over old ones. Asked is by how much each pair is slowed: a number of at least 1.": (
            lambda dim, base, length, factor: 1 / _right(dim, base, length, factor)
        ),
        "These are the new speeds. Asked is by how much each pair is slowed: a number of at least 1.": (
            lambda dim, base, length, factor: _speeds(dim, base) / _right(dim, base, length, factor)
        ),
        "The ends are right, and in between the weight follows the index of the pair, as in YaRN's code. "
        f"What does it follow in the paper's rule? {WHERE}": _by_index,
        f"There is a step at 32 turns. What becomes of the pairs between 1 and 32? {WHERE}": (
            lambda dim, base, length, factor: _slowed((_turns(dim, base, length) >= 32).double(), factor)
        ),
        f"There is a step at one turn. What becomes of the pairs between 1 and 32? {WHERE}": (
            lambda dim, base, length, factor: _slowed((_turns(dim, base, length) > 1).double(), factor)
        ),
        "A pair keeps its speed from 4 turns on: that is Llama 3.1. Wanted are the numbers of the paper.": (
            lambda dim, base, length, factor: _slowed(_keep(_turns(dim, base, length), 4.0), factor)
        ),
        "All pairs are slowed alike: that is linear interpolation. Which pairs need it?": (
            lambda dim, base, length, factor: torch.full((dim // 2,), factor)
        ),
        "That is the NTK-aware rule, which does not ask for turns.": (
            lambda dim, base, length, factor: _speeds(dim, base) / ntk_scaling(dim, factor=factor, base=base)
        ),
        "The speeds fall too slowly. What is the exponent for pair i, and what is the last one?": _one_index_each,
    },
)
