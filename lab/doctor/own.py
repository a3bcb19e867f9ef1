"""A table for a model of your own: what it says behind prompts that need no tokenizer, right and with each mistake.

A prompt is a row of tokens drawn from the model's vocabulary, followed by the beginning of the same row. To go on with
the copy a model has to find a place by its distance and by what stood before it, which a wrong rotation breaks first.
"""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from time import perf_counter

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from lab.doctor.mistakes import in_groups, mistakes, said, without_effect
from lab.doctor.table import RIGHT, Table, families
from lab.published_model import NotRead, PublishedModel

LENGTHS = {64: 10, 384: 8, 1024: 4}  # tokens: prompts; with fewer nothing can be said to grow
COMMON = 20_000  # of the tokens the first are the most frequent
TOP = 5


def drawn(model: PublishedModel) -> list[Tensor]:
    """Prompts of each length that the model allows, (prompts, length); the same ones each time."""
    rng, common = torch.Generator().manual_seed(0), model.plain[:COMMON]
    found = []
    for length, count in LENGTHS.items():
        rows = []
        for i in range(count):
            new = (length // 2, length * 2 // 3)[i % 2]
            part = common[torch.randint(len(common), (new,), generator=rng)]
            rows.append(torch.cat((torch.tensor(model.first, dtype=torch.long), part, part))[:length])
        if length + 2 <= model.trained_to:
            found.append(torch.stack(rows))
    if not found:
        raise NotRead(f"its context has {model.trained_to} tokens; needed are {min(LENGTHS) + 2}")
    return found


def table_of(path: Path) -> Table:
    """Compute it, with progress; how long that takes is said before it begins.

    Raises:
        NotRead: as `PublishedModel`.
    """
    model = PublishedModel(path)
    ways, asked = mistakes(model, padding=int(model.plain[0])), drawn(model)
    groups, words = in_groups(ways), {token: model.text([token]) for token in range(len(model.vocabulary))}
    work = [sum(part.numel() for reading, _ in groups if not without_effect(reading, part)) for part in asked]
    start = perf_counter()
    said(model, asked[-1][:1], None, [{}])
    seconds = (perf_counter() - start) / asked[-1].shape[1] * sum(work)
    takes = f"about {max(seconds / 60, 1):.0f} minutes"
    print(f"{model.name}: {sum(map(len, asked))} prompts, {len(ways) - 1} mistakes, {takes}.")
    tokens, known, following = [], [], []
    with tqdm(total=sum(work), unit=" tokens", unit_scale=True) as bar:
        for part in asked:
            [right] = said(model, part, None, [{}])
            if right.isnan().any():
                raise NotRead("what it says is not a number")
            following.append(right[:, 0].argmax(-1))
            found = {}
            for reading, behind in groups:
                values = right.expand(len(behind), -1, -1, -1)
                if not without_effect(reading, part):
                    values = said(model, part, following[-1], [*behind.values()], **reading)
                    bar.update(part.numel())
                found |= dict(zip(behind, values, strict=True))
            rows = torch.stack([found[name] for name in ways])
            for p in range(len(part)):
                tokens.append([likeliest(rows[:, p, place], right[p, place]) for place in (0, 1)])
                known.append([rows[:, p, place, tokens[-1][place]] for place in (0, 1)])
    most = max(map(len, chain(*tokens)))
    numbers = np.array([[row + [-1] * (most - len(row)) for row in rows] for rows in tokens], dtype=np.int32)
    model.in_bfloat16()
    parts = zip(asked, following, strict=True)
    again = torch.cat([said(model, part, token, [{}])[0] for part, token in tqdm([*parts], unit=" lengths, bfloat16")])
    rounded, values = np.zeros(numbers.shape), np.zeros((len(ways), *numbers.shape))
    for p, places in enumerate(known):
        for place, one in enumerate(places):
            values[:, p, place, : one.shape[1]] = one
            rounded[p, place, : one.shape[1]] = again[p, place, tokens[p][place]]
    same = [i for i, name in enumerate(ways) if name != RIGHT and np.array_equal(values[i], values[0])]
    return Table(
        prompts=[prompt for part in asked for prompt in part.tolist()],
        mistakes=[name for i, name in enumerate(ways) if i not in same],
        tokens=numbers,
        known=np.delete(values, same, 0),
        words=words,
        families=families(model.base, scaled=model.scaled, warm=model.factor != 1),
        model=f"{model.name} ({path.name}, base {model.base:,.10g})",
        rounded=rounded,
    )


def likeliest(rows: Tensor, right: Tensor) -> list[int]:
    """The five likeliest tokens of the right model, and the likeliest of each mistake, in its order."""
    found = {*right.topk(TOP).indices.tolist(), *rows.argmax(-1).tolist()}
    return sorted(found, key=lambda token: -right[token].item())
