"""Ways to write one rotation, on a quiet machine and beside busy programs: python -m bench.steadiness (2 minutes)

The form with the least memory traffic wins alone and loses in company. Stored in lab/results/steadiness.json.
"""

import argparse
import json
import os
import random
import statistics
import subprocess
import sys
import time

import torch
from torch import Tensor
from tqdm import tqdm

from bench.speed import RESULTS, machine, neighbours
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies

PATH = RESULTS / "steadiness.json"
SITUATIONS = {  # busy neighbours, and what waiting threads do: None is the system's default, to wait in a loop
    "alone": (0, None),
    "one neighbour": (1, None),
    "two neighbours": (2, None),
    "two, threads asleep while they wait": (2, "passive"),
}
STARTS, ROUNDS = 12, 5  # neighbours begin anew so many times, and each form is timed so often in between


def blocks(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Half-split, head by head, four operations for each: hardly more memory traffic than a copy."""
    out = torch.empty_like(x)
    for head, target in zip(x.unbind(1), out.unbind(1), strict=True):
        (x0, x1), (y0, y1) = head.chunk(2, dim=-1), target.chunk(2, dim=-1)
        torch.mul(x0, cos, out=y0).addcmul_(x1, sin, value=-1)
        torch.mul(x0, sin, out=y1).addcmul_(x1, cos)
    return out


def temporaries(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Half-split as most libraries write it: five operations, four of them with a new tensor that is thrown away."""
    x0, x1 = x.chunk(2, dim=-1)
    return x * torch.cat((cos, cos), dim=-1) + torch.cat((-x1, x0), dim=-1) * torch.cat((sin, sin), dim=-1)


def library(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """`apply_rotary_emb`: three operations, on the whole tensor and on its halves, into one result."""
    return apply_rotary_emb(x, cos, sin, interleaved=False)


FORMS = {"blocks": blocks, "temporaries": temporaries, "rope_lib": library}


def measure(count: int) -> dict[str, list[float]]:
    """For each form the median time in clones, once for each start of the neighbours."""
    x = torch.randn(1, 32, 4096, 128)
    tables = cos_sin(torch.arange(4096), inverse_frequencies(128))
    calls = {"clone": lambda: x.clone()} | {name: lambda form=form: form(x, *tables) for name, form in FORMS.items()}
    order, found = random.Random(0), {name: [] for name in FORMS}
    for _ in range(STARTS):
        seconds = {name: [] for name in calls}
        with neighbours(count):
            for _ in range(ROUNDS):
                for name in order.sample(list(calls), len(calls)):
                    begin = time.perf_counter()
                    calls[name]()
                    seconds[name].append(time.perf_counter() - begin)
        unit = statistics.median(seconds["clone"])
        for name, ratios in found.items():
            ratios.append(float(f"{statistics.median(seconds[name]) / unit:.3g}"))
    return found


def main() -> None:
    """Measure each situation in a process of its own, since threads learn how to wait when they begin."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--measure", type=int, help="one situation, with so many neighbours")
    count = parser.parse_args().measure
    if count is not None:
        print(json.dumps(measure(count)))
        return
    found = {"machine": machine("cpu")}
    for name, (beside, policy) in tqdm(SITUATIONS.items()):
        command = [sys.executable, "-m", "bench.steadiness", "--measure", str(beside)]
        settings = os.environ | ({"OMP_WAIT_POLICY": policy} if policy else {})
        found[name] = json.loads(subprocess.run(command, env=settings, stdout=subprocess.PIPE, check=True).stdout)
    PATH.write_text(json.dumps(found, indent=1) + "\n")
    for name in SITUATIONS:
        print(name, {form: f"{min(r)} to {max(r)}, median {statistics.median(r)}" for form, r in found[name].items()})


if __name__ == "__main__":
    main()
