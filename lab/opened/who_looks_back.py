"""Who looks back? The heads that look one token back, and what a copy costs when a part of them does not turn."""

import torch

from lab.opened.shared import (
    attention_by_distance,
    losses,
    means,
    model,
    random_words,
    rounded,
    stretches,
    without,
)


def who_looks_back() -> dict:
    """The heads that look one back, and what a copy of random words costs when a part of them does not turn."""
    read = stretches(256, count=4)
    seen = attention_by_distance(read)
    one_back = seen["back"][..., 1]
    order = [divmod(i, model().heads) for i in one_back.flatten().argsort(descending=True).tolist()]
    five, next_five = order[:5], order[5:10]
    of_their_layers = [(layer, h) for layer in {layer for layer, _ in five} for h in range(9) if (layer, h) not in five]
    draw = torch.Generator().manual_seed(0)
    others = [[of_their_layers[i] for i in torch.randperm(len(of_their_layers), generator=draw)[:5]] for _ in range(3)]
    once = random_words(16, 128)
    twice = torch.cat((once, once), dim=1)
    m, whole, fast = torch.arange(256), slice(0, 32), slice(0, 4)
    variants = {
        "as it is": None,
        "pairs 0 to 3": without(five, fast),
        "pairs 4 to 7": without(five, slice(4, 8)),
        "pairs 8 to 15": without(five, slice(8, 16)),
        "pairs 16 to 31": without(five, slice(16, 32)),
        "pairs 4 to 31": without(five, slice(4, 32)),
        "all pairs": without(five, whole),
        **{f"pairs 0 to 3, only layer {layer}": without([(layer, head)], fast) for layer, head in five},
        "pairs 0 to 3 of the next five heads": without(next_five, fast),
        **{f"other five heads, {i}": without(heads, whole) for i, heads in enumerate(others)},
    }
    second_time, first_time = {}, {}
    for name, speeds in variants.items():
        found = losses(twice, model().rotation(m, inv_freq=speeds))
        second_time[name], first_time[name] = means(found, 129), means(found, 1, 128)
    one_back_stopped = {}
    for name in ("pairs 0 to 3", "pairs 4 to 31"):
        back = attention_by_distance(read, model().rotation(m, inv_freq=variants[name]))["back"][..., 1]
        one_back_stopped[name] = [rounded(back[layer, head], 3) for layer, head in five]
    return {
        "heads": five, "next_heads": next_five, "other_heads": others,
        "one_back": rounded(one_back, 3), "one_back_stopped": one_back_stopped,
        "most_at": rounded(seen["back"].flatten(0, 1).amax(0), 3), "first": rounded(seen["first"], 3),
        "copied": second_time, "first_time": first_time,
    }  # fmt: skip
