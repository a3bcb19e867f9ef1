"""How fast the library is, beside a copy and beside other libraries: `make bench`, or `python -m bench.speed --help`.

Times on a shared machine drift, so everything of a group is timed in turn, round after round, and the medians are
divided by that of torch.clone of the same q and k. What is printed is also kept as data in lab/results.
"""

import argparse
import contextlib
import ctypes
import json
import multiprocessing
import os
import platform
import random
import re
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from itertools import product
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import scaled_dot_product_attention
from tqdm import tqdm

import lab
from bench.peers import ON_A_CARD, PEERS, clone, fla_naive_chunk, ours
from lab.results import NO_ROTATION, report
from rope_lib import cos_sin, inverse_frequencies
from rope_lib.linear import Rotation, linear_attention

RESULTS = Path(lab.__file__).parent / "results"  # chapters and figures read them there
SHAPES = {  # large, many heads, one of training on two cores, decoding
    "cpu": [(1, 32, 4096, 128), (8, 16, 1024, 64), (32, 4, 128, 32), (1, 32, 1, 128)],
    "cuda": [(8, 32, 4096, 128), (1, 32, 1, 128)],
}
COMPILED = [SHAPES["cpu"][0], SHAPES["cpu"][-1], SHAPES["cuda"][0]]  # each takes a minute
DTYPES = {"float32": torch.float32, "bfloat16": torch.bfloat16}
FINALISTS = 5  # calls of a group that are timed in all rounds; the others stop after a third of them
LENGTHS = (512, 2048, 4096, 16384, 65536)
# glibc's names, and what "fresh" and "reused" mean for tensors from 8 MiB on: its own rule would change on the way.
M_TRIM_THRESHOLD, M_MMAP_THRESHOLD, M_MMAP_MAX = -1, -3, -4
MEMORY = {
    "fresh": {M_MMAP_THRESHOLD: 2**23, M_TRIM_THRESHOLD: 2**24},
    "reused": {M_MMAP_MAX: 0, M_TRIM_THRESHOLD: 2**31 - 1},
}
BUSY = (
    "import os, sys\nwhile os.getppid() == int(sys.argv[1]):\n    sum(range(10**6))"  # it ends when its parent is gone
)


def main() -> None:
    """Time, print, keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cuda" if torch.cuda.is_available() else "cpu", choices=["cpu", "cuda"])
    parser.add_argument(
        "--rounds",
        type=int,
        default=27,
        help=f"medians are over so many for the {FINALISTS} fastest, over a third for the others (small shapes: 10 "
        "times as many, of 20 calls each)",
    )
    parser.add_argument("--only", choices=["rotation", "linear_attention"], help="one of the two parts")
    parser.add_argument("--eager", action="store_true", help="leave out torch.compile, which takes most of the time")
    parser.add_argument("--neighbours", type=int, default=0, help="busy processes beside, ended by this one")
    parser.add_argument(
        "--memory", choices=MEMORY, default="fresh", help="whether large results get new memory (Linux)"
    )
    parser.add_argument(
        "--card",
        action="store_true",
        help="what one asks of a GPU, in some minutes: the rotation, its kernels and the forms that most models run",
    )
    options = parser.parse_args()
    options.only = "rotation" if options.card else options.only
    warnings.filterwarnings("ignore")
    settings = {"neighbours": options.neighbours, "memory": options.memory}
    if platform.system() == "Linux":
        for name, value in MEMORY[options.memory].items():
            ctypes.CDLL(None).mallopt(name, value)
    beside = f"-neighbours-{options.neighbours}" if options.neighbours else ""
    name = f"{options.device}{beside}{'-reused' if options.memory == 'reused' else ''}"
    if options.card:
        name = f"card-{re.sub(r'[^a-z0-9]+', '-', machine(options.device)['device'].lower()).strip('-')}"
    path = RESULTS / f"speed-{name}.json"
    found = json.loads(path.read_text()) if path.exists() else {}
    found |= {"machine": machine(options.device) | settings}
    if options.only != "linear_attention":
        found["rotation"] = finish(path, "rotation", time_rotation(options))
        found["bfloat16_errors"] = bfloat16_errors(found["rotation"], options.device)
        path.write_text(json.dumps(found, indent=1) + "\n")
    if options.only != "rotation":
        found["linear_attention"] = finish(path, "linear_attention", time_linear_attention(options))
    path.write_text(json.dumps(found, indent=1) + "\n")
    print(report(found))


def finish(path: Path, part: str, rows: Iterator[tuple[str, Callable[[], dict]]]) -> list[dict]:
    """Measure row after row. What an interrupted run has finished is kept beside `path`, and the next one goes on."""
    kept = path.with_suffix(f".{part}.unfinished")
    done = json.loads(kept.read_text()) if kept.exists() else {}
    if done:
        print(f"going on with {len(done)} rows of an interrupted run; to begin anew, remove {kept.name}")
    for key, measure in rows:
        if key not in done:
            done[key] = measure()
            kept.write_text(json.dumps(done))
    kept.unlink(missing_ok=True)
    return list(done.values())


def machine(device: str) -> dict:
    """What the numbers were measured on."""
    names = [line.split(":")[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")]
    name = torch.cuda.get_device_name() if device == "cuda" else (names or [platform.processor()])[0]
    return {"device": name, "threads": torch.get_num_threads(), "torch": torch.__version__}


@contextlib.contextmanager
def neighbours(count: int) -> Iterator[None]:
    """So many processes that compute without end, while the block lasts, and no longer if this process is killed."""
    parent = str(os.getpid())
    busy = [subprocess.Popen([sys.executable, "-c", BUSY, parent]) for _ in range(count)]
    try:
        yield
    finally:
        for process in busy:
            process.kill()
            process.wait()


def time_rotation(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict]]]:
    """For each shape, dtype, layout, mode and pass: a name, and what measures the ratio of each peer to clone."""
    peers = _usable_peers(options.device, ON_A_CARD if options.card else None)
    modes = ["eager"] if options.eager else ["eager", "compiled"]
    groups = [
        group
        for group in product(SHAPES[options.device], DTYPES, (True, False), modes, ("forward", "forward and backward"))
        if not (group[0][2] == 1 and group[4] != "forward")  # nobody trains on single tokens
        and (group[3] == "eager" or group[0] in COMPILED)
    ]
    seconds = sum(45 * (mode == "compiled") + options.rounds * (1 + options.neighbours) for *_, mode, _ in groups)
    print(f"{len(groups)} groups of the rotation, about {seconds / 60:.0f} minutes on two cores")
    for group in tqdm(groups, desc="rotation"):
        yield " ".join(map(str, group)), lambda group=group: _rotation_row(*group, peers, options)


def _rotation_row(
    shape: tuple, dtype: str, interleaved: bool, mode: str, direction: str, peers: dict, options: argparse.Namespace
) -> dict:
    q, k = torch.randn(2, *shape, device=options.device).to(DTYPES[dtype])
    inv_freq = inverse_frequencies(shape[-1], device=options.device)
    calls = {}
    torch.compiler.reset()
    for name in (name for name, layouts in peers.items() if interleaved in layouts):
        inputs, rotate = PEERS[name][0](q, k, inv_freq, interleaved)
        if mode == "compiled" and name not in NO_ROTATION:
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
    small = q.numel() < 2**20
    with torch.inference_mode(shape[2] == 1):
        seconds = timings(
            calls,
            options.rounds * (10 if small else 1),
            options.device,
            in_a_row=20 if small else 1,
            beside=options.neighbours,
        )
    row = {"shape": list(shape), "dtype": dtype, "interleaved": interleaved, "mode": mode, "direction": direction}
    row["clone_ms"] = float(f"{1000 * statistics.median(seconds['clone']):.3g}")
    if options.card:
        row["spreads"] = {name: spread(seconds, name) for name in seconds}
    return row | {"ratios": ratios(seconds), "spread": spread(seconds)}


def bfloat16_errors(rows: list[dict], device: str) -> dict[str, float]:
    """For each peer in these rows: its error in bfloat16, in multiples of ours, which is that of one rounding."""
    names = {name for row in rows for name in row["ratios"]} - set(NO_ROTATION)
    errors = {name: _error(name, PEERS[name][1][-1], torch.bfloat16, device) for name in PEERS if name in names}
    return {name: round(error / errors["rope_lib"], 2) for name, error in errors.items()}


def time_linear_attention(options: argparse.Namespace) -> Iterator[tuple[str, Callable[[], dict]]]:
    """Causal linear attention, 8 heads of 64, against softmax attention and against the naive chunk form."""
    print(f"{len(LENGTHS)} lengths of linear attention, about {10 * (1 + options.neighbours)} minutes on two cores")
    for n in tqdm(LENGTHS, desc="linear attention"):
        yield str(n), lambda n=n: _linear_row(n, options)


def _linear_row(n: int, options: argparse.Namespace) -> dict:
    q, k, v = torch.randn(3, 1, 8, n, 64, device=options.device)
    rotation = _rotated_numerator(n, options.device)
    forms = {
        "softmax": lambda q, k, v: scaled_dot_product_attention(q, k, v, is_causal=True),
        "rotated": lambda q, k, v: linear_attention(q, k, v, causal=True, rotation=rotation),
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
        beside = options.neighbours
        seconds = timings(calls, max(1, options.rounds // 3), options.device, beside=beside)
        seconds |= timings(slow, 1, options.device, beside=beside)
        row[direction] = {name: round(1000 * statistics.median(seconds[name]), 3) for name in forms}
    if options.device == "cpu" and platform.system() == "Linux":
        row["extra_bytes_per_output_byte"] = round(peak_rise(_one_call, n) / (4 * q.numel()), 2)
    return row


def timings(
    calls: dict[str, tuple[Callable, tuple]], rounds: int, device: str, *, in_a_row: int = 1, beside: int = 0
) -> dict[str, list[float]]:
    """Seconds of each call in each round. Each round has its own order, since a call feels who came before.

    Calls of microseconds need several in a row: for a single one, the clock and cold caches weigh as much as the call.
    After a third of the rounds only the fastest go on, because to tell those apart takes the most rounds. Neighbours
    begin anew nine times: how they and the calls fall in with each other lasts for a while.
    """
    order, seconds, names = random.Random(0), {name: [] for name in calls}, list(calls)
    for start in range(0, rounds, stretch := max(1, rounds // 9)):
        with neighbours(beside):
            for number in range(start, min(start + stretch, rounds)):
                if number == max(1, rounds // 3):
                    names = sorted(names, key=lambda name: statistics.median(seconds[name]))[:FINALISTS]
                for name in order.sample(names, len(names)):
                    function, inputs = calls[name]
                    _wait(device)
                    begin = time.perf_counter()
                    for _ in range(in_a_row):
                        function(*inputs)
                    _wait(device)
                    seconds[name].append((time.perf_counter() - begin) / in_a_row)
    return seconds


def ratios(seconds: dict[str, list[float]]) -> dict[str, float]:
    """Each call's median over that of clone in the same rounds, to three digits."""
    medians = {name: statistics.median(values) for name, values in seconds.items()}
    units = {name: statistics.median(seconds["clone"][: len(values)]) for name, values in seconds.items()}
    return {name: float(f"{medians[name] / units[name]:.3g}") for name in seconds}


def spread(seconds: dict[str, list[float]], name: str = "rope_lib") -> list[float]:
    """Where nine tenths of its times lie, over the median of clone."""
    unit, times = statistics.median(seconds["clone"]), sorted(seconds[name])
    cut = len(times) // 20
    return [float(f"{times[cut] / unit:.3g}"), float(f"{times[-1 - cut] / unit:.3g}")]


def _usable_peers(device: str, names: tuple[str, ...] | None = None) -> dict[str, tuple[bool, ...]]:
    """The peers that are installed and give the right rotation; says which are not and why."""
    usable = {}
    for name in names or PEERS:
        layouts = PEERS[name][1]
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
    _, exact = (clone if name in NO_ROTATION else ours)(q, k, inv_freq, interleaved)
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


def _rotated_numerator(n: int, device: str = "cpu") -> Rotation:
    tables = cos_sin(torch.arange(n, device=device), inverse_frequencies(64, device=device))
    return Rotation(*tables, interleaved=True, denominator=False)


def _one_call(n: int) -> Callable[[], Tensor]:
    q, k, v = torch.randn(3, 1, 8, n, 64)
    rotation = _rotated_numerator(n)
    return lambda: linear_attention(q, k, v, causal=True, rotation=rotation)


def peak_rise(function: Callable[[int], Callable[[], object]], size: int) -> int:
    """Bytes by which function(size)(), a call that it prepares, raises the peak of a process of its own (Linux)."""
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        return pool.apply(_rise, (function, size))


def _rise(function: Callable[[int], Callable[[], object]], size: int) -> int:
    call = function(size)
    before = _most_memory()
    call()
    return _most_memory() - before


def _most_memory() -> int:
    """Bytes that this process has held at most (ru_maxrss would begin with the parent's)."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])


def _wait(device: str) -> None:
    if device == "cuda":
        torch.cuda.synchronize()


def _lines(path: str) -> list[str]:
    return Path(path).read_text().splitlines() if Path(path).exists() else []


if __name__ == "__main__":
    main()
