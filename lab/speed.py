"""How fast the library is, beside a copy and beside other libraries: `make bench`, or `python -m lab.speed --help`.

Times on a shared machine drift, so everything of a group is timed in turn, round after round, and the medians are
divided by that of torch.clone of the same q and k. What is printed is also kept as data in lab/results.
"""

import argparse
import ctypes
import json
import multiprocessing
import platform
import random
import statistics
import time
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from tqdm import tqdm

from lab.peers import PEERS, clone, fla_naive_chunk, ours
from rope_lib import cos_sin, inverse_frequencies
from rope_lib.linear_attention import linear_attention

RESULTS = Path(__file__).parent / "results"
SHAPES = {"cpu": [(1, 32, 4096, 128), (8, 16, 1024, 64), (1, 32, 1, 128)], "cuda": [(8, 32, 4096, 128)]}
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD = -1, -3  # glibc's names
FRESH_FROM = 2**23  # tensors from 8 MiB on get fresh memory, for all alike
FINALISTS = 5  # calls of a group that are timed in all rounds; the others stop after a third of them
LENGTHS = (512, 2048, 4096, 16384, 65536)


def main() -> None:
    """Time, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "--rounds",
        type=int,
        default=27,
        help=f"medians are over so many for the {FINALISTS} fastest, over a third for the others (decode: 20 times as "
        "many, of 20 calls each)",
    )
    parser.add_argument("--only", choices=["rotation", "linear_attention"], help="one of the two parts")
    parser.add_argument("--eager", action="store_true", help="leave out torch.compile, which takes most of the time")
    options = parser.parse_args()
    warnings.filterwarnings("ignore")
    if platform.system() == "Linux":  # else glibc decides on the way whether a large tensor gets fresh memory or used
        ctypes.CDLL(None).mallopt(M_MMAP_THRESHOLD, FRESH_FROM)
        ctypes.CDLL(None).mallopt(M_TRIM_THRESHOLD, 2 * FRESH_FROM)  # glibc's own proportion
    path = RESULTS / f"speed-{options.device}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    found |= {"machine": machine(options.device)}
    if options.only != "linear_attention":
        found["rotation"] = rotation(options)
        found["bfloat16_errors"] = bfloat16_errors(found["rotation"], options.device)
    if options.only != "rotation":
        found["linear_attention"] = linear(options)
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(report(found))


def machine(device: str) -> dict:
    """What the numbers were measured on."""
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    name = torch.cuda.get_device_name() if device == "cuda" else (names or [platform.processor()])[0]
    return {"device": name, "threads": torch.get_num_threads(), "torch": torch.__version__}


def rotation(options: argparse.Namespace) -> list[dict]:
    """One row for each shape, dtype, layout, mode and pass: the ratio of each peer to clone."""
    peers = _usable_peers(options.device)
    modes = ["eager"] if options.eager else ["eager", "compiled"]
    groups = [
        (shape, dtype, interleaved, mode, direction)
        for shape in SHAPES[options.device]
        for dtype in DTYPES
        for interleaved in (True, False)
        for mode in modes
        for direction in (["forward"] if shape[2] == 1 else ["forward", "forward and backward"])
    ]
    rows = []
    for shape, dtype, interleaved, mode, direction in tqdm(groups, desc="rotation"):
        q, k = torch.randn(2, *shape, device=options.device).to(DTYPES[dtype])
        inv_freq = inverse_frequencies(shape[-1], device=options.device)
        calls = {}
        torch.compiler.reset()
        for name in (name for name, layouts in peers.items() if interleaved in layouts):
            inputs, rotate = PEERS[name][0](q, k, inv_freq, interleaved)
            if mode == "compiled" and name not in ("clone", "copy_"):
                rotate = torch.compile(rotate, dynamic=False)
            if direction == "forward and backward":
                if name == "copy_":
                    continue
                rotate = _with_backward(rotate)
                inputs = tuple(x.detach().requires_grad_() for x in inputs)
            try:
                rotate(*inputs)
            except Exception as error:
                tqdm.write(f"{name} cannot be {mode} here: {type(error).__name__}")
                continue
            calls[name] = (rotate, inputs)
        decode = shape[2] == 1
        with torch.inference_mode(decode):
            seconds = timings(
                calls, options.rounds * (20 if decode else 1), options.device, in_a_row=20 if decode else 1
            )
        row = {"shape": shape, "dtype": dtype, "interleaved": interleaved, "mode": mode, "direction": direction}
        clone_ms = float(f"{1000 * statistics.median(seconds['clone']):.3g}")
        rows.append(row | {"clone_ms": clone_ms, "ratios": ratios(seconds)})
    return rows


def bfloat16_errors(rows: list[dict], device: str) -> dict[str, float]:
    """For each peer in these rows: its error in bfloat16, in multiples of ours, which is that of one rounding."""
    names = {name for row in rows for name in row["ratios"]} - {"clone", "copy_"}
    errors = {name: _error(name, PEERS[name][1][-1], torch.bfloat16, device) for name in PEERS if name in names}
    return {name: round(error / errors["rope_lib"], 2) for name, error in errors.items()}


def linear(options: argparse.Namespace) -> list[dict]:
    """Causal linear attention, 8 heads of 64, against softmax attention and against the naive chunk form."""
    rows = []
    for n in tqdm(LENGTHS, desc="linear attention"):
        q, k, v = torch.randn(3, 1, 8, n, 64, device=options.device)
        cos, sin = cos_sin(torch.arange(n, device=options.device), inverse_frequencies(64, device=options.device))
        rotated = {"causal": True, "rotate": "numerator", "cos": cos, "sin": sin, "interleaved": True}
        forms = {
            "softmax": lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
            "rotated": lambda q, k, v, rotated=rotated: linear_attention(q, k, v, **rotated),
            "plain": lambda q, k, v: linear_attention(q, k, v, causal=True),
            "naive chunks": fla_naive_chunk,
        }
        row = {"n": n}
        for direction in ("forward", "forward and backward"):
            if direction == "forward":
                calls = {name: (form, (q, k, v)) for name, form in forms.items()}
            else:
                inputs = tuple(x.requires_grad_() for x in (q, k, v))
                calls = {name: (_with_backward(form), inputs) for name, form in forms.items()}
            slow = {"softmax": calls.pop("softmax")} if n > 2**13 else {}  # minutes at the largest n: once will do
            seconds = timings(calls, max(1, options.rounds // 3), options.device) | timings(slow, 1, options.device)
            row[direction] = {name: round(1000 * statistics.median(seconds[name]), 3) for name in forms}
        if options.device == "cpu" and platform.system() == "Linux":
            row["extra_bytes_per_output_byte"] = round(_extra_memory(n) / (4 * q.numel()), 2)
        rows.append(row)
    return rows


def timings(
    calls: dict[str, tuple[Callable, tuple]], rounds: int, device: str, *, in_a_row: int = 1
) -> dict[str, list[float]]:
    """Seconds of each call in each round. Each round has its own order, since a call feels who came before.

    Calls of microseconds need several in a row: for a single one, the clock and cold caches weigh as much as the call.
    After a third of the rounds only the fastest go on, because to tell those apart takes the most rounds.
    """
    order, seconds, names = random.Random(0), {name: [] for name in calls}, list(calls)
    for number in range(rounds):
        if number == max(1, rounds // 3):
            names = sorted(names, key=lambda name: statistics.median(seconds[name]))[:FINALISTS]
        for name in order.sample(names, len(names)):
            function, inputs = calls[name]
            _wait(device)
            start = time.perf_counter()
            for _ in range(in_a_row):
                function(*inputs)
            _wait(device)
            seconds[name].append((time.perf_counter() - start) / in_a_row)
    return seconds


def ratios(seconds: dict[str, list[float]]) -> dict[str, float]:
    """Each call's median over that of clone in the same rounds, to three digits."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    units = {name: statistics.median(seconds["clone"][: len(values)]) for name, values in seconds.items()}
    return {name: float(f"{medians[name] / units[name]:.3g}") for name in seconds}


def exponent(rows: list[dict], form: str, direction: str = "forward") -> float:
    """The growth of time with n, fitted to n >= 2048: 1 is linear, 2 quadratic."""
    far = [row for row in rows if row["n"] >= 2048]
    times = [row[direction][form] for row in far]
    return float(np.polyfit(np.log([row["n"] for row in far]), np.log(times), 1)[0])


def report(found: dict) -> str:
    """The tables, in Markdown."""
    lines = [", ".join(f"{key} {value}" for key, value in found["machine"].items()), ""]
    for row in found.get("rotation", []):
        layout = "interleaved" if row["interleaved"] else "half-split"
        lines.append(f"{tuple(row['shape'])} {row['dtype']} {layout}, {row['mode']}, {row['direction']}")
        ranked = sorted(row["ratios"].items(), key=lambda pair: pair[1])
        lines += ["    " + ", ".join(f"{name} {ratio:.2f}" for name, ratio in ranked), ""]
    if "bfloat16_errors" in found:
        ranked = sorted(found["bfloat16_errors"].items(), key=lambda pair: pair[1])
        lines.append("error in bfloat16 (root mean square), in multiples of one rounding; 0 returns float32")
        lines += ["    " + ", ".join(f"{name} {error:.2f}" for name, error in ranked), ""]
    rows = found.get("linear_attention", [])
    for direction in ("forward", "forward and backward") if rows else ():
        lines.append(f"linear attention, {direction}: ms, and as a share of softmax attention")
        for row in rows:
            times = row[direction]
            shares = ", ".join(f"{k} {v:.1f} ({v / times['softmax']:.3f})" for k, v in times.items())
            lines.append(f"    n = {row['n']}: {shares}")
        fitted = ", ".join(f"{form} {exponent(rows, form, direction):.2f}" for form in rows[0][direction])
        lines += [f"    time grows as n to the power of: {fitted}", ""]
    memory = ", ".join(f"n = {row['n']}: {row['extra_bytes_per_output_byte']}" for row in rows if len(row) > 3)
    return "\n".join([*lines, f"extra memory of linear attention, in outputs: {memory}" if memory else ""])


def _usable_peers(device: str) -> dict[str, tuple[bool, ...]]:
    """The peers that are installed and give the right rotation; says which are not and why."""
    usable = {}
    for name, (_, layouts) in PEERS.items():
        try:
            for interleaved in layouts:
                error = _error(name, interleaved, torch.float32, device)
                assert error < 1e-5, f"root mean square error {error:.2g}"
        except Exception as error:
            print(f"left out: {name}: {type(error).__name__}: {str(error).splitlines()[0]}")
        else:
            usable[name] = layouts
    return usable


def _error(name: str, interleaved: bool, dtype: torch.dtype, device: str) -> float:
    """Root mean square difference of a peer's rotation, at positions 0 to 15, from one in float64."""
    generator = torch.Generator().manual_seed(0)
    # Four sizes that differ, so that axes can be told apart.
    q, k = torch.randn(2, 2, 3, 16, 64, generator=generator).to(device, dtype)
    inv_freq = inverse_frequencies(64, device=device)
    inputs, rotate = PEERS[name][0](q, k, inv_freq, interleaved)
    _, exact = (clone if name in ("clone", "copy_") else ours)(q, k, inv_freq, interleaved)
    squares = []
    for got, right in zip(rotate(*inputs)[:2], exact(q.double(), k.double()), strict=True):
        axes = [right.shape.index(size) for size in got.shape]
        squares.append((got.double() - right.permute(axes)).square().mean())
    return float(torch.stack(squares).mean().sqrt())


def _with_backward(function: Callable[..., Tensor | tuple[Tensor, ...]]) -> Callable[..., None]:
    def run(*inputs: Tensor) -> None:
        outputs = function(*inputs)
        outputs = outputs if isinstance(outputs, tuple) else (outputs,)
        torch.autograd.backward(outputs[:2], [x.detach() for x in outputs[:2]])
        for x in inputs:
            x.grad = None

    return run


def _extra_memory(n: int) -> int:
    """Bytes by which linear attention raises the peak, measured in a process of its own."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_peak, (n,))


def _peak(n: int) -> int:
    q, k, v = torch.randn(3, 1, 8, n, 64)
    cos, sin = cos_sin(torch.arange(n), inverse_frequencies(64))
    before = _most_memory()
    linear_attention(q, k, v, causal=True, rotate="numerator", cos=cos, sin=sin, interleaved=True)
    return _most_memory() - before


def _most_memory() -> int:
    """Bytes that this process has held at most (Linux; ru_maxrss would begin with the parent's)."""
    line = next(line for line in _lines("/proc/self/status") if line.startswith("VmHWM"))
    return 1024 * int(line.split()[1])


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


if __name__ == "__main__":
    main()
