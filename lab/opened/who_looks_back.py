"""Who looks back? The heads that look one token back, and what a copy costs when a part of them does not turn."""

import torch

from lab.opened.found import stored
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


def next_five() -> dict:
    """What a copy costs when one of the next five heads, or the four others, turn in part or not at all."""
    worst, fast, whole = (19, 8), slice(0, 4), slice(0, 32)
    five = [tuple(head) for head in stored("who looks back")["next_heads"]]
    four = [head for head in five if head != worst]
    variants = {
        "pairs 0 to 3, only layer 19, head 8": without([worst], fast),
        "all pairs, only layer 19, head 8": without([worst], whole),
        "pairs 0 to 3, the four others": without(four, fast),
        "all pairs, all five": without(five, whole),
    }
    once = random_words(16, 128)
    twice, m = torch.cat((once, once), dim=1), torch.arange(256)
    rotations = {name: model().rotation(m, inv_freq=speeds) for name, speeds in variants.items()}
    return {"copied": {name: means(losses(twice, rotate), 129) for name, rotate in rotations.items()}}


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
