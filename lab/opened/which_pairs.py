"""Which pairs need to turn? The energy of each, and what it costs to stop some of them."""

import torch
from torch import Tensor

from lab.opened.shared import copies, for_each_head, losses, means, model, rounded, slowed, stretches, visit_layers


def shares_of_energy() -> Tensor:
    """(layers, heads, 32): the mean length of q_i times that of k_i, as a share of the sum over the pairs of a head."""
    by_layer = []

    def add_energy(layer: int, q: Tensor, k: Tensor) -> None:
        lengths = (x[..., 1:, :].unflatten(-1, (-1, 2)).norm(dim=-1).mean((0, 2)) for x in (q, for_each_head(k)))
        energy = torch.stack([*lengths]).prod(0)
        by_layer.append(energy / energy.sum(-1, keepdim=True))

    visit_layers(stretches(512, count=4), add_energy)
    return torch.stack(by_layer)


def energies() -> dict:
    """`shares_of_energy`: their mean over all heads, and the strongest pair of each head."""
    shares = shares_of_energy()
    return {"mean": rounded(shares.mean((0, 1)), 4), "strongest": shares.argmax(-1).tolist()}


def stopped(first: int, last: int = 32) -> Tensor:
    """The model's speeds, but 0 for the pairs from `first` up to `last`."""
    return slowed(first, last, torch.inf)


def which_pairs() -> dict:
    """The loss of each stretch when pairs do not turn: from p on, and in groups; in short texts and in long ones."""
    found = {}
    ends = {f"none from {p} on": (p, 32) for p in (8, 12, 16, 18, 20, 22, 24, 26, 28, 30)}
    ends |= {"as it is": (32, 32), "not 0 to 3": (0, 4), "not 4 to 7": (4, 8), "not 8 to 15": (8, 16)}
    ends |= {"not 20 to 25": (20, 26), "not 26 to 31": (26, 32)}
    for n, count, start in ((384, 8, 0), (4096, 4, 3072)):
        read = stretches(n, count)
        for name, (first, last) in ends.items():
            rotate = model().rotation(torch.arange(n), inv_freq=stopped(first, last))
            found.setdefault(str(n), {})[name] = means(losses(read, rotate, batch=2), start)
    return found | {"copies": copies_without()}


def copies_without() -> dict:
    """Copies of random words some way back, as they are and with slow pairs that do not turn."""
    return {
        f"{gap}": {
            name: means(copies(gap, stopped(first)))
            for name, first in (("as it is", 32), ("none from 26 on", 26), ("none from 28 on", 28))
        }
        for gap in (1000, 3000, 6000)
    }
