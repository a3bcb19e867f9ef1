"""The example of the book: "red" and "car", two places apart. Two numbers of each, and how they are turned."""

import torch
from torch import Tensor

from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies

CAR, RED, DISTANCE = (1.8, 0.4), (1.2, 0.8), 2  # the query's word, the key's, and how far "car" stands behind "red"
HEAD_DIM, PAIR = 128, 3  # the numbers are pair 3 of a head with 128 dimensions and base 10000
INV_FREQ = inverse_frequencies(HEAD_DIM, device="cpu")[PAIR : PAIR + 1]
TURN = INV_FREQ.item()  # rad per word


def rotated(word: tuple[float, float], positions: Tensor) -> Tensor:
    """(n, 2): the word turned to each position."""
    x = torch.tensor(word, dtype=torch.float64).expand(len(positions), 2)
    return apply_rotary_emb(x, *cos_sin(positions, INV_FREQ, dtype=torch.float64), interleaved=True)
