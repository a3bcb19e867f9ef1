"""Break it: what each mistake in the rotation costs, and whether a short prompt shows it."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from lab.opened.shared import losses, means, model, stretches
from lab.published_model import Rotate, unturned
from rope_lib import inverse_frequencies

CAPITAL = (504, 3575, 282, 4649, 314)  # "The capital of France is"


def changes() -> dict[str, Callable[[Tensor], Rotate]]:
    """The rotation as it is, and with one mistake each: from positions to how they turn."""
    rotation = model().rotation
    positions_rounded = {
        f"positions in bfloat16, from {start}": lambda m, start=start: rotation((m + start).bfloat16().double())
        for start in (0, 1000, 7600)
    }
    other_bases = {
        f"base {base:,}": partial(rotation, inv_freq=inverse_frequencies(64, base=base))
        for base in (10_000, 500_000, 1_000_000)
    }
    return {
        "right": rotation,
        "the other layout": partial(rotation, interleaved=False),
        "not rotated": lambda m: unturned,
        "turned backwards": lambda m: rotation(-m),
        **positions_rounded,
        **other_bases,
        "inverse frequencies in bfloat16": partial(rotation, inv_freq=model().inv_freq.bfloat16().double()),
        "positions divided by 2": lambda m: rotation(m / 2),
        "all shifted by 100,000": lambda m: rotation(m + 100_000),
        "all shifted by 1,000,000": lambda m: rotation(m + 1_000_000),
    }


def mistakes(n: int) -> dict[str, Rotate]:
    return {name: rotation(torch.arange(n)) for name, rotation in changes().items()}


def break_it() -> dict:
    """For each mistake the loss of each stretch, and the word behind "The capital of France is".

    Also in how many of 64 other prompts of five tokens, the beginnings of stretches, the same word is the likeliest.
    """
    read = stretches(512)
    found = {name: means(losses(read, rotate)) for name, rotate in mistakes(512).items()}
    return {"losses": found} | short_prompts()


def short_prompts() -> dict:
    """The words behind "The capital of France is" and behind 64 other prompts, for each mistake."""
    words, other_words = {}, {}
    prompts = torch.cat((torch.tensor([CAPITAL]), stretches(len(CAPITAL), count=32)))
    for name, rotate in mistakes(len(CAPITAL)).items():
        likely = model().log_probabilities(model().hidden(prompts, rotate)[:, -1])
        words[name] = [model().text([likely[0].argmax()]), round(likely[0].max().exp().item(), 3)]
        other_words[name] = likely[1:].argmax(-1)
    same = {name: int((tokens == other_words["right"]).sum()) for name, tokens in other_words.items()}
    return {"said": words, "same": same}
