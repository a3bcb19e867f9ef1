"""Only the distance? How much of a mean score depends on the place of query and key."""

import torch
from torch import Tensor

from lab.opened.shared import KINDS, model, rounded, scores, texts, visit_layers


def only_the_distance() -> dict:
    """How much of a mean score depends on the place and not on the distance: shares of variance, by layer.

    Scores of 1,280 texts of 128 tokens are averaged over the texts, for each head, query and key. Of the variance of
    these means over all pairs of places, the first number is the share that lies within diagonals, where the distance
    is the same. Chance is taken out: what two halves of the texts have in common is counted, their covariance. With
    the first token as a key, and without.
    """
    n, count = 128, 640
    read = torch.cat([texts()[kind][: count * n].view(count, n) for kind in KINDS])
    read = read[torch.randperm(len(read), generator=torch.Generator().manual_seed(0))]
    halves = [mean_scores(half) for half in read.chunk(2)]
    found = {}
    for name, start in (("with the first token", 0), ("without", 1)):
        first, second = (means[..., start:, start:] for means in halves)
        found[name] = rounded(torch.stack(shares_within(first, second)), 4)
    return found


def mean_scores(read: Tensor) -> Tensor:
    """(texts, n) -> (layers, heads, n, n) scores, means over the texts."""
    rotate, sums = model().rotation(torch.arange(read.shape[1])), {}

    def add_scores(layer: int, q: Tensor, k: Tensor) -> None:
        sums[layer] = sums.get(layer, 0) + scores(*rotate(layer, q, k)).double().sum(0)

    for part in read.split(8):
        visit_layers(part, add_scores)
    return torch.stack([sums[layer] for layer in range(model().layers)]) / len(read)


def shares_within(first: Tensor, second: Tensor) -> tuple[Tensor, Tensor]:
    """(layers, heads) each: of the covariance of two independent means, the share within diagonals and the rest."""
    size = first.shape[-1]
    i, j = torch.tril_indices(size, size, -1)
    distance = (i - j).to(first.device)
    parts = [x[..., i, j] - x[..., i, j].mean(-1, keepdim=True) for x in (first, second)]
    total = (parts[0] * parts[1]).sum(-1)
    count = torch.zeros(size, device=first.device, dtype=first.dtype).index_add(
        0, distance, torch.ones_like(parts[0][0, 0])
    )
    within = []
    for x in parts:
        sums = torch.zeros(*x.shape[:-1], size, device=x.device, dtype=x.dtype).index_add(-1, distance, x)
        within.append(x - (sums / count.clamp(min=1))[..., distance])
    inside = (within[0] * within[1]).sum(-1)
    return inside / total, 1 - inside / total
