"""Rescue: far copies and far texts when some pairs are slowed, and which pairs those must be."""

import numpy as np
import torch
from torch import Tensor

from lab.opened.found import stored
from lab.opened.shared import copies, groups, losses, means, methods, model, rounded, slowed, stretches, with_gap

NEAR_GAPS = tuple(range(0, 8001, 500))
FAR_GAPS = tuple(range(12_000, 24_001, 1500))
FACTORS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0)
FIRST, LAST = tuple(range(18, 23)), tuple(range(24, 32))  # the faster and the slower border


def copies_at(gaps: tuple[int, ...], *, count: int = 4, **changed) -> list[float]:
    """For each gap the mean loss of some copies; other words at each gap, the same for each way to slow pairs."""
    return [round(copies(gap, count=count, seed=1 + i, **changed).mean().item(), 4) for i, gap in enumerate(gaps)]


def moved_text(read: Tensor, gap: int, speeds: Tensor | None = None, factor: float = 1.0) -> list[float]:
    """The loss of the second half of each text, moved away from the first."""
    rotate = model().rotation(with_gap(512, 512, gap), inv_freq=speeds, factor=factor)
    return means(losses(read, rotate), 513)


def rescue() -> dict:
    """For each way to slow pairs by 4: copies and a text whose second part is far away, and the price near by.

    What a copy costs depends on the very gap, also where nothing is slowed. So there are many gaps, with four copies
    each, and the same for the model as it is and gaps below its length.
    """
    read = stretches(1024, count=4)
    ways = {"as it is": (None, 1.0)} | groups(4.0) | methods(4.0)
    found = {}
    for name, (speeds, factor) in ways.items():
        changed = {"speeds": speeds, "factor": factor}
        near, *far = (moved_text(read, gap, **changed) for gap in (0, *FAR_GAPS[::4]))
        found[name] = {
            "copy, far": copies_at(FAR_GAPS, **changed), "copy, near": copies_at((0,) * len(FAR_GAPS), **changed),
            "text, far": rounded(torch.tensor(far).mean(0), 4), "text, near": near,
        }  # fmt: skip
    return {
        "ways": found, "copies by gap": copies_at(NEAR_GAPS, count=8),
        "text, second half alone": means(losses(read[:, 512:]), 1),
    }  # fmt: skip


def map_of_rescue() -> dict:
    """Far copies, and a text near by, with the pairs from p on slowed: a row for each factor, a column for each p."""
    read, m = stretches(256, count=2), torch.arange(256)
    far, near = [], []
    for factor in FACTORS:
        ways = [slowed(p, 32, factor) for p in range(33)]
        far.append([round(float(np.mean(copies_at(FAR_GAPS, count=1, speeds=speeds))), 3) for speeds in ways])
        near.append([round(losses(read, model().rotation(m, inv_freq=speeds)).mean().item(), 3) for speeds in ways])
    return {"factors": FACTORS, "copy": far, "near": near}


def borders(first: int) -> dict:
    """Far copies, the pairs from `first` to q slowed by 4: a row for each q of LAST, a loss for each of FAR_GAPS."""
    return {"copy": [copies_at(FAR_GAPS, speeds=slowed(first, q + 1, 4.0)) for q in LAST]}


def far_copies() -> Tensor:
    """(FIRST, LAST, FAR_GAPS) losses, as stored by `borders`."""
    return torch.tensor([stored("borders", first=first)["copy"] for first in FIRST])


def rescued_again() -> dict:
    """Nine pairs and all twelve on other words than those of the map; and the nine in the far texts of `rescue`."""
    read, on_other_words = stretches(1024, count=4), {}
    for name, last in (("pairs 20 to 28", 28), ("pairs 20 to 31", 31)):
        speeds = slowed(20, last + 1, 4.0)
        losses_by_gap = [copies(gap, speeds, count=4, seed=501 + i).mean().item() for i, gap in enumerate(FAR_GAPS)]
        on_other_words[name] = [round(x, 4) for x in losses_by_gap]
    text = [moved_text(read, gap, slowed(20, 29, 4.0)) for gap in FAR_GAPS[::4]]
    return {"copy": on_other_words, "text, 20 to 28": rounded(torch.tensor(text).mean(0), 4)}
