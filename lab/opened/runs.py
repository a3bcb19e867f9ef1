"""All experiments, in the order in which they are stored."""

from collections.abc import Callable, Iterator

import torch

from lab.opened.break_it import break_it
from lab.opened.each_head import each_head, heads_again
from lab.opened.few_bits import few_bits
from lab.opened.long_text import LONG_WAYS, long_text, long_window
from lab.opened.massive_values import massive_values
from lab.opened.one_token import first_token, one_token
from lab.opened.only_the_distance import only_the_distance
from lab.opened.reach import reach
from lab.opened.rescue import FIRST, borders, map_of_rescue, rescue, rescued_again
from lab.opened.scores_by_distance import scores_by_distance
from lab.opened.shared import KINDS, model
from lab.opened.which_pairs import energies, which_pairs
from lab.opened.who_looks_back import next_five, who_looks_back
from lab.opened.without_layers import without_layers

ALL = {
    "break it": break_it, "who looks back": who_looks_back, "energies": energies, "which pairs": which_pairs,
    "scores by distance": scores_by_distance, "one token": one_token, "first token": first_token, "reach": reach,
    "rescue": rescue, "map of rescue": map_of_rescue, "few bits": few_bits, "without layers": without_layers,
    "only the distance": only_the_distance, "massive values": massive_values,
}  # fmt: skip


def opened() -> Iterator[tuple[dict, Callable[[], dict]]]:
    """The published model of chapter 12: who looks back, which pairs turn to a purpose, how far it reaches, ..."""
    for name, measure in ALL.items():
        yield {"experiment": name}, lambda measure=measure: measure() | measured_on()
    for layer in range(30):
        settings = {"experiment": "each head", "layer": layer}
        yield settings, lambda layer=layer: each_head(layer) | measured_on()
    yield {"experiment": "heads again"}, lambda: heads_again() | measured_on()
    yield {"experiment": "next five"}, lambda: next_five() | measured_on()
    for first in FIRST:
        yield {"experiment": "borders", "first": first}, lambda first=first: borders(first) | measured_on()
    yield {"experiment": "rescued again"}, lambda: rescued_again() | measured_on()
    for kind in KINDS:
        for way in LONG_WAYS:
            settings = {"experiment": "long text", "kind": kind, "way": way}
            yield settings, lambda kind=kind, way=way: long_text(kind, way) | measured_on()
        yield {"experiment": "long window", "kind": kind}, lambda kind=kind: long_window(kind) | measured_on()


def measured_on() -> dict:
    """The device and the version of torch; results differ in the last digit."""
    device = model().words.device
    name = torch.cuda.get_device_name(device) if device.type == "cuda" else device.type.upper()
    return {"on": f"{name}, torch {torch.__version__}"}
