"""Keys in few bits: rounded before the rotation, or after it."""

import torch
from torch import Tensor

from lab.opened.shared import losses, means, model, stretches
from lab.published_model import Rotate


def in_bits(x: Tensor, bits: int, dim: int) -> Tensor:
    """Rounded to 2^bits steps between the smallest and the largest number along `dim`."""
    low, high = x.amin(dim, keepdim=True), x.amax(dim, keepdim=True)
    step = (high - low) / (2**bits - 1)
    return ((x - low) / step).round() * step + low


def few_bits() -> dict:
    """Keys rounded before the rotation or after it; steps for each channel, or for each token."""
    read, found = stretches(512), {}
    rotate = model().rotation(torch.arange(512))
    dims = {"by channel": -2, "by token": -1}

    def with_rounded_keys(bits: int, dim: int, moment: str) -> Rotate:
        def round_and_rotate(layer: int, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            if moment == "before":
                return rotate(layer, q, in_bits(k, bits, dim))
            q, k = rotate(layer, q, k)
            return q, in_bits(k, bits, dim)

        return round_and_rotate

    for bits in (4, 3, 2):
        for name, dim in dims.items():
            for moment in ("before", "after"):
                changed = with_rounded_keys(bits, dim, moment)
                found[f"{bits} bits, {name}, {moment}"] = means(losses(read, changed))
    return found
