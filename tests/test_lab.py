import json
import math
import os
import subprocess
import sys

import pytest
import torch
from conftest import ROOT

from lab import mistakes, peers, speed
from lab.layer import RotaryAttention
from lab.memory import memory_taken
from rope_lib import reference


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
    assert speed.exponent(rows, "softmax") == pytest.approx(2)
    assert speed.exponent(rows, "rotated") == pytest.approx(1)


def test_backward_of_a_benchmark_is_a_backward():
    x = torch.ones(3, requires_grad=True)
    seen = []
    x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    speed._with_backward(lambda x: 2 * x)(x)
    assert seen == [[4, 4, 4]]
    assert x.grad is None


@pytest.mark.parametrize("path", sorted(speed.RESULTS.glob("speed-*.json")), ids=lambda path: path.stem)
def test_stored_results_can_be_printed(path):
    found = json.loads(path.read_text())
    text = speed.report(found)
    assert found["machine"]["device"] in text
    assert text.count("rope_lib ") == len(found["rotation"]) + 1  # and in the line of errors
    assert text.count("n = 65536:") >= 2


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


def test_layer_is_the_plain_loop(generator):
    """Three words, two heads of queries, one of keys and values; scores, softmax and sum as loops."""
    layer = RotaryAttention(8, heads=2, kv_heads=1, interleaved=False).double()
    words = torch.randn(1, 3, 8, generator=generator, dtype=torch.float64)
    q, k, v = (project(words)[0].tolist() for project in (layer.to_q, layer.to_k, layer.to_v))
    rows = []
    for m in range(3):
        row = []
        for head in (slice(0, 4), slice(4, 8)):
            weights = [math.exp(reference.score(q[m][head], k[n], m, n, interleaved=False) / 2) for n in range(m + 1)]
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
