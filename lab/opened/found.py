"""What the experiments have found, as stored: read, and put into rows of a table."""

import json
import pkgutil

import torch
from torch import Tensor

import lab


def stored(experiment: str, **settings: str | int) -> dict:
    """What a run has found."""
    runs = json.loads(pkgutil.get_data(lab.__name__, "published_models/smollm2.json"))["runs"]
    [found] = [run for run in runs if run["settings"] == {"experiment": experiment, **settings}]
    return found


def heads() -> dict[str, Tensor]:
    """What lab/opened/each_head.py found, (layers, heads, ...); the prices of a text and of a copy by what stops."""
    layers = [stored("each head", layer=layer) for layer in range(30)]
    found = {name: torch.tensor([layer[name] for layer in layers]) for name in ("energy", "first", "back")}
    prices = {
        f"{kind}, {stops}": torch.tensor([layer[kind][stops] for layer in layers])
        for kind in ("text", "copy")
        for stops in layers[0][kind]
    }
    return found | prices


def second() -> dict:
    """What was found in Gemma 3 270M; tools/record_gemma3.py measures it."""
    return json.loads(pkgutil.get_data(lab.__name__, "published_models/gemma3.json"))


def tensors(found: dict) -> dict[str, Tensor]:
    """What was found for each stretch, by name."""
    return {name: torch.tensor(values) for name, values in found.items() if isinstance(values, list)}


def header(what: str) -> str:
    """What stands above rows of `line`."""
    return f"{what:33}   book python     min to max"


def line(name: str, values: Tensor) -> str:
    """A row of a table: a name, the mean over the stretches of each kind, the smallest and the largest of all."""
    numbers = (*values.view(2, -1).mean(1).tolist(), values.min().item(), values.max().item())
    book, python, low, high = (round(number, 2) + 0.0 for number in numbers)  # no -0.00
    return f"{name:33} {book:6.2f} {python:6.2f}   {low:5.2f} to {high:5.2f}"
