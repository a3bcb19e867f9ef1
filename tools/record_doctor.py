"""Compute what SmolLM2 says behind forty prompts, right and with each mistake: python -m tools.record_doctor

It adds the mistakes that lab/published_models/doctor.npz does not know yet, one at a time (a minute or two each on two
cores), and stores each; broken off, it goes on where it was. `python -m lab.doctor` compares an engine with them. If
there is no such file it begins with `chosen`: the prompts, and the tokens whose log-probabilities are kept, the five
likeliest of the right model and the likeliest of each mistake. A mistake that is added later is computed for the tokens
that are there.
"""

import io
import json
from collections.abc import Callable, Sequence
from functools import partial
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

import lab
from lab.doctor.table import BASES, CAUSES, READ, RIGHT, STORED
from lab.opened import KINDS, changes, methods, model, stopped, texts, unturned, window
from lab.published_model import Cache, Rotate
from rope_lib import interleaved_to_half_split, inverse_frequencies

LENGTHS = {64: 16, 384: 12, 1024: 8, 3000: 4}  # tokens: prompts
TOP = 5
PADDING = 2  # <|im_end|>
BEHIND = ("place", "spoil")  # what is said of the token behind the prompt alone; see `said`
Turn = Callable[[Tensor], Rotate]


def prompts() -> list[Tensor]:
    """Of both kinds of text in turn; of the long ones every second is a text and the beginning of it once more."""
    found = []
    for length, count in LENGTHS.items():
        for i in range(count):
            text = texts()[KINDS[i % 2]]
            start = 500 + i * (len(text) - 4000) // count
            twice = length > 384 and i % 4 > 1
            part = text[start : start + (length * 2 // 3 if twice else length)]
            found.append(torch.cat((part, part[: length - len(part)])))
    return found


def reordered(turn: Turn) -> Turn:
    """Rows of W_q and W_k in the half-split order."""

    def at(m: Tensor) -> Rotate:
        def rotate(layer: int, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            return turn(m)(layer, *(interleaved_to_half_split(x, head_dim=64, dim=-1) for x in (q, k)))

        return rotate

    return at


def queries_alone(turn: Turn) -> Turn:
    """Keys as they are."""
    return lambda m: lambda layer, q, k: (turn(m)(layer, q, k)[0], k)


def every(step: int, other: Turn) -> Turn:
    """Every so-manieth layer turns otherwise."""

    def at(m: Tensor) -> Rotate:
        own, changed = model().rotation(m), other(m)
        return lambda layer, q, k: (changed if layer % step == step - 1 else own)(layer, q, k)

    return at


def with_speeds(inv_freq: Tensor, factor: float = 1.0) -> Turn:
    """Other speeds, and tables multiplied by a factor."""
    return partial(model().rotation, inv_freq=inv_freq, factor=factor)


def ends(tokens: Tensor, count: int) -> Tensor:
    """The first and the last tokens, so many in all."""
    return torch.cat((tokens[: count // 2], tokens[-count // 2 :])) if len(tokens) > count else tokens


def turned_twice(cache: Cache) -> Cache:
    """With its keys turned once more."""
    turn = model().rotation(torch.arange(cache[0][0].shape[-2]))
    return [(turn(layer, k, k)[1], v) for layer, (k, v) in enumerate(cache)]


def mistakes() -> dict[str, dict]:
    """For each name in CAUSES the arguments of `reading` and of `behind`."""
    known, turn, base = changes(), model().rotation, model().base
    yarn, warm = methods(4.0)["YaRN"]
    own_speeds = torch.cat((inverse_frequencies(32, base=base), torch.zeros(16, dtype=torch.float64)))
    local = with_speeds(inverse_frequencies(64, base=10_000.0))
    turns = {
        **{name: known[name] for name in CAUSES if name in known},
        **{f"base {base:,}": with_speeds(inverse_frequencies(64, base=float(base))) for base in BASES},
        "weights in the other order": reordered(turn),
        "queries alone rotated": queries_alone(turn),
        "positions divided by 4": lambda m: turn(m / 4),
        "positions times 2": lambda m: turn(2 * m),
        "YaRN by 2": with_speeds(*methods(2.0)["YaRN"]),
        "YaRN by 4": with_speeds(yarn, warm),
        "YaRN by 4 without its attention factor": with_speeds(yarn),
        "YaRN by 4 with its attention factor squared": with_speeds(yarn, warm**2),
        "an attention factor of 1.139": with_speeds(model().inv_freq, warm),
        "NTK-aware by 4": with_speeds(*methods(4.0)["NTK-aware"]),
        "half of the head, with its own speeds": with_speeds(own_speeds),
        "the slow half not turned": with_speeds(stopped(16)),
        "every fourth layer not turned": every(4, lambda m: unturned),
        "every second layer with base 10,000": every(2, local),
        "every sixth layer with base 10,000": every(6, local),
        "positions in bfloat16": known["positions in bfloat16, from 0"],
        "chunks of 512 from position 0": lambda m: turn(m if len(m) == 1 else m % 512),
    }
    others = {
        RIGHT: {},
        "one place too late": {"place": lambda n: n + 1},
        "eight places too late": {"place": lambda n: n + 8},
        "one place too early": {"place": lambda n: n - 1},
        "always at place 0": {"place": lambda n: 0},
        "cached keys turned twice": {"spoil": turned_twice},
        **{f"the last {count:,} tokens": {"read": lambda tokens, count=count: tokens[-count:]} for count in READ},
        "the middle dropped, 1,024 tokens kept": {"read": partial(ends, count=1024)},
        "eight padding tokens read in front": {
            "read": lambda tokens: torch.cat((torch.full((8,), PADDING), tokens)),
        },
        "a window of 512": {"shown": (512, 0)},
        "a window of 512 and the first token": {"shown": (512, 1)},
    }
    return {name: {"turn": turns[name]} if name in turns else others[name] for name in CAUSES}


def said(
    tokens: Tensor, following: int | None, behind: list[dict], *, turn: Turn | None = None,
    read: Callable[[Tensor], Tensor] | None = None, shown: tuple[int, int] | None = None,
) -> Tensor:  # fmt: skip
    """(len(behind), 2, 49152) log-probabilities behind the prompt, and behind `following`; None is the likeliest token.

    Args:
        tokens: (n,) the prompt.
        behind: of the token behind it: `place`, its position, and `spoil`, which changes the cache before it is read.
        turn: how the tokens of given positions turn.
        read: which tokens are read of the prompt.
        shown: a window, and how many tokens it keeps besides.
    """
    turn, tokens = turn or model().rotation, read(tokens) if read else tokens
    n, cache = len(tokens), Cache()
    bias = window(n + 1, *shown) if shown else None
    states = model().hidden(
        tokens[None], turn(torch.arange(n)), cache=cache, bias=None if bias is None else bias[:n, :n]
    )
    first = model().log_probabilities(states[0, -1])
    following = torch.tensor([[int(first.argmax()) if following is None else following]])
    found, bias = [], None if bias is None else bias[n:]
    for way in behind:
        grown = way["spoil"](cache) if "spoil" in way else Cache(cache)
        at = torch.tensor([way["place"](n) if "place" in way else n])
        states = model().hidden(following, turn(at), cache=grown, bias=bias)
        found.append(torch.stack((first, model().log_probabilities(states[0, -1]))))
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
    """Whether a mistake changes nothing of so short a prompt: it is not computed then."""
    if "shown" in way:
        return len(prompt) < way["shown"][0]
    return "read" in way and torch.equal(way["read"](prompt), prompt)


def chosen() -> dict[str, np.ndarray]:
    """A file to begin with: prompts, tokens, and no mistake yet."""
    ways, asked, tokens = mistakes(), prompts(), []
    for prompt in tqdm(asked, unit=" prompts"):
        [right] = said(prompt, None, [{}])
        following, groups = int(right[0].argmax()), in_groups(ways)
        found = torch.cat([said(prompt, following, [*names.values()], **reading) for reading, names in groups])
        rows = []
        for place in (0, 1):
            likely = {*right[place].topk(TOP).indices.tolist(), *found[:, place].argmax(-1).tolist()}
            rows.append(sorted(likely, key=right[place].tolist().__getitem__, reverse=True))
        tokens.append(rows)
    longest = max(len(row) for row in chain(*tokens))
    words = {token: model().text([token]) for token in sorted({*chain(*chain(*tokens))})}
    return {
        "prompts": torch.cat(asked).to(torch.int32).numpy(),
        "ends": np.cumsum([len(prompt) for prompt in asked]),
        "tokens": np.array([[row + [-1] * (longest - len(row)) for row in rows] for rows in tokens], dtype=np.int32),
        "words": np.frombuffer(json.dumps(words).encode(), dtype=np.uint8),
        "names": np.array([], dtype=str),
        "known": np.zeros((0, len(asked), 2, longest), dtype=np.float16),
    }


def add(reading: dict, behind: dict[str, dict], file: dict[str, np.ndarray], places: Sequence[int]) -> None:
    """Compute these mistakes for the prompts at these places, where it was not done."""
    asked, names = np.split(file["prompts"], file["ends"][:-1]), file["names"].tolist()
    rows = [names.index(name) for name in behind]
    for p in tqdm(places, unit=" prompts", leave=False):
        if not np.isnan(file["known"][rows, p]).any():
            continue
        prompt, tokens = torch.from_numpy(asked[p].astype(np.int64)), file["tokens"][p]
        if without_effect(reading, prompt):
            file["known"][rows, p] = file["known"][names.index(RIGHT), p]
        else:
            values = said(prompt, int(tokens[0, 0]), [*behind.values()], **reading)
            likely = torch.from_numpy(tokens).long().clamp(min=0).expand(len(behind), -1, -1)
            file["known"][rows, p] = np.where(tokens >= 0, values.gather(2, likely).numpy(), 0)


def main() -> None:
    """Add what is missing; the long prompts, which take most of the time, at the end."""
    path = Path(lab.__file__).parent / STORED
    file, ways = dict(np.load(path)) if path.exists() else chosen(), mistakes()
    new = [name for name in ways if name not in file["names"]]
    file["names"] = np.array([*file["names"], *new])
    empty = np.full((len(new), *file["tokens"].shape), np.nan, dtype=np.float16)
    file["known"] = np.concatenate((file["known"], empty))
    lengths = np.diff(file["ends"], prepend=0)
    short, some = [*np.flatnonzero(lengths < 1024)], [*np.flatnonzero(lengths == 1024)[[0, 3]]]
    for places in (short + some, range(len(lengths))):
        for reading, behind in tqdm(in_groups(ways), unit=" readings"):
            add(reading, behind, file, places)
            buffer = io.BytesIO()
            np.savez_compressed(buffer, **file)
            path.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    main()
