"""Chapter 2: the code of another place, made from a code."""

import torch
from torch import Tensor

from lab.practice import Exercise
from rope_lib import inverse_frequencies
from rope_lib.theory.matrices import rotation_matrix, shift_matrix
from rope_lib.theory.sinusoidal import sinusoidal_encoding


def _code(m: float, d: int) -> Tensor:
    return sinusoidal_encoding(torch.tensor(m), d, dtype=torch.float64)


def _turned(code: Tensor, delta: float, speeds: Tensor) -> Tensor:
    """The code with its pairs turned as they should be, at any speeds."""
    return rotation_matrix(-delta, speeds) @ code.double()


def _speeds(code: Tensor) -> Tensor:
    return inverse_frequencies(len(code), device="cpu")


def _both_plus(code: Tensor, delta: float) -> Tensor:
    """The addition theorem of the sine, used for the cosine too."""
    sines, cosines = code.double().view(-1, 2).T
    sin, cos = _code(delta, len(code)).view(-1, 2).T
    return torch.stack((sines * cos + cosines * sin, cosines * cos + sines * sin), dim=1).flatten()


def _overwritten(code: Tensor, delta: float) -> Tensor:
    """Pairs that are turned in place, the sine first."""
    sines, cosines = code.double().view(-1, 2).T
    sin, cos = _code(delta, len(code)).view(-1, 2).T
    sines = sines * cos + cosines * sin
    return torch.stack((sines, cosines * cos - sines * sin), dim=1).flatten()


def _halves(code: Tensor, delta: float) -> Tensor:
    """Sines in front and cosines behind, as some programs store them."""
    moved = _turned(code.view(2, -1).T.flatten(), delta, _speeds(code))
    return moved.view(-1, 2).T.flatten()


exercise = Exercise(
    asked="shift(code, delta)",
    right=lambda code, delta: shift_matrix(delta, len(code), device="cpu") @ code.double(),
    cases=[
        (torch.tensor([0.0, 1.0]), 1),
        (_code(2, 4).float(), 3),
        (_code(5000, 6).float(), -7),
        (_code(2.5, 8).float(), 4),  # a place between two words
        (_code(77, 16).float(), 50),
    ],
    mistakes={
        "This is the code delta places back: your pairs turn the other way. In which order does a pair store sine and "
        'cosine? Reread chapter 2, "What happens to the code when you step aside?"': (
            lambda code, delta: _turned(code, -delta, _speeds(code))
        ),
        "The second number of each pair is wrong: the addition theorem of the cosine has another sign.": _both_plus,
        "The second number of each pair is made from the first one after it has changed. Keep the old one.": (
            _overwritten
        ),
        "All pairs turn by the same angle; each has a speed of its own, (2.1).": (
            lambda code, delta: _turned(code, delta, torch.ones(len(code) // 2, dtype=torch.float64))
        ),
        "Your speeds fall too slowly. In (2.1), what does i count, and what stands before it?": (
            lambda code, delta: _turned(code, delta, _speeds(code).sqrt())
        ),
        "Your speeds fall too fast. If your i runs over 0, 2, 4, ..., it has the 2 of (2.1) in it already.": (
            lambda code, delta: _turned(code, delta, _speeds(code) ** 2)
        ),
        "Later pairs turn faster than the first one. Look at the sign in the exponent of (2.1).": (
            lambda code, delta: _turned(code, delta, 1 / _speeds(code))
        ),
        "You take the first half for sines and the second for cosines. Which two numbers are a pair in (2.2)?": _halves,
        "Codes cannot be added: the code of m plus that of delta is no code of a place. Theorem 2.1 says what to do.": (
            lambda code, delta: code.double() + _code(delta, len(code))
        ),
        "It finds m from the first pair, but that pair has forgotten how many full turns it has made.": (
            lambda code, delta: _code(torch.atan2(code[0], code[1]).item() + delta, len(code))
        ),
    },
)
