"""Chapter 12: slow the pairs that make less than one turn within the length of training, and no others."""

import math
from collections.abc import Callable, Sequence

import torch

from lab.practice import Exercise
from rope_lib import inverse_frequencies

TURN = 2 * math.pi


def _slowed(
    where: Callable[[float, int], bool], change: Callable[[float, float], float] = lambda speed, factor: speed / factor
) -> Callable[[Sequence[float], int, float], list[float]]:
    """A rescue that changes the speeds that `where(speed, length)` names."""
    return lambda inv_freq, length, factor: [
        change(speed, factor) if where(speed, length) else speed for speed in inv_freq
    ]


def _from_the_whole_length(inv_freq: Sequence[float], length: int, factor: float) -> list[float]:
    return [speed / factor if factor * length * speed < TURN else speed for speed in inv_freq]


def _gradually(inv_freq: Sequence[float], length: int, factor: float) -> list[float]:
    """By parts: a blend between one turn and 32."""
    kept = [min(max((length * speed / TURN - 1) / 31, 0.0), 1.0) for speed in inv_freq]
    return [speed * (keep + (1 - keep) / factor) for speed, keep in zip(inv_freq, kept, strict=True)]


right = _slowed(lambda speed, length: length * speed < TURN)

exercise = Exercise(
    asked="rescued(inv_freq, length, factor)",
    right=right,
    cases=[
        ([1.0, 0.1], 20, 4.0),
        ([1.0, 0.25, 0.0625, 0.015625], 60, 2.0),
        (inverse_frequencies(16, base=1000.0).tolist(), 128, 3.0),
        (inverse_frequencies(64, base=100_000.0).tolist(), 8192, 4.0),
    ],
    mistakes={
        "The fast pairs are slowed, and the slow ones are not. Which of them has met every angle?":
            _slowed(lambda speed, length: length * speed >= TURN),
        "All pairs are slowed: that is linear interpolation, which takes neighbours apart no longer.":
            _slowed(lambda speed, length: True),
        "The speeds are multiplied by the factor. Then angles come that are still farther from those of training.":
            _slowed(lambda speed, length: length * speed < TURN, lambda speed, factor: speed * factor),
        "The border lies at one radian. A whole turn has 2 pi of them.":
            _slowed(lambda speed, length: length * speed < 1),
        "The border lies at half a turn. A pair that makes more than a half of a turn has still not met every angle.":
            _slowed(lambda speed, length: length * speed < TURN / 2),
        "The border lies at 360 radians: the speeds are radians per token, not degrees.":
            _slowed(lambda speed, length: length * speed < 360),
        "The turns are counted in the longer text, not in that of training: pairs that never met every angle are left "
        "as they are.": _from_the_whole_length,
        "The slow pairs stand still. They then say the same of each distance, and training used what they say.":
            _slowed(lambda speed, length: length * speed < TURN, lambda speed, factor: 0.0),
        "The pairs between one turn and 32 are blended: that is by parts. Asked is one border.": _gradually,
        "Of the pairs that make less than one turn only those from a twentieth on are slowed. That border is for pairs "
        "that may stand still.":
            _slowed(lambda speed, length: TURN / 20 <= length * speed < TURN),
        "The speeds came through float16, which has eleven binary digits and nothing below 6e-8: is something cast?":
            lambda *case: torch.tensor(right(*case)).half().tolist(),
    },
    each=True,
)  # fmt: skip
