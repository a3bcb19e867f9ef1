"""What several experiments need: the model, texts, losses, what a layer sees, other speeds and positions, copies."""

import io
import pkgutil
import re
from collections.abc import Callable
from functools import cache

import numpy as np
import torch
from torch import Tensor

import lab
from lab.published_model import PublishedModel, Rotate
from rope_lib.scaling import linear_scaling, ntk_by_parts_scaling, ntk_scaling, yarn_attention_factor, yarn_scaling

KINDS = ("book", "python")
WORD = re.compile("Ġ[a-z]{4,}")


@cache
def model() -> PublishedModel:
    return PublishedModel()


# -- Texts -------------------------------------------------------------------------------------------------------------


@cache
def texts() -> dict[str, Tensor]:
    """The stored tokens: this book's own words, which the model cannot have read, and documentation of Python."""
    stored = np.load(io.BytesIO(pkgutil.get_data(lab.__name__, "published_models/texts.npz")))
    return {kind: torch.from_numpy(stored[kind].astype(np.int64)) for kind in KINDS}


def stretches(length: int, count: int = 8, kinds: tuple[str, ...] = KINDS) -> Tensor:
    """(len(kinds) * count, length): so many stretches of each kind, spread evenly."""
    parts = []
    for kind in kinds:
        text = texts()[kind]
        starts = torch.linspace(0, len(text) - length, count).long()
        parts += [text[start : start + length] for start in starts]
    return torch.stack(parts)


def random_words(count: int, length: int, seed: int = 0) -> Tensor:
    """(count, length) tokens that are a word of four letters or more behind a space, each as likely as any."""
    words = torch.tensor([i for i, name in enumerate(model().vocabulary) if WORD.fullmatch(name)])
    return words[torch.randint(len(words), (count, length), generator=torch.Generator().manual_seed(seed))]


# -- Losses ------------------------------------------------------------------------------------------------------------


def losses(tokens: Tensor, rotate: Rotate | None = None, *, batch: int = 4, **options) -> Tensor:
    """`PublishedModel.losses`, a few texts at a time."""
    return torch.cat([model().losses(part, rotate, **options).cpu() for part in tokens.split(batch)])


def nats(states: Tensor, following: Tensor) -> Tensor:
    """(batch, n, 576) of `hidden`, and the tokens that came next -> (batch, n) losses."""
    return -model().log_probabilities(states).gather(-1, following.to(states.device)[..., None])[..., 0].cpu()


def means(losses: Tensor, start: int = 0, stop: int | None = None) -> list[float]:
    """(texts, n - 1) nats -> for each text the mean over tokens start to stop; token 0 is not predicted."""
    return [round(x, 4) for x in losses[:, max(start - 1, 0) : None if stop is None else stop - 1].mean(1).tolist()]


def rounded(numbers: Tensor, digits: int) -> list:
    """Nested lists with so many decimals."""
    return np.round(numbers.double().cpu().numpy(), digits).tolist()


# -- What a layer sees -------------------------------------------------------------------------------------------------


def visit_layers(tokens: Tensor, visit: Callable[[int, Tensor, Tensor], None], rotate: Rotate | None = None) -> None:
    """Run the model, and call `visit(layer, q, k)` in each layer with its queries and keys before their rotation.

    Args:
        tokens: (batch, n).
        visit: gets q of shape (batch, heads, n, 64), and k with fewer heads.
        rotate: None is the model's own rotation.
    """
    rotate = rotate or model().rotation(torch.arange(tokens.shape[1]))

    def visit_and_rotate(layer: int, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
        visit(layer, q, k)
        return rotate(layer, q, k)

    model().hidden(tokens, visit_and_rotate)


def for_each_head(k: Tensor) -> Tensor:
    """(batch, kv_heads, ...) -> (batch, heads, ...): the keys that each head of queries sees."""
    return k.repeat_interleave(model().heads // k.shape[1], dim=1)


def scores(q: Tensor, k: Tensor) -> Tensor:
    """(batch, heads, n, n) of rotated queries and keys, without a mask."""
    return q @ for_each_head(k).mT / q.shape[-1] ** 0.5


def attention_by_distance(tokens: Tensor, rotate: Rotate | None = None) -> dict[str, Tensor]:
    """(layers, heads, 6) and (layers, heads): the attention to the token so many back, and to the first one.

    Means over texts, and over the queries from token 64 on.
    """
    back, first = [], []
    rotate = rotate or model().rotation(torch.arange(tokens.shape[1]))

    def add_attention(layer: int, q: Tensor, k: Tensor) -> None:
        every_score = scores(*rotate(layer, q, k))
        later = torch.ones_like(every_score, dtype=torch.bool).triu(1)
        weights = every_score.masked_fill(later, -torch.inf).softmax(-1)[..., 64:, :]
        back.append(torch.stack([weights.diagonal(64 - d, -2, -1).mean((0, 2)) for d in range(6)], dim=-1))
        first.append(weights[..., 0].mean((0, 2)))

    visit_layers(tokens, add_attention, rotate)
    return {"back": torch.stack(back).cpu(), "first": torch.stack(first).cpu()}


# -- Other speeds, other positions -------------------------------------------------------------------------------------


def slowed(first: int, last: int, factor: float) -> Tensor:
    """The model's speeds, those of the pairs from `first` up to `last` divided."""
    speeds = model().inv_freq.cpu().clone()
    speeds[first:last] /= factor
    return speeds


def without(heads: list[tuple[int, int]], pairs: slice) -> Tensor:
    """(layers, heads, 32) speeds: those of the model, but 0 for some pairs of some heads."""
    speeds = model().inv_freq.cpu().repeat(model().layers, model().heads, 1)
    for layer, head in heads:
        speeds[layer, head, pairs] = 0
    return speeds


def methods(factor: float) -> dict[str, tuple[Tensor, float]]:
    """The speeds of each method, and what the tables are multiplied by."""
    base = {"base": model().base}
    trained = {"factor": factor, "original_max_position_embeddings": model().trained_to} | base
    attention_factor = yarn_attention_factor(factor)
    by_parts = ntk_by_parts_scaling(64, **trained)
    return {
        "linear": (linear_scaling(64, factor=factor, **base), 1.0),
        "NTK-aware": (ntk_scaling(64, factor=factor, **base), 1.0),
        "by parts": (by_parts, 1.0),
        "by parts, temperature": (by_parts, attention_factor),
        "YaRN, no temperature": (yarn_scaling(64, **trained), 1.0),
        "YaRN": (yarn_scaling(64, **trained), attention_factor),
    }


def groups(factor: float) -> dict[str, tuple[Tensor, float]]:
    """Some pairs slowed by a factor, all others as they are."""
    ends = {"0 to 13": (0, 14), "14 to 21": (14, 22), "22 to 25": (22, 26), "26 to 31": (26, 32), "20 to 31": (20, 32)}
    return {f"pairs {name}": (slowed(*pair, factor), 1.0) for name, pair in ends.items()}


def with_gap(first: int, second: int, gap: int) -> Tensor:
    """Positions of a text whose second part stands `gap` further back than it should."""
    return torch.cat((torch.arange(first), first + gap + torch.arange(second)))


# -- Copies ------------------------------------------------------------------------------------------------------------


def copies(gap: int, speeds: Tensor | None = None, factor: float = 1.0, count: int = 16, seed: int = 1) -> Tensor:
    """(count, 95) losses: 96 random words, read a second time `gap` positions further on."""
    once = random_words(count, 96, seed)
    twice = torch.cat((once, once), dim=1)
    rotate = model().rotation(with_gap(96, 95, gap), inv_freq=speeds, factor=factor)
    parts = [nats(model().hidden(part[:, :-1], rotate)[:, 96:], part[:, 97:]) for part in twice.split(8)]
    return torch.cat(parts)
