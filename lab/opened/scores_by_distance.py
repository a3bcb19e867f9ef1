"""Do its scores decay? The mean score of each head by distance, and what formula (7.2) says of it."""

import torch
from torch import Tensor

from lab.opened.shared import for_each_head, model, rounded, scores, stretches, visit_layers
from rope_lib import apply_rotary_emb, cos_sin

SHOWN = [divmod(i, 9) for i in range(5, 270, 50)]  # every fiftieth head


def scores_by_distance() -> dict:
    """For each head the mean score at each distance, and what (7.2) makes of its mean query and mean key alone.

    Keys are those from token 1 on: the first token, to which many heads turn, is left out.
    """
    read = stretches(640)
    n, far = read.shape[1], 400
    rotate, distances = model().rotation(torch.arange(n)), torch.arange(far + 1)
    tables = cos_sin(distances.to(model().inv_freq.device), model().inv_freq)
    sums, sums_q, sums_k = {}, {}, {}

    def add_scores(layer: int, q: Tensor, k: Tensor) -> None:
        sums_q[layer] = sums_q.get(layer, 0) + q.mean((0, 2))
        sums_k[layer] = sums_k.get(layer, 0) + for_each_head(k)[..., 1:, :].mean((0, 2))
        with_all_distances = scores(*rotate(layer, q, k))[..., 1 + far :, 1:].mean(0)  # the queries that have them
        by_distance = [with_all_distances.diagonal(far - d, -2, -1).mean(-1) for d in distances.tolist()]
        sums[layer] = sums.get(layer, 0) + torch.stack(by_distance, dim=-1)

    parts = read.split(2)
    for part in parts:
        visit_layers(part, add_scores)
    measured, q, k = (
        torch.stack([sums_of[layer] for layer in range(model().layers)]) / len(parts)
        for sums_of in (sums, sums_q, sums_k)
    )
    own = scores_of_means(q, k, *tables)
    other = own.roll(1, dims=0)  # the same head of the layer before
    all_alike = measured.mean((0, 1)).expand_as(own)  # the mean curve of all heads
    agreement = {
        name: rounded(correlation(measured[..., 1:], curve[..., 1:]), 3)
        for name, curve in {"own": own, "another head": other, "mean of all heads": all_alike}.items()
    }
    draw, shuffled = torch.Generator().manual_seed(0), []
    for _ in range(100):
        order = torch.randperm(32, generator=draw).to(q.device)
        curve = scores_of_means(q, k, *(table[:, order] for table in tables))
        shuffled.append(correlation(measured[..., 1:], curve[..., 1:]).median().item())
    missed = (measured - own)[..., 1:]
    left = missed.var(-1) / measured[..., 1:].var(-1)  # of the variance; a constant does not count
    fall = measured[..., 8:33].mean(-1) - measured[..., 200:401].mean(-1)
    shown = [*range(0, 32), *range(32, 128, 4), *range(128, 401, 16)]
    return {
        "distances": shown, "fall": rounded(fall, 3), "correlation": agreement, "left": rounded(left, 4),
        "shuffled": [round(x, 3) for x in shuffled],
        "heads": {
            f"layer {layer}, head {head}": {
                "mean": rounded(measured[layer, head, shown], 2), "predicted": rounded(own[layer, head, shown], 2)
            }
            for layer, head in SHOWN
        },
    }  # fmt: skip


def scores_of_means(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """(layers, heads, 64) twice, and tables of n distances -> (layers, heads, n) scores of the two vectors."""
    turned = apply_rotary_emb(q[..., None, :].expand(*q.shape[:-1], len(cos), -1), cos, sin, interleaved=True)
    return (turned @ k[..., None])[..., 0] / q.shape[-1] ** 0.5


def correlation(first: Tensor, second: Tensor) -> Tensor:
    """Along the last axis."""
    first, second = (x - x.mean(-1, keepdim=True) for x in (first.double(), second.double()))
    return (first * second).sum(-1) / (first.norm(dim=-1) * second.norm(dim=-1))
