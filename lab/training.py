"""Text, training, evaluation: what all experiments share. Each run is a function of its settings and its seed."""

import ast
import math
import sys
import sysconfig
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path

import torch
from torch import Tensor, nn
from tqdm import tqdm

from lab.model import Model
from rope_lib import default_device


@cache
def text() -> Tensor:
    """Documentation that comes with Python, as bytes below 128: its topics, and the docstrings of the standard library.

    It depends on the version of Python; results name it.
    """
    from pydoc_data.topics import topics

    parts = [topics[name] for name in sorted(topics)]
    for path in modules():
        nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8", errors="ignore")))
        parts += [doc for node in nodes if isinstance(node, ast.FunctionDef | ast.ClassDef | ast.Module)
                  for doc in [ast.get_docstring(node)] if doc]  # fmt: skip
    whole = "\n\n".join(parts).encode("ascii", errors="ignore")
    return torch.frombuffer(bytearray(whole), dtype=torch.uint8).long()


def modules() -> list[Path]:
    """The files of Python's standard library, without its packages."""
    return sorted(Path(sysconfig.get_paths()["stdlib"]).glob("*.py"))


def held_out(length: int, count: int) -> Tensor:
    """(count, length) bytes from the last twentieth of the text, which is not trained on."""
    last = text()[-len(text()) // 20 :]
    starts = torch.linspace(0, len(last) - length - 1, count).long()
    return torch.stack([last[start : start + length] for start in starts])


def batches(length: int, batch: int, seed: int) -> Iterator[Tensor]:
    """(batch, length + 1) bytes at random places of the rest, without end."""
    known = text()[: -len(text()) // 20]
    generator = torch.Generator().manual_seed(seed)
    while True:
        starts = torch.randint(len(known) - length - 1, (batch,), generator=generator)
        yield torch.stack([known[start : start + length + 1] for start in starts])


def trained(
    model: nn.Module, draw: Iterator, loss: Callable[..., Tensor], *, steps: int, rate: float = 3e-3, name: str = ""
) -> list[float]:
    """Train in place by AdamW with a warm-up and a cosine; the losses, one for each step.

    Args:
        draw: what `loss(model, drawn)` is given.
        steps, rate: how many, and the largest step size.
        name: for the progress bar.
    """
    optimizer = torch.optim.AdamW(model.parameters(), lr=rate, weight_decay=0.01)
    losses = []
    for step in tqdm(range(steps), desc=name, disable=not sys.stderr.isatty(), leave=False):
        share = min(1, (step + 1) / 50) * (0.05 + 0.95 * (1 + math.cos(math.pi * step / steps)) / 2)
        for group in optimizer.param_groups:
            group["lr"] = rate * share
        found = loss(model, next(draw))
        optimizer.zero_grad()
        found.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        losses.append(found.item())
    return losses


def language_model(
    *, seed: int, steps: int, length: int = 128, batch: int = 32, rate: float = 3e-3, **sizes
) -> tuple[Model, list[float]]:
    """A trained model, and its losses on the way."""
    torch.manual_seed(seed)
    device = default_device()
    model, draw = Model(longest=length, **sizes).to(device), batches(length, batch, seed)
    loss = lambda model, drawn: model.losses(drawn.to(device)).mean()  # noqa: E731
    losses = trained(model, draw, loss, steps=steps, rate=rate, name=str(sizes))
    return model.eval(), losses


@torch.no_grad()
def by_position(model: Model, texts: Tensor, edges: tuple[int, ...], **options) -> list[float]:
    """The mean loss between neighbouring edges, in nats per byte."""
    device = model.words.weight.device
    found = torch.cat([model.losses(part.to(device), **options) for part in texts.split(4)]).mean(0)
    return [round(found[a - 1 if a else 0 : b - 1].mean().item(), 4) for a, b in pairwise(edges)]
