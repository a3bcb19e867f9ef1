"""Chapter 1: the weights of causal attention."""

import torch
from torch import Tensor

from lab.practice import Exercise


def _scores(q: Tensor, k: Tensor) -> Tensor:
    return q.double() @ k.double().T / q.shape[1] ** 0.5


def _hidden(q: Tensor, k: Tensor) -> Tensor:
    """True where a key comes after its query."""
    return torch.ones(len(q), len(k), dtype=torch.bool).triu(1)


def _softmax(scores: Tensor, hidden: Tensor, dim: int = 1) -> Tensor:
    return scores.masked_fill(hidden, -torch.inf).softmax(dim)


def _words(seq_len: int, head_dim: int) -> tuple[Tensor, Tensor]:
    q, k = torch.randn(2, seq_len, head_dim, generator=torch.Generator().manual_seed(1))
    return q, k


exercise = Exercise(
    asked="weights(q, k)",
    right=lambda q, k: _softmax(_scores(q, k), _hidden(q, k)),
    cases=[
        (torch.tensor([[1.0], [2.0]]), torch.tensor([[0.0], [1.0]])),
        (torch.tensor([[2.0, 0.0], [0.0, 2.0], [1.0, 1.0]]), torch.tensor([[1.0, 0.0], [0.0, 1.0], [1.0, 2.0]])),
        _words(6, 16),
    ],
    mistakes={
        "Row 0 gives weight to words that come later: nothing is hidden.": lambda q, k: _scores(q, k).softmax(1),
        "You hide the past and show the future. Which words may word 0 see?": (
            lambda q, k: _softmax(_scores(q, k), _hidden(q, k).T)
        ),
        "The rows do not add up to 1: hidden words lose their weight when it has been shared out already.": (
            lambda q, k: _scores(q, k).softmax(1).tril()
        ),
        "Hidden words still get weight: a score of 0 is a score like any other, and its exponential is 1.": (
            lambda q, k: _scores(q, k).tril().softmax(1)
        ),
        "The columns add up to 1, where the rows should: each query shares out a weight of 1 among the keys.": (
            lambda q, k: _softmax(_scores(q, k), _hidden(q, k), dim=0)
        ),
        'Queries and keys have changed roles. Reread (1.2) in chapter 1, "What does attention compute?"': (
            lambda q, k: _softmax(_scores(k, q), _hidden(q, k))
        ),
        "The scores are too large when d is above 1: (1.2) has one more factor.": (
            lambda q, k: _softmax(_scores(q, k) * q.shape[1] ** 0.5, _hidden(q, k))
        ),
        "The scores are too small when d is above 1: look at the root in (1.2).": (
            lambda q, k: _softmax(_scores(q, k) / q.shape[1] ** 0.5, _hidden(q, k))
        ),
        "These are scores, with zeros where a word is hidden. They are not weights yet.": (
            lambda q, k: _scores(q, k).tril()
        ),
    },
)
