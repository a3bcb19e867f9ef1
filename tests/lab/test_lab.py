import math
from fractions import Fraction

import pytest
import torch

from lab import mistakes, results
from lab.layer import RotaryAttention, SinusoidalEncoding
from lab.memory import memory_taken
from lab.precision import angle_errors, angles_in, score_errors
from lab.similarity import diagonal_share
from lab.traffic import rotation_traffic, traffic
from rope_lib.theory.sinusoidal import sinusoidal_encoding
from tests import oracles
from tests.conftest import ROOT


def test_exponent_of_a_power_law():
    rows = [{"n": n, "forward": {"softmax": 3 * n**2, "rotated": n * 0.5}} for n in (512, 2048, 4096, 16384)]
    assert results.exponent(rows, "softmax") == pytest.approx(2)
    assert results.exponent(rows, "rotated") == pytest.approx(1)


@pytest.mark.parametrize("path", sorted((ROOT / "lab" / "results").glob("speed-*.json")), ids=lambda path: path.stem)
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


def test_which_check_sees_which_mistake():
    found = {name: mistakes.seen_by(rotate) for name, rotate in mistakes.MISTAKES.items()}
    assert not any(found.pop("(none)").values())
    back = {"gradient cut off", "gradient turned onwards"}
    assert {name for name, seen in found.items() if not seen["far"]} == back
    assert {name for name, seen in found.items() if seen["gradient"]} == back
    assert all(sum(found[name].values()) == 1 for name in back)
    assert {name for name, seen in found.items() if not seen["loop"]} == {"angles in float32", *back}
    assert {name for name, seen in found.items() if seen["length"] or seen["distance"]} == {
        "tables of the other layout",
        "a sign wrong",
    }
    assert {name for name, seen in found.items() if not seen["scores"]} == {
        "positions counted from 1",
        "cat in the place of stack",
        "angles in float32",
        *back,
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
