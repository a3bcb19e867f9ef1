"""What is drawn by chance. A teacher's check is the students' with another number here."""

import random

import torch
from torch import Tensor

SEED = 0


def chance() -> random.Random:
    """Begins anew with each call."""
    return random.Random(SEED)


def drawn(*shape: int) -> Tensor:
    """Normal numbers, which SEED and the sum of the shape decide."""
    return torch.randn(shape, generator=torch.Generator().manual_seed(1000 * SEED + sum(shape)), dtype=torch.float64)


def some_positions(count: int, below: int) -> Tensor:
    """Whole numbers, falling: not those that counting gives."""
    return torch.tensor(sorted(chance().sample(range(2, below), count), reverse=True))
