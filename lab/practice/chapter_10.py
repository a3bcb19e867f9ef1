"""Chapter 10: from what a model says of a text to its loss by position."""

import math
from collections.abc import Callable, Sequence
from itertools import pairwise

import torch
from torch import Tensor
from torch.nn.functional import cross_entropy

from lab.practice import Exercise


def _means(losses: Tensor, edges: Sequence[int]) -> list[Tensor]:
    """The losses of the bytes 1, 2, ... averaged over the bytes between neighbouring edges."""
    return [losses[max(a - 1, 0) : b - 1].mean() for a, b in pairwise(edges)]


def _losses(logits: Tensor, text: Tensor) -> Tensor:
    return cross_entropy(logits[:-1], text[1:], reduction="none")


def _right(logits: Tensor, text: Tensor, edges: Sequence[int]) -> list[Tensor]:
    return _means(_losses(logits, text), edges)


def _each(change: Callable[[Tensor], Tensor]) -> Callable[[Tensor, Tensor, Sequence[int]], list[Tensor]]:
    """The right means, changed."""
    return lambda *case: [change(mean) for mean in _right(*case)]


def _case(n: int, symbols: int, edges: tuple[int, ...]) -> tuple[Tensor, Tensor, tuple[int, ...]]:
    generator = torch.Generator().manual_seed(n)
    logits = 2 * torch.randn(n, symbols, generator=generator)
    return logits, torch.randint(symbols, (n,), generator=generator), edges


exercise = Exercise(
    asked="by_range(logits, text, edges)",
    right=_right,
    cases=[
        (torch.tensor([[0.0, 1.0], [2.0, 0.0]]), torch.tensor([0, 1]), (0, 2)),
        _case(5, 3, (0, 3, 5)),
        _case(12, 6, (0, 2, 6, 12)),
        _case(40, 20, (8, 16, 32, 40)),
    ],
    mistakes={
        "Each byte is compared with what was said after reading it, not before: a model that repeats its last byte "
        "would be perfect.": lambda logits, text, edges: [
            cross_entropy(logits[a:b], text[a:b]) for a, b in pairwise(edges)
        ],
        "The shift goes the wrong way: each row is compared with the byte before it.": (
            lambda logits, text, edges: _means(cross_entropy(logits[1:], text[:-1], reduction="none"), edges)
        ),
        "The ranges begin one byte too late. Which byte is the first that has a loss?": (
            lambda logits, text, edges: [_losses(logits, text)[a:b].mean() for a, b in pairwise(edges)]
        ),
        "Byte 0 has no loss, as nothing stands before it, and you count it with a loss of 0.": (
            lambda logits, text, edges: [
                torch.cat((torch.zeros(1), _losses(logits, text)))[a:b].mean() for a, b in pairwise(edges)
            ]
        ),
        "Neighbouring ranges share a byte: does a range contain its upper edge?": (
            lambda logits, text, edges: [_losses(logits, text)[max(a - 1, 0) : b].mean() for a, b in pairwise(edges)]
        ),
        "Each mean runs from the beginning of the text, so early bytes hide what happens far out.": (
            lambda logits, text, edges: [_losses(logits, text)[: b - 1].mean() for b in edges[1:]]
        ),
        "These are sums. Ranges of different length could not be compared: take means.": (
            lambda logits, text, edges: [_losses(logits, text)[max(a - 1, 0) : b - 1].sum() for a, b in pairwise(edges)]
        ),
        "These are bits. Asked are nats.": _each(lambda mean: mean / math.log(2)),
        "These are perplexities. Asked are the losses themselves.": _each(torch.exp),
        "The sign is wrong: a logarithm of a probability is negative, a loss is not.": _each(torch.neg),
        "The logarithm was taken of the mean probability. Asked is the mean of the logarithms: one byte that surprises "
        "must count.": lambda logits, text, edges: [
            -mean.log() for mean in _means((-_losses(logits, text)).exp(), edges)
        ],
        "The softmax was taken twice: `cross_entropy` takes it by itself, so it wants logits.": (
            lambda logits, text, edges: _right(logits.softmax(-1), text, edges)
        ),
        "These are logits with a minus. A logit is no logarithm of a probability yet: what is missing?": (
            lambda logits, text, edges: _means(-logits[:-1].gather(1, text[1:, None])[:, 0], edges)
        ),
        "This is how unsure the model is, whatever came: the entropy. A loss looks at the byte that came.": (
            lambda logits, text, edges: _means(torch.distributions.Categorical(logits=logits[:-1]).entropy(), edges)
        ),
        "These are shares of wrong first guesses. A loss also asks how probable the right byte was.": (
            lambda logits, text, edges: _means((logits[:-1].argmax(1) != text[1:]).double(), edges)
        ),
    },
)
