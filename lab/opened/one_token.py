"""One token: what the first one is worth when it is out of sight, dropped from a cache, or far away."""

import torch
from torch import Tensor

from lab.opened.shared import attention_by_distance, losses, means, model, nats, stretches, with_gap
from lab.published_model import Cache, window
from rope_lib import apply_rotary_emb, cos_sin

FAR = 15_000


def dropped(tokens: Tensor, first: int, last: int, filled: int = 512) -> Tensor:
    """(texts, n - filled) losses of what follows, when of so many cached tokens those from first to last are dropped.

    The keys that stay are turned back, so that positions have no gap.
    """
    cache: Cache = []
    model().hidden(tokens[:, :filled], cache=cache)
    gone = last - first
    tables = cos_sin(torch.full((filled - last,), -gone, device=model().inv_freq.device), model().inv_freq)
    for layer, (k, v) in enumerate(cache):
        turned_back = apply_rotary_emb(k[..., last:, :].contiguous(), *tables, interleaved=True)
        cache[layer] = (
            torch.cat((k[..., :first, :], turned_back), -2),
            torch.cat((v[..., :first, :], v[..., last:, :]), -2),
        )
    return nats(model().hidden(tokens[:, filled:-1], cache=cache), tokens[:, filled + 1 :])


def one_token() -> dict:
    """Windows in every layer with and without the first tokens; and 256 tokens dropped from a cache, in three ways."""
    read = stretches(1024, count=8)
    windows = {"whole text": None, "window": (128, 0), "window and first token": (128, 1),
               "window and first four": (128, 4)}  # fmt: skip
    in_windows = {
        name: means(losses(read, bias=sizes and window(1024, *sizes), batch=2), 256) for name, sizes in windows.items()
    }
    read = stretches(768, count=8)
    caches = {"nothing dropped": (0, 0), "the first 256 dropped": (0, 256), "the first token kept": (1, 257)}
    with_caches = {
        name: means(torch.cat([dropped(part, *ends) for part in read.split(4)])) for name, ends in caches.items()
    }
    with_caches["read anew"] = means(losses(read[:, 256:]), 257)
    return {"windows": in_windows, "cache": with_caches}


def first_token() -> dict:
    """The same texts when the first token alone stands far away; and the attention that it gets."""
    read, found = stretches(1024), {}
    for gap in (4000, 7500, FAR):
        rotate = model().rotation(with_gap(1, 1023, gap))
        found[f"whole text, {gap}"] = means(losses(read, rotate, batch=2), 256)
        found[f"window and first token, {gap}"] = means(losses(read, rotate, bias=window(1024, 128, 1), batch=2), 256)
    read = stretches(256, count=4)
    weight = {
        gap: attention_by_distance(read, model().rotation(with_gap(1, 255, gap)))["first"].mean().item()
        for gap in (0, 4000, 7500, FAR)
    }
    return found | {"weight": {str(gap): round(x, 3) for gap, x in weight.items()}}
