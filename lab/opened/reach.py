"""How far does it reach? The second half of a text, moved away from the first."""

import torch

from lab.opened.shared import losses, means, model, stretches, with_gap

GAPS = (0, 1000, 2000, 4000, 6000, 7000, 8000, 9000, 11_000, 13_000, 15_000, 30_000, 60_000)


def reach() -> dict:
    """The loss of the second half of 1,024 tokens, moved away from the first; and read without the first.

    For some gaps also when only the first token of the first half is in sight.
    """
    read = stretches(1024)
    by_gap = {str(gap): means(losses(read, model().rotation(with_gap(512, 512, gap))), 513) for gap in GAPS}
    return {
        "by_gap": by_gap,
        "second half alone": means(losses(read[:, 512:]), 1),
        "first token alone": behind_the_first_token(),
    }


def behind_the_first_token() -> dict:
    """The loss of the second half when only the first token of the first half is in sight, so many places away."""
    read = stretches(1024)
    bias = torch.zeros(1024, 1024, device=model().inv_freq.device)
    bias[512:, 1:512] = -torch.inf
    return {
        str(gap): means(losses(read, model().rotation(with_gap(512, 512, gap)), bias=bias), 513)
        for gap in (7000, 9000, 11_000, 15_000)
    }
