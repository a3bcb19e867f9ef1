"""A trained model is made to read texts four times as long: with which base? python -m lab extension_text ..."""

import copy
from functools import cache
from itertools import product

import torch

from lab import experiments
from lab.extensions import base_by_rule
from lab.model import Model
from lab.training import batches, by_position, trained
from rope_lib import cos_sin, inverse_frequencies

SEEDS = range(3)
SHORT, LONG = 128, 512
EDGES = (0, 64, 128, 256, 512)
BACK = (60, 120, 240, 480)

EXPECTED = """Written down before the first of these runs.

1. Text: with the base of the rule the last 256 bytes end better than with the base as it was, in each seed.
2. Text: half-way to the rule, 1e5, ends worse than the rule there.
3. Text: bases above the rule, 5e6 and 1e8, end within 0.02 of it there: the rule is a floor and no optimum.
4. Text: none of them beats the crop, 1.553.
5. Text: bytes 64 to 128 lose by the change, more with a larger base.
6. Needles behind 20 letters, 480 back: the rule finds more than the base as it was, in the mean; 1e5 finds less than
   the rule; 5e6 and 1e8 find as many as the rule to 5 points.
"""

RULE = base_by_rule(1e4, SHORT, LONG)  # 691,000
BASES = (1e4, 1e5, RULE, 5e6, 1e8)


def extension_text() -> experiments.Runs:
    """The model that ships, a hundred steps on 512 bytes, five bases, three seeds."""
    for seed, base in product(SEEDS, BASES):
        settings = {"base": round(base), "seed": seed, "steps": 100, "batch": 8}
        yield settings, lambda settings=settings: read_longer(**settings)


def read_longer(*, base: float, seed: int, steps: int, batch: int) -> dict:
    """The loss by position before and after the training, with the speeds of the base."""
    model, texts = experiments.shipped()
    options, texts = {"tables": cos_sin(torch.arange(LONG), inverse_frequencies(32, base=base))}, texts[:, :LONG]
    before = by_position(model, texts, EDGES, **options)
    draw = batches(LONG, batch, seed)
    loss = lambda model, drawn: model.losses(drawn, **options).mean()  # noqa: E731
    trained(model, draw, loss, steps=steps, rate=3e-4, name=f"base {base}")
    return {"edges": EDGES, "before": before, "after": by_position(model, texts, EDGES, **options)}


def extension_needles() -> experiments.Runs:
    """Needle models of up to 128 letters, two hundred steps on up to 512, five bases, three seeds."""
    for seed, base in product(SEEDS, BASES):
        settings = {"base": round(base), "seed": seed, "steps": 2000, "more": 200, "texts": 200}
        yield settings, lambda settings=settings: find_further(**settings)


def find_further(*, base: float, seed: int, steps: int, more: int, texts: int) -> dict:
    """How many values are found of `texts` behind 20 letters, by the letters BACK to them; before and after."""
    model = copy.deepcopy(_finds_needles(seed, steps))
    generator = torch.Generator().manual_seed(1000 + seed)
    asked = [experiments.needles_at(1, texts, 20, back, generator) for back in BACK]
    options = {"tables": cos_sin(torch.arange(2 * LONG), inverse_frequencies(32, base=base))}
    before = [int(experiments.looked_up(model, text, 1, **options).sum()) for text in asked]
    draw = experiments.haystacks(1, 16, None, torch.Generator().manual_seed(2000 + seed), longest=LONG)
    loss = lambda model, text: experiments.lookup_loss(model, text, 1, **options)  # noqa: E731
    trained(model, draw, loss, steps=more, rate=3e-4, name=f"needles, base {base}")
    after = [int(experiments.looked_up(model, text, 1, **options).sum()) for text in asked]
    return {"before": before, "after": after}


@cache
def _finds_needles(seed: int, steps: int) -> Model:
    torch.manual_seed(seed)
    model = Model(encoding="rope", layers=2, width=64, heads=2, symbols=9)
    draw = experiments.haystacks(1, 64, None, torch.Generator().manual_seed(seed))
    loss = lambda model, text: experiments.lookup_loss(model, text, 1)  # noqa: E731
    trained(model, draw, loss, steps=steps, rate=1e-3, name="needles")
    return model


EXPERIMENTS = {"extension_text": (extension_text, 20), "extension_needles": (extension_needles, 30)}
