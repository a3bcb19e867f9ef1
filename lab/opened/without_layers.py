"""Layers without rotation."""

import torch
from torch import Tensor

from lab.opened.shared import losses, means, model, stretches, without


def layers_without(chosen: list[int]) -> Tensor:
    """(layers, heads, 32) speeds, 0 in some layers."""
    return without([(layer, head) for layer in chosen for head in range(model().heads)], slice(0, 32))


def without_layers() -> dict:
    """One layer without rotation, every fourth, the first three, all but the first three."""
    read, m, every = stretches(512, count=4), torch.arange(512), range(model().layers)
    chosen = {f"layer {layer}": [layer] for layer in every}
    chosen |= {
        "none": [],
        "every fourth": [*every[3::4]],
        "the first three": [0, 1, 2],
        "all but the first three": [*every[3:]],
    }
    return {
        name: means(losses(read, model().rotation(m, inv_freq=layers_without(some)))) for name, some in chosen.items()
    }
