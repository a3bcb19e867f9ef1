"""Massive values: how much longer the longest pair of a query, key or value is than the others."""

from unittest.mock import patch

import torch
from torch import Tensor

from lab import published_model
from lab.opened.shared import model, rounded, stretches
from rope_lib import attention


def massive_values() -> dict:
    """For queries, keys and values of each head: which pair is the longest on average, and how many times the median.

    A rotation changes no length. Means over eight stretches, the first token left out.
    """
    lengths: dict[str, list[Tensor]] = {"queries": [], "keys": [], "values": []}

    def attention_with_lengths(q: Tensor, k: Tensor, v: Tensor, **options) -> Tensor:
        for found, x in zip(lengths.values(), (q, k, v), strict=True):
            found.append(x[..., 1:, :].unflatten(-1, (-1, 2)).norm(dim=-1).mean((0, 2)))
        return attention(q, k, v, **options)

    with patch.object(published_model, "attention", attention_with_lengths):
        model().hidden(stretches(512, count=4))
    by_head = {name: torch.cat(found) for name, found in lengths.items()}
    return {
        name: {"ratio": rounded(x.amax(-1) / x.median(-1).values, 2), "pair": x.argmax(-1).tolist()}
        for name, x in by_head.items()
    }
