"""What a model says behind a prompt: with its own rotation, and with each mistake of the table."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor

from lab.doctor.table import READ, RIGHT, causes, families
from lab.published_model import Cache, PublishedModel, Rotate, unturned, window
from rope_lib import interleaved_to_half_split, inverse_frequencies
from rope_lib.scaling import ntk_scaling, yarn_attention_factor, yarn_scaling

BEHIND = ("place", "spoil")  # what is said of the token behind the prompt alone; see `said`
Turn = Callable[[Tensor], Rotate]


def every(step: int, own: Turn, other: Turn) -> Turn:
    """Every `step`-th layer turns otherwise."""

    def at(m: Tensor) -> Rotate:
        right, changed = own(m), other(m)
        return lambda layer, q, k: (changed if layer % step == step - 1 else right)(layer, q, k)

    return at


def ends(tokens: Tensor, count: int) -> Tensor:
    """The first and the last tokens, so many in all."""
    if tokens.shape[-1] <= count:
        return tokens
    return torch.cat((tokens[..., : count // 2], tokens[..., -count // 2 :]), -1)


def mistakes(model: PublishedModel, padding: int) -> dict[str, dict]:
    """For each mistake of `families` the arguments of `said`.

    Args:
        model: the one that is spoilt.
        padding: the token that is read in front.
    """
    dim, base, turn = model.head_dim, model.base, model.rotation

    def reordered(m: Tensor) -> Rotate:
        def rotate(layer: int, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            return turn(m)(layer, *(interleaved_to_half_split(x, head_dim=dim, dim=-1) for x in (q, k)))

        return rotate

    def with_speeds(inv_freq: Tensor, factor: float | None = None) -> dict:
        return {"turn": partial(turn, inv_freq=inv_freq, factor=factor)}

    def with_base(other: float) -> dict:
        return with_speeds(model.with_base(other))

    def yarn(factor: float) -> Tensor:
        return yarn_scaling(dim, base=base, factor=factor, original_max_position_embeddings=model.trained_to)

    def turned_twice(cache: Cache) -> Cache:
        again = turn(torch.arange(cache[0][0].shape[-2]))
        return [(again(layer, k, k)[1], v) for layer, (k, v) in enumerate(cache)]

    half, warm = dim // 4, yarn_attention_factor(4.0)
    slow_still = model.inv_freq.clone()
    slow_still[half:] = 0
    own_speeds = torch.cat(
        (inverse_frequencies(2 * half, base=base), torch.zeros(dim // 2 - half, dtype=torch.float64))
    )
    ways: dict[str, dict] = {
        RIGHT: {},
        "the other layout": {"turn": partial(turn, interleaved=False)},
        "weights in the other order": {"turn": reordered},
        "not rotated": {"turn": lambda m: unturned},
        "queries alone rotated": {"turn": lambda m: lambda layer, q, k: (turn(m)(layer, q, k)[0], k)},
        "turned backwards": {"turn": lambda m: turn(-m)},
        "positions divided by 2": {"turn": lambda m: turn(m / 2)},
        "positions divided by 4": {"turn": lambda m: turn(m / 4)},
        "positions times 2": {"turn": lambda m: turn(2 * m)},
        "its scaling left out": with_speeds(model.unscaled, 1.0),
        "its attention factor left out": with_speeds(model.inv_freq, 1.0),
        "its attention factor squared": with_speeds(model.inv_freq, model.factor**2),
        "YaRN by 2": with_speeds(yarn(2.0), yarn_attention_factor(2.0)),
        "YaRN by 4": with_speeds(yarn(4.0), warm),
        "YaRN by 4 without its attention factor": with_speeds(yarn(4.0)),
        "YaRN by 4 with its attention factor squared": with_speeds(yarn(4.0), warm**2),
        "an attention factor of 1.139": with_speeds(model.inv_freq, warm),
        "NTK-aware by 4": with_speeds(ntk_scaling(dim, base=base, factor=4.0)),
        "half of the head, with its own speeds": with_speeds(own_speeds),
        "the slow half not turned": with_speeds(slow_still),
        "every fourth layer not turned": {"turn": every(4, turn, lambda m: unturned)},
        "every second layer with base 10,000": {"turn": every(2, turn, with_base(10_000)["turn"])},
        "every sixth layer with base 10,000": {"turn": every(6, turn, with_base(10_000)["turn"])},
        "positions in bfloat16": {"turn": lambda m: turn(m.bfloat16().double())},
        "inverse frequencies in bfloat16": with_speeds(model.inv_freq.bfloat16().double()),
        "one place too late": {"place": lambda n: n + 1},
        "eight places too late": {"place": lambda n: n + 8},
        "one place too early": {"place": lambda n: n - 1},
        "always at place 0": {"place": lambda n: 0},
        "cached keys turned twice": {"spoil": turned_twice},
        "chunks of 512 from position 0": {"turn": lambda m: turn(m if len(m) == 1 else m % 512)},
        **{f"the last {count:,} tokens": {"read": lambda tokens, count=count: tokens[..., -count:]} for count in READ},
        "the middle dropped, 1,024 tokens kept": {"read": partial(ends, count=1024)},
        "eight padding tokens read in front": {
            "read": lambda tokens: torch.cat((torch.full((*tokens.shape[:-1], 8), padding), tokens), -1),
        },
        "a window of 512": {"shown": (512, 0)},
        "a window of 512 and the first token": {"shown": (512, 1)},
    }
    names = causes(families(base, scaled=bool(model.scaled), warm=model.factor != 1))
    bases = {name: with_base(float(name[5:].replace(",", ""))) for name in names if name.startswith("base ")}
    return {name: (bases | ways)[name] for name in names}


@torch.no_grad()
def said(
    model: PublishedModel,
    tokens: Tensor,
    following: Tensor | None,
    behind: list[dict],
    *,
    turn: Turn | None = None,
    read: Callable[[Tensor], Tensor] | None = None,
    shown: tuple[int, int] | None = None,
) -> Tensor:
    """(len(behind), prompts, 2, vocabulary) log-probabilities behind prompts, and behind the tokens that follow.

    Args:
        model: what reads.
        tokens: (prompts, n), of one length.
        following: (prompts,) the token behind each; None is the likeliest.
        behind: of the token behind it: `place`, its position, and `spoil`, which changes the cache before it is read.
        turn: how the tokens of given positions turn.
        read: which tokens are read of the prompt.
        shown: a window, and how many tokens it keeps besides.
    """
    turn, tokens = turn or model.rotation, read(tokens) if read else tokens
    n, cache = tokens.shape[-1], Cache()
    bias = window(n + 1, *shown) if shown else None
    states = model.hidden(tokens, turn(torch.arange(n)), cache=cache, bias=None if bias is None else bias[:n, :n])
    first = model.log_probabilities(states[:, -1])
    following = first.argmax(-1) if following is None else following
    found, bias = [], None if bias is None else bias[n:]
    for way in behind:
        grown = way["spoil"](cache) if "spoil" in way else Cache(cache)
        at = torch.tensor([way["place"](n) if "place" in way else n])
        states = model.hidden(following[:, None], turn(at), cache=grown, bias=bias)
        found.append(torch.stack((first, model.log_probabilities(states[:, -1])), 1))
    return torch.stack(found).cpu()


def in_groups(ways: dict[str, dict]) -> list[tuple[dict, dict[str, dict]]]:
    """Mistakes that read the prompt alike: how they read it, and for each what is done behind it."""
    groups: list[tuple[dict, dict[str, dict]]] = []
    for name, way in ways.items():
        reading = {key: value for key, value in way.items() if key not in BEHIND}
        behind = {key: value for key, value in way.items() if key in BEHIND}
        for other, names in groups:
            if other == reading:
                names[name] = behind
                break
        else:
            groups.append((reading, {name: behind}))
    return groups


def without_effect(way: dict, prompt: Tensor) -> bool:
    """Whether a mistake changes nothing of so short a prompt, or prompts: it is not computed then."""
    if "shown" in way:
        return prompt.shape[-1] < way["shown"][0]
    return "read" in way and torch.equal(way["read"](prompt), prompt)
