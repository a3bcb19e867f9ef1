"""The experiments with training of the chapter "does it work?": python -m lab --list

Each experiment is a list of runs; each run has settings and a seed and gives numbers. A finished run is kept in
lab/trained/<experiment>.json at once, with its settings, and is not done again while they stay the same.
"""

import io
import json
import pkgutil
import platform
import re
import sys
import time
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import cross_entropy
from tqdm import tqdm

import lab
from lab import training
from lab.model import ENCODINGS, LINEAR, Model
from lab.training import by_position, held_out, language_model, trained
from rope_lib import apply_rotary_pos_emb, cos_sin, inverse_frequencies
from rope_lib.scaling import (
    linear_scaling,
    ntk_by_parts_scaling,
    ntk_scaling,
    yarn_attention_factor,
    yarn_scaling,
)

RESULTS = Path(__file__).parent / "trained"
SEEDS = range(5)
SMALL = {"layers": 2, "width": 64, "heads": 4, "length": 64, "batch": 32, "steps": 600}
LONGER = (0, 32, 64, 128, 256, 512)
Runs = Iterator[tuple[dict, Callable[[], dict]]]


RATES = (1e-3, 3e-3, 1e-2, 3e-2)


def encodings() -> Runs:
    """Five encodings, four learning rates, five seeds: how fast do they learn, and what happens beyond 64 tokens?"""
    for encoding, rate, seed in product(ENCODINGS, RATES, SEEDS):
        settings = SMALL | {"encoding": encoding, "rate": rate, "seed": seed}
        yield settings, lambda settings=settings: _language_run(settings)


def at_its_rate(experiment: str, encoding: str) -> list[dict]:
    """The stored runs of an encoding at its own learning rate: the one with the smallest training loss at the end."""
    by_rate: dict[float | None, list[dict]] = {}
    for run in runs_of(experiment):
        if run["settings"]["encoding"] == encoding:
            by_rate.setdefault(run["settings"].get("rate"), []).append(run)
    return min(by_rate.values(), key=lambda runs: sum(run["curve"][-1] for run in runs))


def linear() -> Runs:
    """Linear attention: without position, with the rotation, with decay, with both."""
    for encoding, seed in product(LINEAR, SEEDS):
        settings = SMALL | {"encoding": encoding, "seed": seed}
        yield settings, lambda settings=settings: _language_run(settings)


def speeds() -> Runs:
    """RoPE with trained speeds: do they move?"""
    for seed in SEEDS:
        settings = SMALL | {"encoding": "rope", "seed": seed, "learn_speeds": True}
        yield settings, lambda settings=settings: _language_run(settings)


def _language_run(settings: dict) -> dict:
    model, losses = language_model(**settings)
    edges = LONGER[:3] if settings["encoding"] == "learned" else LONGER  # a table ends
    found = {
        "curve": [round(part.mean().item(), 4) for part in torch.tensor(losses).split(settings["steps"] // 24)],
        "edges": edges,
        "by_position": by_position(model, held_out(LONGER[-1], 64)[:, : edges[-1]], edges),
    }
    if model.log_speeds is not None:
        moved = (model.log_speeds.detach() - model.rope.inv_freq.log()).exp()
        found["speed_ratios"] = [round(ratio, 3) for ratio in moved.tolist()]
    return found


def order() -> Runs:
    """Which of two letters came first? No encoding, one against two causal layers."""
    for layers, seed in product((1, 2), SEEDS):
        settings = {"layers": layers, "seed": seed, "steps": 400}
        yield settings, lambda settings=settings: {"accuracy": which_came_first(**settings)}


def which_came_first(*, layers: int, seed: int, steps: int) -> float:
    """The share of right answers on new texts: eight letters, a 0 and a 1 among them, then a question mark."""
    torch.manual_seed(seed)
    model = Model(encoding="none", layers=layers, width=32, heads=4, symbols=10)
    draw = _order_texts(256, torch.Generator().manual_seed(seed))
    trained(model, draw, lambda model, drawn: _answer_loss(model, *drawn), steps=steps, name=f"{layers} layers")
    return _accuracy(model, *next(_order_texts(2000, torch.Generator().manual_seed(1000 + seed))))


def _order_texts(count: int, generator: torch.Generator) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        letters = torch.randint(2, 9, (count, 8), generator=generator)
        places = torch.rand(count, 8, generator=generator).argsort(1)[:, :2]
        letters.scatter_(1, places, torch.tensor([[0, 1]]).expand(count, 2))
        text = torch.cat((letters, torch.full((count, 1), 9)), dim=1)
        yield text, (places[:, 1] < places[:, 0]).long()  # the letter that came first


def places() -> Runs:
    """Two tasks on random letters: name the one at place 17 (absolute), or the one five places back (a pure shift)."""
    for task, encoding, seed in product(("absolute", "shift"), ENCODINGS, SEEDS):
        settings = {"task": task, "encoding": encoding, "seed": seed, "steps": 400}
        yield settings, lambda settings=settings: {"accuracy": which_letter(**settings)}
    slow = ("absolute", "rope"), ("shift", "learned"), ("shift", "sinusoidal"), ("shift", "alibi")
    for (task, encoding), seed in product(slow, range(3)):  # ten times as long
        settings = {"task": task, "encoding": encoding, "seed": seed, "steps": 4000}
        yield settings, lambda settings=settings: {"accuracy": which_letter(**settings)}


def which_letter(*, task: str, encoding: str, seed: int, steps: int) -> dict[str, float]:
    """The share of right answers, by the length of the text; lengths in training are 24 to 32."""
    torch.manual_seed(seed)
    model = Model(encoding=encoding, layers=2, width=64, heads=4, symbols=9, longest=32)
    draw = _letter_texts(task, 64, None, torch.Generator().manual_seed(seed))
    trained(model, draw, lambda model, drawn: _answer_loss(model, *drawn), steps=steps, name=f"{task}, {encoding}")
    lengths = (24, 32) if encoding == "learned" else (24, 32, 64)
    generator = torch.Generator().manual_seed(1000 + seed)
    return {str(n): _accuracy(model, *next(_letter_texts(task, 1000, n, generator))) for n in lengths}


def _letter_texts(
    task: str, count: int, length: int | None, generator: torch.Generator
) -> Iterator[tuple[Tensor, Tensor]]:
    while True:
        n = length or int(torch.randint(24, 33, (), generator=generator))
        text = torch.randint(8, (count, n), generator=generator)
        text[:, -1] = 8  # the question
        yield text, text[:, 16] if task == "absolute" else text[:, -6]


def copying() -> Runs:
    """Which letter stood behind this one? One layer against two, without the rotation, and with a part switched off."""
    for (layers, encoding), seed in product(((1, "rope"), (2, "rope"), (2, "none")), range(3)):
        settings = {"layers": layers, "encoding": encoding, "seed": seed, "steps": 2000}
        yield settings, lambda settings=settings: which_followed(**settings)


def which_followed(*, layers: int, encoding: str, seed: int, steps: int) -> dict:
    """The share of right letters, of two heads the attention, and the share without a part of the trained model.

    A text is six letters in some order, then some of them again, each with the letter that stood behind it. `previous`
    is the most that a head of the first layer looks at the letter before; `behind` the most that a head of the last
    layer looks, from a letter that came before, at what stood behind it then. `unrotated` has for each layer the share
    with its rotation off, `without_head` the share when a head of the first layer adds nothing: for each head, that of
    `previous` first.
    """
    torch.manual_seed(seed)
    model = Model(encoding=encoding, layers=layers, width=64, heads=4, symbols=8)
    draw = _followed(128, torch.Generator().manual_seed(seed))
    name = f"copying, {layers} layers, {encoding}"
    trained(model, draw, lambda model, text: model.losses(text)[:, 6::2].mean(), steps=steps, rate=1e-3, name=name)
    text = next(_followed(1000, torch.Generator().manual_seed(1000 + seed)))
    maps = model.attention_maps(text[:, :7])
    behind = (text[:, :6] == text[:, 6:7]).int().argmax(-1) + 1
    found = maps[-1, torch.arange(len(text)), :, -1, behind].mean(0)
    previous = maps[0].diagonal(-1, -2, -1)[..., :5].mean((0, 2))
    result = {"accuracy": _copied(model, text)}
    result |= {"previous": round(previous.max().item(), 3), "behind": round(found.max().item(), 3)}
    if encoding == "rope":
        result["unrotated"] = []
        for block in model.blocks:
            hook = block.register_forward_pre_hook(lambda block, inputs: (inputs[0], None, *inputs[2:]))
            result["unrotated"].append(_copied(model, text))
            hook.remove()
    to_out, result["without_head"] = model.blocks[0].to_out, []
    for head in previous.argsort(descending=True).tolist():
        whole = to_out.weight.clone()
        with torch.no_grad():
            to_out.weight.unflatten(1, (4, -1))[:, head] = 0
            result["without_head"].append(_copied(model, text))
            to_out.weight.copy_(whole)
    return result


@torch.no_grad()
def _copied(model: Model, text: Tensor) -> float:
    """The share of right letters."""
    right = model(text[:, :-1])[:, 6::2].argmax(-1) == text[:, 7::2]
    return round(right.double().mean().item(), 4)


def _followed(count: int, generator: torch.Generator) -> Iterator[Tensor]:
    while True:
        letters = torch.rand(count, 8, generator=generator).argsort(1)[:, :6]
        places = torch.randint(5, (count, 4), generator=generator)
        asked, answer = letters.gather(1, places), letters.gather(1, places + 1)
        yield torch.cat((letters, torch.stack((asked, answer), dim=2).flatten(1)), dim=1)


def heads() -> Runs:
    """RoPE and the letter five places back: the head that looks there, and the pairs that it uses."""
    for seed in SEEDS:
        yield {"seed": seed, "steps": 400}, lambda seed=seed: looking_back(seed=seed, steps=400)


def looking_back(*, seed: int, steps: int) -> dict:
    """From the question: the head that looks most at the answer, how much, its attention and its pairs' energy."""
    torch.manual_seed(seed)
    model = Model(encoding="rope", layers=2, width=64, heads=4, symbols=9, longest=32)
    draw = _letter_texts("shift", 64, None, torch.Generator().manual_seed(seed))
    trained(model, draw, lambda model, drawn: _answer_loss(model, *drawn), steps=steps, name=f"heads, seed {seed}")
    text, _ = next(_letter_texts("shift", 100, 24, torch.Generator().manual_seed(1000 + seed)))
    maps = model.attention_maps(text)
    looks = maps[..., -1, -6].mean(1)
    layer, head = divmod(looks.argmax().item(), model.heads)
    shares = energies(model, text)[layer, head]
    return {
        "head": [layer, head],
        "looks": round(looks.max().item(), 3),
        "energy": [round(share, 3) for share in shares.tolist()],
        "map": [[round(x, 2) for x in row] for row in maps[layer, :, head].mean(0).tolist()],
    }


def energies(model: Model, text: Tensor) -> Tensor:
    """(layers, heads, pairs): the mean length of q_i times that of k_i, as a share of the sum over the head's pairs."""
    found = []
    for q, k in model.queries_keys(text):
        q_lengths, k_lengths = (x.unflatten(-1, (-1, 2)).norm(dim=-1).mean((0, 2)) for x in (q, k))
        found.append(q_lengths * k_lengths)
    return (energy := torch.stack(found)) / energy.sum(-1, keepdim=True)


def _answer_loss(model: Model, text: Tensor, answer: Tensor) -> Tensor:
    return cross_entropy(model(text)[:, -1], answer)


@torch.no_grad()
def _accuracy(model: Model, text: Tensor, answer: Tensor) -> float:
    return round((model(text)[:, -1].argmax(-1) == answer).double().mean().item(), 4)


def model() -> Runs:
    """The model that ships with the book: trained on 128 bytes, three layers of width 128."""
    settings = {"encoding": "rope", "seed": 0, "steps": 1500, "length": 128, "batch": 32}
    yield settings, lambda: _shipped(settings)


def bases() -> Runs:
    """Three models like the one that ships, and three with a base at which twelve of sixteen pairs turn in training."""
    for base, seed in product((10000.0, 80.0), range(3)):
        settings = {"encoding": "rope", "base": base, "seed": seed, "steps": 1500, "length": 128, "batch": 32}
        yield settings, lambda settings=settings: _with_base(**settings)


def _with_base(*, base: float, seed: int, **settings) -> dict:
    """Its losses between EDGES, by method, and with two neighbours or all pairs from one on eight times slower."""
    model, texts = shipped()
    if (base, seed) != (10000.0, 0):
        model, _ = language_model(base=base, seed=seed, **settings)
    tried = {beta_fast: _by_parts(beta_fast, model, base=base) for beta_fast in BETAS}
    chosen = min(tried, key=lambda beta_fast: sum(tried[beta_fast][2:]))
    found = {}
    for method in ("as it is", "as it is, temperature", "cropped", *METHODS):
        beta_fast = chosen if method.startswith("by parts") else None
        options = UNSCALED.get(method) or {"tables": tables(method, EDGES[-1], beta_fast=beta_fast, base=base)}
        found[method] = by_position(model, texts, EDGES, **options)
    slowed: dict[str, list] = {"two": [], "from": []}
    for first in range(len(model.rope.inv_freq) - 1):
        for name, last in {"two": first + 2, "from": None}.items():
            speeds = model.rope.inv_freq
            speeds[first:last] /= 8
            at = cos_sin(torch.arange(EDGES[-1]), speeds)
            slowed[name].append(by_position(model, texts, EDGES, tables=at)[-1])
    return {"beta_fast": chosen, "by_position": found, "slowed": slowed}


def _shipped(settings: dict) -> dict:
    model, losses = language_model(**settings)
    arrays = {name: weight.half().numpy() for name, weight in model.state_dict().items()}
    texts = held_out(1024, 32).to(torch.uint8).numpy()
    buffer = io.BytesIO()
    np.savez_compressed(buffer, **arrays, texts=texts)
    _replace(RESULTS / "model.npz", buffer.getvalue())
    curve = [round(part.mean().item(), 4) for part in torch.tensor(losses).split(settings["steps"] // 30)]
    return {"curve": curve, "bytes": len(buffer.getvalue()), "parameters": sum(p.numel() for p in model.parameters())}


def shipped() -> tuple[Model, Tensor]:
    """The trained model, and (32, 1024) bytes of text that it was not trained on."""
    stored = np.load(io.BytesIO(pkgutil.get_data(lab.__name__, "trained/model.npz")))
    model = Model()
    model.load_state_dict({name: torch.from_numpy(stored[name]).float() for name in stored.files if name != "texts"})
    return model.eval(), torch.from_numpy(stored["texts"]).long()


BETA_FAST = {"by parts": 8.0, "by parts, temperature": 8.0, "YaRN": 32.0}  # by parts keeps no pair with its usual 32


def tables(
    method: str, n: int, *, factor: float = 8.0, beta_fast: float | None = None, base: float = 10000.0
) -> tuple[Tensor, Tensor]:
    """For heads of 32 numbers, trained to 128: cosines and sines of n positions, for a text `factor` times longer."""
    dim, trained_on = 32, {"factor": factor, "original_max_position_embeddings": 128, "base": base}
    if method in BETA_FAST:
        trained_on["beta_fast"] = beta_fast or BETA_FAST[method]
    inv_freq = {
        "as it is": lambda: inverse_frequencies(dim, base=base),
        "as it is, temperature": lambda: inverse_frequencies(dim, base=base),
        "linear": lambda: linear_scaling(dim, factor=factor, base=base),
        "NTK-aware": lambda: ntk_scaling(dim, factor=factor, base=base),
        "by parts": lambda: ntk_by_parts_scaling(dim, **trained_on),
        "by parts, temperature": lambda: ntk_by_parts_scaling(dim, **trained_on),
        "YaRN": lambda: yarn_scaling(dim, **trained_on),
    }[method]()
    warm = yarn_attention_factor(factor) if method.endswith("temperature") or method == "YaRN" else 1.0
    cos, sin = cos_sin(torch.arange(n), inv_freq)
    return warm * cos, warm * sin


METHODS = ("linear", "NTK-aware", "by parts", "by parts, temperature", "YaRN")
BETAS = (4.0, 8.0, 16.0, 32.0)
UNSCALED = {"as it is": {}, "cropped": {"window": 128}}  # each byte sees the last 128 in each layer
EDGES = (0, 64, 128, 256, 512, 1024)


def rescue() -> Runs:
    """The shipped model on longer texts: as it is, cropped to 128 bytes, and with the speeds of each method."""
    for method in ("as it is", "cropped", *METHODS):
        settings = {"method": method, "factor": 8.0, "beta_fast": BETA_FAST.get(method)}
        yield settings, lambda method=method: {"by_position": rescued_by(method)}
    for beta_fast in BETAS:  # chosen on other texts than those that are read
        settings = {"method": "by parts", "factor": 8.0, "beta_fast": beta_fast, "texts": "trained on"}
        yield settings, lambda settings=settings: {"by_position": _by_parts(settings["beta_fast"])}
    for kind, method in product(("code", "a licence"), ("as it is", "cropped", *METHODS)):
        settings = {"method": method, "factor": 8.0, "beta_fast": BETA_FAST.get(method), "texts": kind}
        yield settings, lambda method=method, kind=kind: {"by_position": rescued_by(method, texts=other_texts(kind))}


def _by_parts(beta_fast: float, model: Model | None = None, **base: float) -> list[float]:
    """The losses between EDGES on texts of the training."""
    texts = next(training.batches(EDGES[-1], 32, seed=0))[:, : EDGES[-1]]
    turned = tables("by parts", EDGES[-1], beta_fast=beta_fast, **base)
    return by_position(model or shipped()[0], texts, EDGES, tables=turned)


def other_texts(kind: str) -> Tensor:
    """(count, 1024) bytes that are no docstrings: Python's own code, or the licence of this book's text."""
    if kind == "a licence":
        parts = [Path(lab.__file__).parents[1].joinpath("LICENSE-CONTENT").read_text(encoding="utf-8")]
        parts = [parts[0][start:] for start in range(0, len(parts[0]), EDGES[-1])]
    else:
        sources = (path.read_text(encoding="utf-8", errors="ignore") for path in training.modules())
        parts = [code for source in sources for code in re.split("\"\"\"|'''", source)[::2]]
    parts = [part.encode("ascii", errors="ignore")[: EDGES[-1]] for part in parts]
    whole = [part for part in parts if len(part) == EDGES[-1]]
    return torch.tensor([[*part] for part in whole[:: max(1, len(whole) // 32)][:32]])


def rescued_by(method: str, length: int = EDGES[-1], texts: Tensor | None = None) -> list[float]:
    """Its losses between EDGES, up to `length`: of the texts that ship with the model, or of others."""
    model, held_out_texts = shipped()
    texts = held_out_texts if texts is None else texts
    options = UNSCALED[method] if method in UNSCALED else {"tables": tables(method, length)}
    return by_position(model, texts[:, :length], tuple(edge for edge in EDGES if edge <= length), **options)


def rescued() -> tuple[tuple[int, ...], dict[str, list[float]]]:
    """EDGES, and the stored losses between them for each method."""
    read = [run for run in runs_of("rescue") if "texts" not in run["settings"]]
    return EDGES, {run["settings"]["method"]: run["by_position"] for run in read}


BEFORE = (20, 100, 240, 480, 900)  # letters before the value
BACK = (60, 120, 240, 480, 900)  # letters from the question back to it
GRID = [(before, back) for before, back in product(BEFORE, BACK) if before + back <= 1020]
ONE_LAYER = {"by parts, temperature in layer 1": 0, "by parts, temperature in layer 2": 1}
SEARCHES = ("as it is", "as it is, temperature", "cropped", *METHODS, *ONE_LAYER)


def needles() -> Runs:
    """A value behind its key among random letters: is it found, by the letters before it and those behind it?"""
    for encoding, keys, seed in product(("rope", "none"), (1, 4), SEEDS):
        settings = {"encoding": encoding, "keys": keys, "seed": seed, "steps": 2000, "texts": 200}
        yield settings, lambda settings=settings: find_needles(**settings)


def find_needles(*, encoding: str, keys: int, seed: int, steps: int, texts: int) -> dict:
    """How many values are found of `texts` for each (before, back) of GRID, by a model trained on up to 128 letters.

    `within` is the share in texts of 128 letters, `found[method]` a count for each of GRID, with speeds made for 1024.
    `looks[method]` has for each of BEFORE how much a head of the first layer looks from the value to its key: the head
    that does so most behind the fewest letters, with the model as it is.
    """
    torch.manual_seed(seed)
    model = Model(encoding=encoding, layers=2, width=64, heads=2, symbols=8 + keys)
    draw = haystacks(keys, 64, None, torch.Generator().manual_seed(seed))
    name = f"needles, {encoding}, {keys} keys, seed {seed}"
    trained(model, draw, lambda model, text: lookup_loss(model, text, keys), steps=steps, rate=1e-3, name=name)
    generator = torch.Generator().manual_seed(1000 + seed)
    within = looked_up(model, next(haystacks(keys, 600 // keys, 128, generator)), keys).double().mean().item()
    methods = SEARCHES if encoding == "rope" else SEARCHES[:1]
    found: dict[str, list[int]] = {method: [] for method in methods}
    looks: dict[str, list[float]] = {method: [] for method in ("as it is", "as it is, temperature", *METHODS)}
    for before, back in tqdm(GRID, desc=name, disable=not sys.stderr.isatty(), leave=False):
        text = needles_at(keys, texts, before, back, generator)
        for method in methods:
            found[method].append(int(_searched(model, text, method).sum()))
        if encoding == "rope" and back == BACK[0]:
            for method, shares in looks.items():
                shares.append(_one_back(model, text[:, : before + 1], method))
    if encoding == "none":
        return {"within": round(within, 4), "found": found}
    best = looks["as it is"][0].argmax()
    return {
        "within": round(within, 4),
        "found": found,
        "looks": {method: [round(share[best].item(), 3) for share in shares] for method, shares in looks.items()},
    }


def needles_found(method: str, *, keys: int, encoding: str = "rope") -> np.ndarray:
    """(seeds, BEFORE, BACK): the stored results in percent; nan where the text would be longer than 1024."""
    chosen = {"encoding": encoding, "keys": keys}
    same = [run for run in runs_of("needles") if chosen.items() <= run["settings"].items()]
    return np.stack([on_grid(run["found"][method], run["settings"]["texts"]) for run in same])


def on_grid(counts: list[int], texts: int) -> np.ndarray:
    """(BEFORE, BACK): counts for each of GRID in percent of the texts; nan where the text would be longer than 1024."""
    found = np.full((len(BEFORE), len(BACK)), np.nan)
    for (before, back), count in zip(GRID, counts, strict=True):
        found[BEFORE.index(before), BACK.index(back)] = 100 * count / texts
    return found


def haystacks(
    keys: int, count: int, length: int | None, generator: torch.Generator, *, longest: int = 128
) -> Iterator[Tensor]:
    """Texts of `length` letters below 8, or of at most `longest`, one as likely as twice as many.

    Somewhere stands each key (8 and more) before its value, and at the end each key with its value once more.
    """
    while True:
        shortest = 4 * keys + 4
        n = length or round(shortest * (longest / shortest) ** torch.rand((), generator=generator).item())
        body = n - 2 * keys + 1
        text = torch.randint(8, (count, n + 1), generator=generator)
        slots = torch.rand(count, body // 2, generator=generator).argsort(1)[:, :keys]
        places = 2 * slots + torch.randint(body % 2 + 1, (count, 1), generator=generator)
        text.scatter_(1, places, 8 + torch.arange(keys).expand(count, keys))
        order = torch.rand(count, keys, generator=generator).argsort(1)
        text[:, body::2] = 8 + order
        text[:, body + 1 :: 2] = text.gather(1, places.gather(1, order) + 1)
        yield text


def needles_at(keys: int, count: int, before: int, back: int, generator: torch.Generator) -> Tensor:
    """(count, before + back + 2) letters: a value behind `before` of them, and `back` further on its key and it again.

    The other keys stand anywhere, with values of their own, and are not asked for.
    """
    text = torch.randint(8, (count, before + back + 2), generator=generator)
    first = (before - 1) % 2
    slots = torch.rand(count, (before + back - first) // 2, generator=generator)
    slots[:, (before - 1) // 2] = -1  # the first of the sorted
    places = first + 2 * slots.argsort(1)[:, :keys]
    kinds = 8 + torch.rand(count, keys, generator=generator).argsort(1)
    text.scatter_(1, places, kinds)
    text[:, -2], text[:, -1] = kinds[:, 0], text[:, before]
    return text


def lookup_loss(model: Model, text: Tensor, keys: int, **options) -> Tensor:
    values = slice(1 - 2 * keys, None, 2)
    return cross_entropy(model(text[:, :-1], **options)[:, values].transpose(1, 2), text[:, values])


@torch.no_grad()
def looked_up(model: Model, text: Tensor, keys: int, **options) -> Tensor:
    """(count, keys): whether each value at the end is right."""
    values = slice(1 - 2 * keys, None, 2)
    said = torch.cat([model(part[:, :-1], **options)[:, values].argmax(-1) for part in text.split(10)])
    return said == text[:, values]


def _searched(model: Model, text: Tensor, method: str) -> Tensor:
    """(count, 1): whether the value at the end is right, with a method of SEARCHES."""
    if method in UNSCALED:
        return looked_up(model, text, 1, **UNSCALED[method])
    if method not in ONE_LAYER:
        return looked_up(model, text, 1, tables=tables(method, text.shape[1]))
    warm = yarn_attention_factor(8.0)
    hook = model.blocks[ONE_LAYER[method]].register_forward_pre_hook(
        lambda block, inputs: (inputs[0], tuple(warm * table for table in inputs[1]), *inputs[2:])
    )
    right = looked_up(model, text, 1, tables=tables("by parts", text.shape[1]))
    hook.remove()
    return right


@torch.no_grad()
def _one_back(model: Model, text: Tensor, method: str) -> Tensor:
    """(heads,): how much each head of the first layer looks from the last letter at the one before it, in the mean."""
    q, k = model.queries_keys(text)[0]
    cos_and_sin = tables(method, text.shape[1])
    q, k = apply_rotary_pos_emb(q, k, *cos_and_sin, interleaved=True)
    scores = (q[..., -1:, :] @ k.mT).squeeze(-2) / q.shape[-1] ** 0.5
    return scores.softmax(-1)[..., -2].mean(0)


def finetuning() -> Runs:
    """A hundred steps at 512 tokens, for the shipped model as it is, cropped, and with each method for four times."""
    for method, seed in product(("as it is", "cropped", "linear", "NTK-aware", "by parts", "YaRN"), range(3)):
        settings = {"method": method, "seed": seed, "steps": 100, "length": 512, "batch": 8, "factor": 4.0}
        settings["beta_fast"] = BETA_FAST.get(method)
        yield settings, lambda settings=settings: _tuned(**settings)


def _tuned(*, method: str, seed: int, steps: int, length: int, batch: int, factor: float, **_: object) -> dict:
    model, texts = shipped()
    options = UNSCALED[method] if method in UNSCALED else {"tables": tables(method, length, factor=factor)}
    edges = (0, 64, 128, 256, 512)
    before = by_position(model, texts[:, :length], edges, **options)
    draw = training.batches(length, batch, seed)
    trained(
        model, draw, lambda model, drawn: model.losses(drawn, **options).mean(), steps=steps, rate=3e-4, name=method
    )
    return {"edges": edges, "before": before, "after": by_position(model, texts[:, :length], edges, **options)}


EXPERIMENTS = {
    "model": (model, 6), "rescue": (rescue, 1), "needles": (needles, 80), "finetuning": (finetuning, 10),
    "order": (order, 2), "encodings": (encodings, 30), "speeds": (speeds, 2),
    "linear": (linear, 20), "places": (places, 20), "heads": (heads, 2), "copying": (copying, 11), "bases": (bases, 40),
}  # fmt: skip


def runs_of(name: str) -> list[dict]:
    """The stored runs of an experiment; read in a way that also works from a zip archive."""
    return json.loads(pkgutil.get_data(lab.__name__, f"trained/{name}.json"))["runs"]


def run(name: str, runs: Runs, folder: Path = RESULTS) -> None:
    """Do what is not done yet of an experiment, and keep each run as soon as it is finished."""
    path = folder / f"{name}.json"
    known = json.loads(path.read_text()) if path.exists() else {"runs": []}
    settings_now = []
    for settings, measure in runs:
        settings_now.append(settings)
        if any(entry["settings"] == settings for entry in known["runs"]):
            continue
        begin = time.perf_counter()
        found = measure()
        minutes = round((time.perf_counter() - begin) / 60, 2)
        known["runs"].append({"settings": settings, "minutes": minutes, **found})
        known["versions"] = {"python": platform.python_version(), "torch": torch.__version__}
        _replace(path, as_text(known))
        print(name, settings, found.get("by_position", found.get("accuracy", "")), f"{minutes} minutes", flush=True)
    kept = [entry for entry in known["runs"] if entry["settings"] in settings_now]
    known["runs"] = sorted(kept, key=lambda entry: settings_now.index(entry["settings"]))
    _replace(path, as_text(known))


def as_text(found: dict | list) -> bytes:
    """JSON to be read and compared: a line for each entry, lists of numbers or words on one line."""
    inner = re.compile(r"\[[^][{}]*\]")
    text = inner.sub(lambda part: re.sub(r"\s*\n\s*", " ", part[0]), json.dumps(found, indent=1))
    return (text.replace("[ ", "[").replace(" ]", "]") + "\n").encode()


def _replace(path: Path, content: bytes) -> None:
    """All or nothing."""
    new = path.with_suffix(".new")
    new.write_bytes(content)
    new.replace(path)
