"""Compute what SmolLM2 says behind forty prompts, right and with each mistake: python -m tools.record_doctor

Writes lab/published_models/doctor.npz, which `python -m lab.doctor` compares with an engine; half an hour on two cores.
"""

import io
import json
from collections.abc import Callable
from functools import partial
from itertools import chain

import numpy as np
import torch
from torch import Tensor
from tqdm import tqdm

from lab.doctor.table import CAUSES, RIGHT, STORED
from lab.opened import KINDS, changes, methods, model, texts, window
from lab.published_model import Cache, Rotate
from rope_lib import interleaved_to_half_split

LENGTHS = {64: 16, 384: 12, 1024: 8, 3000: 4}  # tokens: prompts
TOP = 5
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


def mistakes() -> dict[str, dict]:
    """For each name in CAUSES: how positions turn, of the prompt and of the token behind it, and what is read."""
    known, turn = changes(), model().rotation
    yarn, warm = methods(4.0)["YaRN"]
    found: dict[str, dict] = {name: {"turn": known[name]} for name in CAUSES if name in known}
    found |= {
        RIGHT: {},
        "weights in the other order": {"turn": reordered(turn)},
        "queries alone rotated": {"turn": queries_alone(turn)},
        "positions divided by 4": {"turn": lambda m: turn(m / 4)},
        "YaRN by 4": {"turn": partial(turn, inv_freq=yarn, factor=warm)},
        "positions in bfloat16": {"turn": known["positions in bfloat16, from 0"]},
        "one place too late": {"behind": lambda n: n + 1},
        "one place too early": {"behind": lambda n: n - 1},
        "always at place 0": {"behind": lambda n: 0},
        "the last 256 tokens": {"read": 256},
        "the last 512 tokens": {"read": 512},
        "the last 1,024 tokens": {"read": 1024},
        "a window of 512": {"window": (512, 0)},
        "a window of 512 and the first token": {"window": (512, 1)},
    }
    return {name: found[name] for name in CAUSES}


def said(
    tokens: Tensor, following: int | None, *, turn: Turn | None = None, behind: Callable[[int], int] = lambda n: n,
    read: int = 10_000, **options: tuple[int, int],
) -> tuple[Tensor, int]:  # fmt: skip
    """(2, 49152) log-probabilities behind the prompt, and behind `following`; None is the likeliest token."""
    turn, tokens = turn or model().rotation, tokens[-read:]
    n, cache = len(tokens), Cache()
    shown = window(n + 1, *options["window"]) if "window" in options else None
    bias = None if shown is None else shown[:n, :n]
    states = model().hidden(tokens[None], turn(torch.arange(n)), cache=cache, bias=bias)
    first = model().log_probabilities(states[0, -1])
    following = int(first.argmax()) if following is None else following
    at, bias = torch.tensor([behind(n)]), None if shown is None else shown[n:]
    states = model().hidden(torch.tensor([[following]]), turn(at), cache=cache, bias=bias)
    return torch.stack((first, model().log_probabilities(states[0, -1]))).cpu(), following


def main() -> None:
    """Write the file."""
    ways, asked = mistakes(), prompts()
    tokens, known = [], []
    for prompt in tqdm(asked, unit=" prompts"):
        right, following = said(prompt, None)
        found = torch.stack(
            [right, *(said(prompt, following, **way)[0] for name, way in ways.items() if name != RIGHT)]
        )
        chosen = []
        for place in (0, 1):
            likely = {*found[0, place].topk(TOP).indices.tolist(), *found[:, place].argmax(-1).tolist()}
            chosen.append(sorted(likely, key=found[0, place].tolist().__getitem__, reverse=True))
        tokens.append(chosen)
        known.append([found[:, place, row] for place, row in enumerate(chosen)])
    longest = max(len(row) for chosen in tokens for row in chosen)
    of_tokens = np.full((len(asked), 2, longest), -1, dtype=np.int32)
    of_known = np.zeros((len(ways), len(asked), 2, longest), dtype=np.float16)
    for p, (chosen, values) in enumerate(zip(tokens, known, strict=True)):
        for place, row in enumerate(chosen):
            of_tokens[p, place, : len(row)] = row
            of_known[:, p, place, : len(row)] = values[place]
    words = {token: model().text([token]) for token in sorted({*chain(*chain(*tokens))})}
    buffer = io.BytesIO()
    np.savez_compressed(
        buffer,
        prompts=torch.cat(asked).to(torch.int32).numpy(),
        ends=np.cumsum([len(prompt) for prompt in asked]),
        tokens=of_tokens,
        known=of_known,
        words=np.frombuffer(json.dumps(words).encode(), dtype=np.uint8),
    )
    STORED.write_bytes(buffer.getvalue())


if __name__ == "__main__":
    main()
