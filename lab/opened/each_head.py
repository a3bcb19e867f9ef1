"""One head at a time: which pairs it uses, where it looks, and what a text and a copy cost when its pairs stop."""

from functools import cache
from itertools import pairwise

import torch
from torch import Tensor

from lab.opened.found import heads
from lab.opened.shared import model, nats, random_words, rounded, scores, stretches, visit_layers, without
from lab.opened.which_pairs import shares_of_energy

STOPPED = {"all pairs": slice(0, 32), "pairs 0 to 7": slice(0, 8)}
BACK = (0, 1, 2, 4, 8, 16, 32, 64, 128, 256)  # a class of distances begins at each


def each_head(layer: int) -> dict:
    """For each head of a layer the shares of energy, of its attention by distance, and the prices of stopping pairs."""
    first, back = where_they_look()
    return {
        "energy": rounded(shares()[layer], 3), "first": rounded(first[layer], 3), "back": rounded(back[layer], 3),
        "text": prices("text", layer), "copy": prices("copy", layer),
    }  # fmt: skip


shares = cache(shares_of_energy)


@cache
def where_they_look() -> tuple[Tensor, Tensor]:
    """(layers, heads) and (layers, heads, 10): the attention to the first token, and to the others by class.

    Means over texts of 512 tokens, and over the queries from token 256 on.
    """
    n, read = 512, stretches(512, count=4)
    rotate, first, back = model().rotation(torch.arange(n)), [], []
    distance = torch.arange(n)[256:, None] - torch.arange(1, n)
    classes = [(distance >= low) & (distance < high) for low, high in pairwise((*BACK, n))]

    def add_attention(layer: int, q: Tensor, k: Tensor) -> None:
        every_score = scores(*rotate(layer, q, k))
        later = torch.ones_like(every_score, dtype=torch.bool).triu(1)
        weights = every_score.masked_fill(later, -torch.inf).softmax(-1)[..., 256:, :].mean(0).cpu()
        first.append(weights[..., 0].mean(-1))
        others = weights[..., 1:]
        back.append(torch.stack([others.masked_fill(~one, 0).sum(-1).mean(-1) for one in classes], dim=-1))

    visit_layers(read, add_attention, rotate)
    return torch.stack(first), torch.stack(back)


def read_by(kind: str) -> tuple[Tensor, int]:
    """What is read, and from where on it counts.

    The first 256 tokens of both texts, and, again, ten other stretches; or four times 96 random words, read twice, and,
    again, twelve times other words.
    """
    if kind == "text":
        return stretches(256, count=1), 0
    if kind == "text again":
        return stretches(256, count=6).unflatten(0, (2, 6))[:, 1:].flatten(0, 1), 0
    once = random_words(4, 96, seed=2) if kind == "copy" else random_words(12, 96, seed=3)
    return torch.cat((once, once), dim=1), 96


def prices(kind: str, layer: int) -> dict[str, list[float]]:
    """For each of STOPPED what it costs, in nats a token, for each head of the layer.

    What a layer gets does not depend on what is stopped in it, so that it is computed once.
    """
    usual = loss_from(0, kind).mean()
    return {
        name: [
            round((loss_from(layer, kind, without([(layer, head)], pairs)).mean() - usual).item(), 4)
            for head in range(9)
        ]
        for name, pairs in STOPPED.items()
    }


def heads_again() -> dict:
    """The heads that stood out in `each_head`, on what had no part in choosing them: a price for each text."""
    found = heads()
    copy, fast = found["copy, all pairs"], found["copy, pairs 0 to 7"]
    chosen = {"text": found["text, all pairs"] >= 0.02, "copy": (copy.abs() >= 0.3) | ((fast - copy).abs() >= 0.3)}
    return {kind: [prices_again(kind, *head) for head in which.nonzero().tolist()] for kind, which in chosen.items()}


def prices_again(kind: str, layer: int, head: int) -> dict:
    """For each of STOPPED what it costs, in nats a token, in each text."""
    usual = loss_from(0, f"{kind} again")
    costs = {
        name: rounded(loss_from(layer, f"{kind} again", without([(layer, head)], pairs)) - usual, 4)
        for name, pairs in STOPPED.items()
    }
    return {"layer": layer, "head": head, **costs}


@cache
def given_to(layer: int, kind: str) -> Tensor:
    """(batch, n, width): what a layer gets."""
    tokens, _ = read_by(kind)
    if layer == 0:
        return model().words[tokens.to(model().words.device)]
    return model().block(layer - 1, given_to(layer - 1, kind), model().rotation(torch.arange(tokens.shape[1])))


def loss_from(first: int, kind: str, speeds: Tensor | None = None) -> Tensor:
    """(batch,) the mean losses with other speeds in layer `first`."""
    tokens, start = read_by(kind)
    m, x = torch.arange(tokens.shape[1]), given_to(first, kind)
    usual, changed = model().rotation(m), model().rotation(m, inv_freq=speeds)
    for layer in range(first, model().layers):
        x = model().block(layer, x, changed if layer == first else usual)
    return nats(model().normalized(x)[:, start:-1], tokens[:, start + 1 :]).mean(-1)
