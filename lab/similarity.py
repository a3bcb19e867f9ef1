"""How alike codes and tables are: numbers behind the chapter on sinusoidal encoding."""

import numpy as np
import torch

from rope_lib.theory.sinusoidal import sinusoidal_encoding


def closest_codes(length: int, dim: int, base: float = 10000.0) -> np.ndarray:
    """(length - 1,) running minimum over Delta = 1 .. length - 1 of |PE_0 - PE_Delta| / sqrt(dim / 2)."""
    pe = sinusoidal_encoding(torch.arange(length), dim, base=base, dtype=torch.float64).numpy()
    return np.minimum.accumulate(np.linalg.norm(pe[1:] - pe[0], axis=1)) / np.sqrt(dim // 2)


def diagonal_share(table: torch.Tensor) -> float:
    """Share of a square table's variance that depends on the distance alone: 1 if each diagonal is constant."""
    distance = torch.arange(len(table))[:, None] - torch.arange(len(table)) + len(table) - 1
    total = torch.zeros(2 * len(table) - 1, dtype=table.dtype).index_add(0, distance.flatten(), table.flatten())
    means = (total / torch.bincount(distance.flatten()))[distance]
    return (1 - (table - means).square().sum() / (table - table.mean()).square().sum()).item()
