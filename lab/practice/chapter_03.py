"""Chapter 3: Shaw's scores."""

import torch
from torch import Tensor

from lab.practice import Exercise
from rope_lib.theory import relative


def _distances(q: Tensor) -> Tensor:
    """m - n, query minus key."""
    return relative.relative_distances(torch.arange(len(q)), torch.arange(len(q)))


def _right(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    return relative.shaw_scores(q.double(), k.double(), w.double(), _distances(q))


def _content(q: Tensor, k: Tensor) -> Tensor:
    """What is left of the scores without the vectors."""
    return q.double() @ k.double().T / q.shape[1] ** 0.5


def _picked(q: Tensor, k: Tensor, w: Tensor, rows: Tensor) -> Tensor:
    """Scores whose vectors come from these rows of w."""
    return _content(q, k) + torch.einsum("md,mnd->mn", q.double(), w.double()[rows]) / q.shape[1] ** 0.5


def _at_the_query(q: Tensor, k: Tensor, w: Tensor) -> Tensor:
    by_the_key = relative.shaw_scores(k.double(), q.double(), w.double(), -_distances(q))
    return by_the_key.T


def _clipped(q: Tensor, w: Tensor) -> Tensor:
    """The clipped distance n - m, from -reach to reach."""
    reach = len(w) // 2
    return (-_distances(q)).clamp(-reach, reach)


def _example(seq_len: int, head_dim: int, reach: int) -> tuple[Tensor, Tensor, Tensor]:
    generator = torch.Generator().manual_seed(seq_len)
    q, k = torch.randn(2, seq_len, head_dim, generator=generator)
    return q, k, torch.randn(2 * reach + 1, head_dim, generator=generator)


exercise = Exercise(
    asked="shaw_scores(q, k, w)",
    right=_right,
    cases=[
        (torch.tensor([[1.0], [2.0]]), torch.tensor([[1.0], [3.0]]), torch.tensor([[10.0], [20.0], [40.0]])),
        _example(4, 4, reach=1),
        _example(7, 16, reach=2),
    ],
    mistakes={
        "Left and right are mixed up: the vectors of w are mirrored. Which of query and key does this paper subtract? "
        'Reread chapter 3, "Shaw: a vector for each clipped distance"': (
            lambda q, k, w: _picked(q, k, w, len(w) // 2 - _clipped(q, w))
        ),
        "Row 0 of w is the vector of -kappa, not of 0. Python does not complain: w[-1] is the last row.": (
            lambda q, k, w: _picked(q, k, w, _clipped(q, w))
        ),
        "Words to the left get the vectors of the right: clip to both sides, and keep the sign.": (
            lambda q, k, w: _picked(q, k, w, len(w) // 2 + _clipped(q, w).abs())
        ),
        "Words beyond the reach get no vector. They should share one, that of the last distance within the reach.": (
            lambda q, k, w: torch.where(_distances(q).abs() <= len(w) // 2, _right(q, k, w), _content(q, k))
        ),
        "Beyond the reach you begin again at the other end of w: clipping is no remainder.": (
            lambda q, k, w: _picked(q, k, w, (len(w) // 2 - _distances(q)) % len(w))
        ),
        "The scores are too large when d is above 1: (3.2) has a denominator.": (
            lambda q, k, w: _right(q, k, w) * q.shape[1] ** 0.5
        ),
        "The scores are too small when d is above 1: look at the root in (3.2).": (
            lambda q, k, w: _right(q, k, w) / q.shape[1] ** 0.5
        ),
        "The part with w is too large when d is above 1: what does the denominator of (3.2) divide?": (
            lambda q, k, w: _right(q, k, w) * q.shape[1] ** 0.5 - _content(q, k) * (q.shape[1] ** 0.5 - 1)
        ),
        "The vector is added to the query. Whom does Shaw tell the distance?": _at_the_query,
        "Rows and columns have changed places: row m belongs to query m.": lambda q, k, w: _right(q, k, w).T,
    },
)
