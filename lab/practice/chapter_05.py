"""Chapter 5: the matrix between a query and a key."""

import torch
from torch import Tensor

from lab.practice import Exercise
from rope_lib.theory.matrices import rotation_matrix


def _turn(angle: float, theta: Tensor) -> Tensor:
    """R_angle, with any number for a position."""
    return rotation_matrix(angle, theta.double())


def _halves(m: int, n: int, theta: Tensor) -> Tensor:
    """Pairs (i, i + N) in place of neighbours."""
    order = torch.arange(2 * len(theta)).view(-1, 2).T.flatten()
    return _turn(n - m, theta)[order][:, order]


def _reflections(m: int, n: int, theta: Tensor) -> Tensor:
    mirror = torch.tensor([1.0, -1.0], dtype=torch.float64).repeat(len(theta))
    return _turn(n - m, theta) * mirror


def _blocks(m: int, n: int, theta: Tensor) -> list[Tensor]:
    return [_turn(n - m, speed[None]) for speed in theta]


exercise = Exercise(
    asked="between(m, n, theta)",
    right=lambda m, n, theta: _turn(n - m, theta),
    cases=[
        (1, 0, torch.tensor([0.5])),
        (2, 5, torch.tensor([1.0, 0.1])),
        (40, 7, torch.tensor([1.0, 0.3, 0.1, 0.01])),
    ],
    mistakes={
        "All sines have the wrong sign. Either your blocks turn clockwise, or the angle is not the one of the matrix. "
        'Reread chapter 5, "Which sign goes where?"': (lambda m, n, theta: _turn(m - n, theta)),
        "The angles of m and n are added: the query's matrix is not transposed.": (
            lambda m, n, theta: _turn(m + n, theta)
        ),
        "Left and right give the same matrix: the difference of the positions has a sign.": (
            lambda m, n, theta: _turn(abs(n - m), theta)
        ),
        "This is the matrix at the key. At m = 0 it is the right one; then the query turns as well.": (
            lambda m, n, theta: _turn(n, theta)
        ),
        "This is the matrix at the query. Two matrices meet between q and k.": lambda m, n, theta: _turn(m, theta),
        "No sine has a minus, so the columns of a block are not at right angles. "
        'Reread chapter 5, "Where does the matrix come from?"': (
            lambda m, n, theta: _turn(n - m, theta).tril() - _turn(n - m, theta).triu(1)
        ),
        "Your blocks reflect, with determinant -1. Where does a rotation send the second basis vector? "
        'Reread chapter 5, "Where does the matrix come from?"': _reflections,
        "All blocks turn by the same angle; in (5.3) each has a speed of its own.": (
            lambda m, n, theta: _turn(n - m, theta[:1].expand(len(theta)))
        ),
        "You pair coordinate i with coordinate i + N, as some programs do. In (5.3) neighbours are a pair.": _halves,
        "These are the right blocks. Put them on the diagonal of one matrix, with zeros elsewhere.": (
            lambda m, n, theta: torch.stack(_blocks(m, n, theta))
        ),
    },
)
