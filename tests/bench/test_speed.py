"""The benchmark times what it says, leaves out what is wrong, and leaves nothing running behind."""

import argparse
import contextlib
import json
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
import torch

from bench import peers, speed
from lab import results
from tests.conftest import ON_LINUX, ROOT


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


def test_backward_of_a_benchmark_is_a_backward():
    x = torch.ones(3, requires_grad=True)
    seen = []
    x.register_hook(lambda gradient: seen.append(gradient.tolist()))
    speed._with_backward(lambda x: 2 * x)(x)
    assert seen == [[4, 4, 4]]
    assert x.grad is None


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


PARENT = """
import time
from bench.speed import neighbours
with neighbours(1):
    print(1, flush=True)
    time.sleep(60)
"""


def wait_until(condition):
    deadline = time.monotonic() + 60
    while not condition() and time.monotonic() < deadline:
        time.sleep(0.1)
    assert condition()


@ON_LINUX
def test_neighbours_end_with_the_block():
    with pytest.raises(KeyboardInterrupt), speed.neighbours(2):  # noqa: PT012
        wait_until(lambda: busy_beside(os.getpid()) == 2)  # a process is not itself at once
        raise KeyboardInterrupt
    assert busy_beside(os.getpid()) == 0


@ON_LINUX
def test_neighbours_end_when_their_parent_is_killed():
    parent = subprocess.Popen([sys.executable, "-c", PARENT], cwd=ROOT, stdout=subprocess.PIPE)
    assert parent.stdout.readline()
    wait_until(lambda: busy_beside(parent.pid) == 1)
    parent.kill()  # it has no chance to end them
    parent.wait()
    wait_until(lambda: busy_beside(parent.pid) == 0)


@pytest.mark.slow
def test_rows_of_the_benchmark_are_measured(monkeypatch):
    """A tiny run of both parts, with a neighbour."""
    monkeypatch.setattr(speed, "SHAPES", {"cpu": [(1, 2, 8, 4), (1, 2, 1, 4)]})
    monkeypatch.setattr(speed, "LENGTHS", (16,))
    monkeypatch.setattr(speed, "fla_naive_chunk", lambda q, k, v: q + k + v)
    monkeypatch.setattr(speed, "PEERS", {
        "rope_lib": (peers.ours, (True, False)), "clone": (peers.clone, (True, False)),
        "copy_": (peers.copy, (True, False)),
    })  # fmt: skip
    options = argparse.Namespace(device="cpu", eager=True, rounds=1, neighbours=1, card=False)
    rows = [measure() for _, measure in speed.time_rotation(options)]
    assert len(rows) == 2 * 2 * (2 + 1)  # types and layouts; forward and backward, and forward for the single token
    assert {tuple(row["shape"]) for row in rows} == {(1, 2, 8, 4), (1, 2, 1, 4)}
    assert all(set(row["ratios"]) >= {"rope_lib", "clone"} and row["spread"][0] <= row["spread"][1] for row in rows)
    [(key, measure)] = speed.time_linear_attention(options)
    assert (key, measure()["n"]) == ("16", 16)


def test_ratios_are_taken_in_the_same_rounds():
    seconds = {"clone": [1.0, 1.0, 1.0, 4.0, 4.0, 4.0, 4.0], "early": [2.0, 2.0, 2.0], "late": [8.0] * 7}
    assert speed.ratios(seconds) == {"clone": 1, "early": 2, "late": 2}


def one_megabyte(size):
    return lambda: torch.ones(size, 2**20, dtype=torch.uint8)


@ON_LINUX
def test_the_peak_rises_by_what_is_taken():
    assert 64 * 2**20 <= speed.peak_rise(one_megabyte, 64) < 80 * 2**20


def test_what_one_asks_of_a_card(tmp_path, monkeypatch, capsys):
    """The script, on the processor, with small shapes and without the kernels that are not installed."""
    monkeypatch.setattr(speed, "RESULTS", tmp_path)
    monkeypatch.setattr(speed, "SHAPES", {"cpu": [(1, 2, 8, 64), (1, 2, 1, 64)]})
    monkeypatch.setattr(sys, "argv", ["speed", "--card", "--device", "cpu", "--eager", "--rounds", "3"])
    speed.main()
    [path] = tmp_path.iterdir()
    assert path.name.startswith("speed-card-")
    found = json.loads(path.read_text())
    directions = [(row["shape"][2], row["direction"]) for row in found["rotation"]]
    assert sorted(set(directions)) == [(1, "forward"), (8, "forward"), (8, "forward and backward")]
    for row in found["rotation"]:
        assert {"rope_lib", "clone"} <= set(row["ratios"]) <= set(peers.ON_A_CARD)
        assert row["spreads"].keys() == row["ratios"].keys()
    report = results.card_report(found)
    assert report.startswith(found["machine"]["device"])
    assert report.count("clone                 100 %") == len(found["rotation"])
    assert "linear_attention" not in found
