"""A long text: twice the length of training, with methods that lengthen it, and in windows."""

from itertools import pairwise

import torch
from torch import Tensor

from lab.opened.found import stored
from lab.opened.shared import KINDS, groups, losses, means, methods, model, nats, stretches
from lab.published_model import Cache
from rope_lib import apply_rotary_emb, cos_sin

EDGES = (0, 256, 1024, 2048, 4096, 8192, 10_240, 12_288, 14_336, 16_384)
CONTEXTS = (256, 1024, 2048, 4096, 8192, 12_288, 15_872)  # tokens before the last 512
LONG_WAYS = ("as it is", "pairs 20 to 31", "linear", "NTK-aware", "by parts", "YaRN")
WINDOWS = {
    "window": {"kept": 0},
    "window, first token in place": {"kept": 1},
    "window, first token moved": {"kept": 1, "moved": True},
}


def long_ways() -> dict[str, tuple[Tensor | None, float]]:
    """For texts of twice the length: speeds, and what the tables are multiplied by."""
    ways = {"as it is": (None, 1.0)} | groups(2.0) | methods(2.0)
    return {name: ways[name] for name in LONG_WAYS}


def long_text(kind: str, way: str) -> dict:
    """Four texts of 16,384 tokens: losses between EDGES, and of the same last 512 tokens with more and more before."""
    read, (speeds, factor) = stretches(EDGES[-1], count=4, kinds=(kind,)), long_ways()[way]
    found = losses(read, model().rotation(torch.arange(EDGES[-1]), inv_freq=speeds, factor=factor), batch=1)
    by_position = [means(found, start, stop) for start, stop in pairwise(EDGES)]
    by_context = []
    for context in CONTEXTS:
        part = read[:, -512 - context :]
        rotate = model().rotation(torch.arange(part.shape[1]), inv_freq=speeds, factor=factor)
        by_context.append(means(losses(part, rotate, batch=1), context))
    return {"by_position": by_position, "by_context": by_context}


def long_window(kind: str) -> dict:
    """The same texts in a window of 4,096 in every layer, a block at a time.

    Without the first token, with the first token at its place in the text, and with it just before the window.
    """
    read, found = stretches(EDGES[-1], count=4, kinds=(kind,)), {}
    for name, options in WINDOWS.items():
        in_windows = torch.cat([in_window(text[None], 4096, **options) for text in read])
        found[name] = [means(in_windows, start, stop) for start, stop in pairwise(EDGES)]
    return found


def in_window(tokens: Tensor, width: int, kept: int, *, moved: bool = False, step: int = 512) -> Tensor:
    """(1, n - 1) losses, read in steps, so that no matrix of n times n is needed.

    `moved`: with each step the keys of the first `kept` tokens are turned to the places just before the window.
    """
    cache: Cache = []
    places, found, device = torch.arange(0), [], model().inv_freq.device
    for start in range(0, tokens.shape[1] - 1, step):
        new = torch.arange(start, min(start + step, tokens.shape[1] - 1))
        places = torch.cat((places, new))
        hidden = (new[:, None] - places >= width) & (places >= kept)
        bias = torch.zeros(hidden.shape, device=device).masked_fill(hidden.to(device), -torch.inf)
        states = model().hidden(tokens[:, new], model().rotation(new), bias=bias, cache=cache)
        found.append(nats(states, tokens[:, new + 1]))
        stay = (places < kept) | (places > new[-1] + 1 - width)  # what the next token sees
        cache[:] = [(k[..., stay.to(device), :], v[..., stay.to(device), :]) for k, v in cache]
        if moved:
            tables = cos_sin(torch.full((kept,), int((~stay).sum()), device=device), model().inv_freq)
            for k, _ in cache:
                k[..., :kept, :] = apply_rotary_emb(k[..., :kept, :].contiguous(), *tables, interleaved=True)
        places = places[stay]
    return torch.cat(found, dim=1)


def long_texts(part: str = "by_position") -> dict[str, Tensor]:
    """(2, parts, 4) stored losses for each way: kinds, EDGES or CONTEXTS, texts."""
    runs = {way: [stored("long text", kind=kind, way=way)[part] for kind in KINDS] for way in LONG_WAYS}
    if part == "by_position":
        windows = [stored("long window", kind=kind) for kind in KINDS]
        runs |= {name: [run[name] for run in windows] for name in WINDOWS}
    return {way: torch.tensor(found) for way, found in runs.items()}
