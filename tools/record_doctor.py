"""Compute what SmolLM2 says behind forty prompts, right and with each mistake: python -m tools.record_doctor

It adds the mistakes that lab/published_models/doctor.npz does not know yet, one at a time (a minute or two each on two
cores), and stores each; broken off, it goes on where it was. `python -m lab.doctor` compares an engine with them. If
there is no such file it begins with `chosen`: the prompts, and the tokens whose log-probabilities are kept, the five
likeliest of the right model and the likeliest of each mistake. A mistake that is added later is computed for the tokens
that are there.
"""

import io
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

import lab
from lab.doctor.mistakes import in_groups, mistakes, said, without_effect
from lab.doctor.table import RIGHT, STORED, in_json
from lab.opened import KINDS, model, texts

LENGTHS = {64: 16, 384: 12, 1024: 8, 3000: 4}  # tokens: prompts
TOP = 5
PADDING = 2  # <|im_end|>


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


def chosen() -> dict[str, np.ndarray]:
    """A file to begin with: prompts, tokens, and no mistake yet."""
    ways, asked, tokens = mistakes(model(), PADDING), prompts(), []
    for prompt in tqdm(asked, unit=" prompts"):
        right = said(model(), prompt[None], None, [{}])[0, 0]
        following, groups = right[:1].argmax(-1), in_groups(ways)
        parts = [said(model(), prompt[None], following, [*names.values()], **reading) for reading, names in groups]
        found = torch.cat(parts)[:, 0]
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
        "words": in_json(words),
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
            following = torch.tensor(tokens[0, :1]).long()
            values = said(model(), prompt[None], following, [*behind.values()], **reading)[:, 0]
            likely = torch.from_numpy(tokens).long().clamp(min=0).expand(len(behind), -1, -1)
            file["known"][rows, p] = np.where(tokens >= 0, values.gather(2, likely).numpy(), 0)


def main() -> None:
    """Add what is missing; the long prompts, which take most of the time, at the end."""
    path = Path(lab.__file__).parent / STORED
    file, ways = dict(np.load(path)) if path.exists() else chosen(), mistakes(model(), PADDING)
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
