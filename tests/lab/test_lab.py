import argparse
import contextlib
import math
import os
import subprocess
import sys
import time
from fractions import Fraction
from pathlib import Path

import pytest
import torch

from lab import mistakes, peers, results, speed, steadiness
from lab.layer import RotaryAttention, SinusoidalEncoding
from lab.memory import memory_taken, peak_rise
from lab.precision import angle_errors, angles_in, score_errors
from lab.similarity import diagonal_share
from lab.traffic import rotation_traffic, traffic
from rope_lib import cos_sin, inverse_frequencies
from rope_lib.theory.sinusoidal import sinusoidal_encoding
from tests import oracles
from tests.conftest import ROOT


@pytest.mark.slow
@pytest.mark.parametrize("processes", [2, 3])
def test_sharded_over_processes_is_one_process(processes):
    """Forward and backward; the program itself compares and fails."""
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={processes}"]
    done = subprocess.run(
        [*command, "-m", "lab.sharded"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        env=os.environ | {"OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("output and gradients agree") == processes


def test_a_peer_with_the_wrong_rotation_is_left_out(capsys, monkeypatch):
    def reversed_rotation(q, k, inv_freq, interleaved):
        return peers.ours(q, k, -inv_freq, interleaved)

    monkeypatch.setattr(speed, "PEERS", {
        "rope_lib": (peers.ours, (True, False)),
        "clone": (peers.clone, (True, False)),
        "torch.onnx.ops": (peers.onnx, (True, False)),
        "reversed": (reversed_rotation, (True,)),
        "missing": (lambda *_: __import__("no_such_library"), (True,)),
    })  # fmt: skip
    assert list(speed._usable_peers("cpu")) == ["rope_lib", "clone", "torch.onnx.ops"]
    printed = capsys.readouterr().out
    assert "left out: reversed: AssertionError" in printed
    assert "left out: missing: ModuleNotFoundError: No module named 'no_such_library'" in printed


def test_timings_call_everything_in_every_round():
    calls = []
    named = {name: (lambda name=name: calls.append(name), ()) for name in "abc"}
    seconds = speed.timings(named, 8, "cpu", in_a_row=2)
    assert {name: len(values) for name, values in seconds.items()} == dict.fromkeys("abc", 8)
    rounds = [calls[start : start + 6] for start in range(0, 48, 6)]
    assert all(a == b for calls in rounds for a, b in zip(calls[::2], calls[1::2], strict=True))
    assert all(sorted(calls[::2]) == list("abc") for calls in rounds)
    assert len({tuple(calls) for calls in rounds}) > 1  # nobody always follows the same one


def test_the_slow_ones_leave_after_a_third_of_the_rounds(monkeypatch):
    clock, calls = [0], []

    def work(seconds):
        clock[0] += seconds
        calls.append(seconds)

    monkeypatch.setattr(speed.time, "perf_counter", lambda: clock[0])
    named = {str(i): (work, (i,)) for i in range(speed.FINALISTS + 2, 0, -1)}
    seconds = speed.timings(named, 9, "cpu")
    assert {name: set(values) for name, values in seconds.items()} == {name: {int(name)} for name in named}
    assert [calls.count(int(name)) for name in named] == [3, 3] + [9] * speed.FINALISTS


def test_error_in_bfloat16_counts_roundings():
    errors = [speed._error(name, True, torch.bfloat16, "cpu") for name in ("rope_lib", "torch.onnx.ops", "clone")]
    assert 1.2 < errors[1] / errors[0] < 2
    assert errors[2] == 0


def test_exponent_of_a_power_law():
    rows = [{"n": n, "forward": {"softmax": 3 * n**2, "rotated": n * 0.5}} for n in speed.LENGTHS]
    assert results.exponent(rows, "softmax") == pytest.approx(2)
    assert results.exponent(rows, "rotated") == pytest.approx(1)


def test_backward_of_a_benchmark_is_a_backward():
    x = torch.ones(3, requires_grad=True)
    seen = []
    x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    speed._with_backward(lambda x: 2 * x)(x)
    assert seen == [[4, 4, 4]]
    assert x.grad is None


@pytest.mark.parametrize("path", sorted(speed.RESULTS.glob("speed-*.json")), ids=lambda path: path.stem)
def test_stored_results_can_be_printed(path):
    found = results.stored(path.stem)
    text = results.report(found)
    assert found["machine"]["device"] in text
    assert all(text.count(f"{row['clone_ms']} ms") for row in found["rotation"])
    assert text.count("n = 65536:") == (2 if "linear_attention" in found else 0) + ("extra" in text)
    for row in found["rotation"]:
        name, ratio = results.best_other(row)
        assert ratio == min(r for n, r in row["ratios"].items() if n not in ("rope_lib", "clone", "copy_"))
        assert row["ratios"][name] == ratio


def test_rows_are_chosen_by_their_settings():
    rows = [
        {"mode": "eager", "dtype": "float32", "interleaved": True},
        {"mode": "eager", "dtype": "x", "interleaved": 0},
    ]
    found = {"rotation": rows}
    assert results.rows_of(found, mode="eager", dtype="float32") == rows[:1]
    assert results.rows_of(found) == rows
    assert [results.setting(row) for row in rows] == ["eager, float32, interleaved", "eager, x, half-split"]


def test_an_interrupted_run_goes_on_where_it_was(tmp_path, capsys):
    path, measured = tmp_path / "speed-cpu.json", []

    def rows(stop):
        for key in "abc":
            if key == stop:
                raise KeyboardInterrupt
            yield key, lambda key=key: measured.append(key) or {"row": key}

    with pytest.raises(KeyboardInterrupt):
        speed.finish(path, "rotation", rows("c"))
    assert speed.finish(path, "rotation", rows(None)) == [{"row": key} for key in "abc"]
    assert measured == ["a", "b", "c"]
    assert "going on with 2 rows of an interrupted run" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def busy_beside(parent):
    """Processes that compute for nothing but to be in the way of this one."""
    found = 0
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        with contextlib.suppress(OSError):  # some end while we look
            found += path.read_bytes().endswith(f"\0{speed.BUSY}\0{parent}\0".encode())
    return found


linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="processes are read from /proc")
PARENT = """
import time
from lab.speed import neighbours
with neighbours(1):
    print(1, flush=True)
    time.sleep(60)
"""


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert condition()


@linux
def test_neighbours_end_with_the_block():
    with pytest.raises(KeyboardInterrupt), speed.neighbours(2):  # noqa: PT012
        wait_until(lambda: busy_beside(os.getpid()) == 2)  # a process is not itself at once
        raise KeyboardInterrupt
    assert busy_beside(os.getpid()) == 0


@linux
def test_neighbours_end_when_their_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout.readline()
    wait_until(lambda: busy_beside(parent.pid) == 1)
    parent.kill()  # it has no chance to end them
    parent.wait()
    wait_until(lambda: busy_beside(parent.pid) == 0)


def test_rows_of_the_benchmark_are_measured(monkeypatch):
    """A tiny run of both parts, with a neighbour."""
    monkeypatch.setattr(speed, "SHAPES", {"cpu": [(1, 2, 8, 4), (1, 2, 1, 4)]})
    monkeypatch.setattr(speed, "LENGTHS", (16,))
    monkeypatch.setattr(speed, "fla_naive_chunk", lambda q, k, v: q + k + v)
    monkeypatch.setattr(speed, "PEERS", {
        "rope_lib": (peers.ours, (True, False)), "clone": (peers.clone, (True, False)),
        "copy_": (peers.copy, (True, False)),
    })  # fmt: skip
    options = argparse.Namespace(device="cpu", eager=True, rounds=1, neighbours=1)
    rows = [measure() for _, measure in speed.time_rotation(options)]
    assert len(rows) == 2 * 2 * (2 + 1)  # types and layouts; forward and backward, and forward for the single token
    assert {tuple(row["shape"]) for row in rows} == {(1, 2, 8, 4), (1, 2, 1, 4)}
    assert all(set(row["ratios"]) >= {"rope_lib", "clone"} and row["spread"][0] <= row["spread"][1] for row in rows)
    [(key, measure)] = speed.time_linear_attention(options)
    assert (key, measure()["n"]) == ("16", 16)


def test_forms_of_the_steadiness_experiment_are_one_rotation(generator):
    x = torch.randn(1, 3, 5, 8, generator=generator)
    cos, sin = cos_sin(torch.arange(5), inverse_frequencies(8))
    first, *others = (form(x, cos, sin) for form in steadiness.FORMS.values())
    for other in others:
        torch.testing.assert_close(other, first)


def one_megabyte(size):
    return lambda: torch.ones(size, 2**20, dtype=torch.uint8)


@linux
def test_the_peak_rises_by_what_is_taken():
    assert 64 * 2**20 <= peak_rise(one_megabyte, 64) < 80 * 2**20


def test_angle_errors_against_exact_arithmetic():
    """With base 2^32 and d = 64 every speed is a power of two, so that only the position is rounded."""
    powers = {"dim": 64, "base": 2.0**32}
    assert angles_in(torch.float64, (3,), **powers).tolist() == [[3 / 2**i for i in range(32)]]
    assert angle_errors((257, 2**20 + 1), torch.bfloat16, **powers) == [1, 1]  # 256 and 2^20 are the nearest
    assert angle_errors((2**24 + 1,), torch.float32, **powers) == [1]
    assert angle_errors((2**24 + 1,), torch.float64, **powers) == [0]
    rounded = torch.tensor(1 / 3, dtype=torch.float64).float().item()  # base 9, d = 4: speeds 1 and 1/3
    assert angle_errors((1024,), torch.float32, dim=4, base=9.0) == [
        float(abs(1024 * Fraction(rounded) - Fraction(1024, 3)))
    ]


def test_score_errors_grow_with_the_position_and_vanish_in_float64(generator):
    near, far = score_errors((10, 10**6), torch.float32, generator=generator)
    assert 1e-8 < near < 1e-5 < far < 0.1
    assert max(score_errors((7, 10**6), torch.float64, generator=generator)) < 1e-8
    assert score_errors((10**5,), torch.bfloat16, generator=generator)[0] > 0.5


def test_diagonal_share_of_known_tables():
    position = torch.arange(5.0, dtype=torch.float64)
    assert diagonal_share(position[:, None] - position) == pytest.approx(1)
    assert diagonal_share(position[:, None] + position) == pytest.approx(0)


def test_ratios_are_taken_in_the_same_rounds():
    seconds = {"clone": [1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 4.0], "early": [2.0, 2.0, 2.0], "late": [8.0] * 7}
    assert speed.ratios(seconds) == {"clone": 1, "early": 2, "late": 2}


def test_which_check_sees_which_mistake():
    found = {name: mistakes.seen_by(rotate) for name, rotate in mistakes.MISTAKES.items()}
    assert not any(found.pop("(none)").values())
    assert all(seen["far"] for seen in found.values())
    assert [name for name, seen in found.items() if not seen["loop"]] == ["angles in float32"]
    assert {name for name, seen in found.items() if seen["length"] or seen["distance"]} == {
        "tables of the other layout",
        "a sign wrong",
    }
    assert {name for name, seen in found.items() if not seen["scores"]} == {
        "positions counted from 1",
        "cat in the place of stack",
        "angles in float32",
    }


def test_memory_taken_counts_new_tensors_and_no_views():
    x = torch.zeros(10, dtype=torch.float32)
    assert memory_taken(lambda: x.view(2, 5).T) == 0
    assert memory_taken(lambda: x.add_(1)) == 0
    assert memory_taken(x.clone) == 40
    assert memory_taken(lambda: (2 * x + x)[:3]) == 80
    assert memory_taken(lambda: torch.empty(5, dtype=torch.float64)) == 40


def test_traffic_by_hand():
    """Of float32 numbers: 40 in a row are 160 bytes, five sectors of 32 bytes."""
    x, table = torch.empty(4, 40, device="meta"), torch.empty(40, device="meta")
    assert traffic(lambda: x.view(2, 80).T) == traffic(lambda: torch.empty_like(x)) == (0, 0, 0)
    assert traffic(torch.clone, x) == (1280, 1280, 1)
    assert traffic(lambda: x * table) == (1440, 1440, 1)
    assert traffic(lambda: x.mul_(table)) == (1440, 1440, 1)  # what is changed in place is read and written
    assert traffic(lambda: torch.empty_like(x).copy_(x)) == (1280, 1280, 1)
    assert traffic(lambda: x[:, ::2].clone()) == (320 + 320, 640 + 320, 1)  # all sectors of x are touched
    assert traffic(lambda: x[:, :4].clone()) == (64 + 64, 128 + 64, 1)  # 16 bytes of a sector in each row
    assert traffic(lambda: table.expand(4, 40).clone()) == (160 + 640, 160 + 640, 1)
    assert traffic(lambda: x.bfloat16()) == (640 + 320, 640 + 320, 1)
    assert traffic(lambda: torch.ones(3) + 1) == (0, 0, 0)  # on the CPU


def test_what_a_rotation_asks_of_a_gpu():
    """Copies of x, and kernels, by hand in passes over x: a table is 1/64 of it in float32 and 1/32 in bfloat16."""
    counted = {
        (row["form"], row["dtype"], row["interleaved"]): (row["copies"], row["kernels"]) for row in rotation_traffic()
    }
    assert counted.pop(("rotate_half", "float32", False)) == ((2 + 1 + 2 + 2 + 3 + 4 / 64) / 2, 5)
    assert counted.pop(("rotate_half", "bfloat16", False)) == ((2 + 1 + 2 + 2 + 3 + 2 / 32) / 2, 5)
    ours = {key[1:]: value for key, value in counted.items() if key[0] == "rope_lib"}
    made, used = 2 + 4 + 4, 4  # tables: minus and two stacks; all of them, read once
    assert ours == {
        ("float32", True): ((2 + (4 + 2) / 64) / 2, 2),
        ("float32", False): ((1 / 2 + 1 + 1 + 1 / 2 + 1 + (made + used) / 64) / 2, 5),
        ("bfloat16", True): ((1 + 2 + 2 + 1 + 1 + (made + used) / 32) / 2, 5),
        ("bfloat16", False): ((1 / 2 + 2 + 2 + 1 / 2 + 1 + (made + used) / 32) / 2, 5),
    }


def test_codes_of_a_cached_text_go_on_and_end():
    layer = SinusoidalEncoding(8, max_len=10, dropout=0.5).eval()
    x = torch.ones(2, 3, 8)
    whole = layer(torch.ones(2, 10, 8))
    assert torch.equal(layer(x, start=7), whole[:, 7:])
    assert torch.equal(whole[0], 1 + sinusoidal_encoding(torch.arange(10), 8))
    with pytest.raises(ValueError, match="the last place is 10; max_len is 10"):
        layer(x, start=8)
    assert (layer.train()(torch.ones(1, 10, 8)) == 0).any()  # dropped
    assert "codes" in layer.state_dict()  # so it is not empty memory after a load from the meta device


def test_layer_is_the_plain_loop(generator):
    """Three words, two heads of queries, one of keys and values; scores, softmax and sum as loops."""
    layer = RotaryAttention(8, heads=2, kv_heads=1, interleaved=False).double()
    words = torch.randn(1, 3, 8, generator=generator, dtype=torch.float64)
    q, k, v = (project(words)[0].tolist() for project in (layer.to_q, layer.to_k, layer.to_v))
    rows = []
    for m in range(3):
        row = []
        for head in (slice(0, 4), slice(4, 8)):
            weights = [math.exp(oracles.score(q[m][head], k[n], m, n, interleaved=False) / 2) for n in range(m + 1)]
            row += [sum(w * v[n][j] for n, w in enumerate(weights)) / sum(weights) for j in range(4)]
        rows.append(row)
    expected = layer.to_out(torch.tensor([rows], dtype=torch.float64))
    output, cache = layer(words)
    torch.testing.assert_close(output, expected)
    assert [part.shape for part in cache] == [(1, 1, 3, 4), (1, 1, 3, 4)]


def test_layer_continues_from_its_cache(generator):
    layer = RotaryAttention(8, heads=2, kv_heads=1, interleaved=True).double()
    words = torch.randn(2, 5, 8, generator=generator, dtype=torch.float64)
    whole, _ = layer(words)
    start, cache = layer(words[:, :2])
    end, _ = layer(words[:, 2:], cache)
    torch.testing.assert_close(torch.cat((start, end), dim=1), whole)


@pytest.mark.parametrize("heads", [(3, 1), (4, 3)])
def test_layer_names_heads_that_do_not_divide(heads):
    text = f"width is 8, heads {heads[0]}, kv_heads {heads[1]}; each must be a multiple of the next"
    with pytest.raises(ValueError, match=text):
        RotaryAttention(8, *heads, interleaved=True)
