"""What each branch of rope_lib/_fast.py gains, alone and beside a busy program: python -m bench.branches (2 minutes)

A branch is switched off, and the same call timed with and without it in turn. A ratio above 1 is what it gains.
A branch stays if it gains much, alone and in company. Three are gone: tables in pieces that are not shared among
cores (0.99 alone), a copy in float32 rotated in place (1.1), a stored signature (1.13, for single tokens with a
gradient).
"""

import contextlib
import random
import statistics
import time
from collections.abc import Callable
from unittest.mock import patch

import torch

from bench.speed import neighbours
from rope_lib import _fast, apply_rotary_pos_emb, cos_sin, inverse_frequencies

TOKEN, SMALL, LARGE = (1, 32, 1, 128), (32, 4, 128, 32), (1, 32, 4096, 128)
ROUNDS = 15


def never(*_: object, **__: object) -> bool:
    return False


OFF = {  # the branch, and what stands in its place
    "no autograd Function for few elements": lambda: patch.object(_fast, "_is_simple", never),
    "x viewed as complex in inference mode": lambda: patch.object(torch, "is_inference_mode_enabled", never),
    "half of x at a time, not x rolled": lambda: patch.object(
        _fast, "_rotate_new", lambda x, *tables: _fast._rotate_mixed(_fast.at_least_float32(x), *tables).type_as(x)
    ),
}
CASES = {  # where it matters: shape, dtype, interleaved, and with a gradient, without, or in inference mode
    "no autograd Function for few elements": ((TOKEN, "float32", False, "none"), (TOKEN, "bfloat16", True, "none")),
    "x viewed as complex in inference mode": ((TOKEN, "float32", True, "inference"),),
    "half of x at a time, not x rolled": (
        (SMALL, "float32", False, "gradient"),
        (LARGE, "float32", False, "none"),
        (LARGE, "bfloat16", False, "none"),
        (LARGE, "bfloat16", True, "none"),
    ),
}


def call(shape: tuple[int, ...], dtype: str, interleaved: bool, mode: str) -> Callable[[], None]:
    """One rotation of q and k."""
    q, k = (torch.randn(shape).to(getattr(torch, dtype)).requires_grad_(mode == "gradient") for _ in range(2))
    tables = cos_sin(torch.arange(shape[-2]), inverse_frequencies(shape[-1]))

    def run() -> None:
        with torch.inference_mode() if mode == "inference" else contextlib.nullcontext():
            y, z = apply_rotary_pos_emb(q, k, *tables, interleaved=interleaved)
        if mode == "gradient":
            torch.autograd.grad((y, z), (q, k), (q.detach(), k.detach()))

    return run


def seconds(run: Callable[[], None], times: int) -> float:
    begin = time.perf_counter()
    for _ in range(times):
        run()
    return (time.perf_counter() - begin) / times


def gain(branch: str, run: Callable[[], None]) -> tuple[float, float, float]:
    """Median and quartiles of the ratios of neighbouring timings, without the branch over with it."""
    run()
    times, order, ratios = max(1, int(0.05 / seconds(run, 3))), random.Random(0), []
    for _ in range(ROUNDS):
        found = {}
        for off in order.sample((False, True), 2):
            with OFF[branch]() if off else contextlib.nullcontext():
                found[off] = seconds(run, times)
        ratios.append(found[True] / found[False])
    quarter = statistics.quantiles(ratios)
    return statistics.median(ratios), quarter[0], quarter[2]


def main() -> None:
    for busy in (0, 1):
        print("beside a busy program" if busy else "alone")
        with neighbours(busy):
            for branch, cases in CASES.items():
                for case in cases:
                    middle, low, high = gain(branch, call(*case))
                    shape, dtype, interleaved, mode = case
                    setting = f"{shape}, {dtype}, {'interleaved' if interleaved else 'half-split'}, {mode}"
                    print(f"  {branch:38} {middle:5.2f} ({low:.2f} to {high:.2f})  {setting}", flush=True)


if __name__ == "__main__":
    main()
