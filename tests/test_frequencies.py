import json
import math

import pytest
import torch
from conftest import ROOT
from hypothesis import given
from hypothesis import strategies as st

from rope_lib import apply_rotary_emb, cos_sin, decay, inverse_frequencies, reference, scaling
from rope_lib.frequencies import axial_cos_sin, sectioned_cos_sin

bases = st.floats(1.5, 1e7)
dims = st.integers(1, 128).map(lambda pairs: 2 * pairs)


@given(dims, bases)
def test_frequencies_are_the_definition(dim, base):
    loop = [reference.inverse_frequency(i, dim, base) for i in range(dim // 2)]
    assert inverse_frequencies(dim, base=base).tolist() == pytest.approx(loop, rel=1e-14)


def test_frequencies_by_hand():
    assert inverse_frequencies(4, base=100).tolist() == pytest.approx([1, 0.1], rel=1e-15)
    assert inverse_frequencies(2).tolist() == [1.0]


@pytest.mark.parametrize("base", [1e4, 5e5, 1e6])
@pytest.mark.parametrize("position", [0, 1, -3, 4095, 131_071, 999_999, 1_000_000])
def test_tables_are_right_to_one_rounding_up_to_a_million(position, base):
    cos, sin = cos_sin(torch.tensor(position), inverse_frequencies(128, base=base))
    angles = [position * reference.inverse_frequency(i, 128, base) for i in range(64)]
    # Half a unit in the last place of float32 below 1 is 2^-25; the angle itself is off by at most 1e6 * 2^-52.
    assert max(abs(c - math.cos(a)) for c, a in zip(cos.tolist(), angles, strict=True)) < 3.1e-8
    assert max(abs(s - math.sin(a)) for s, a in zip(sin.tolist(), angles, strict=True)) < 3.1e-8


@given(st.floats(-1e5, 1e5), dims)
def test_cos_and_sin_lie_on_the_unit_circle(position, dim):
    cos, sin = cos_sin(torch.tensor(position, dtype=torch.float64), inverse_frequencies(dim), dtype=torch.float64)
    torch.testing.assert_close(cos**2 + sin**2, torch.ones(dim // 2, dtype=torch.float64), rtol=0, atol=1e-15)


def test_shapes_follow_the_positions():
    inv_freq = inverse_frequencies(8)
    for shape in ((), (5,), (2, 5), (0,), (2, 1, 5)):
        cos, sin = cos_sin(torch.zeros(shape, dtype=torch.int64), inv_freq)
        assert cos.shape == sin.shape == (*shape, 4)
        assert cos.dtype == sin.dtype == torch.float32


def test_a_default_device_of_meta_does_not_spoil_the_frequencies():
    with torch.device("meta"):
        real = inverse_frequencies(4, device="cpu")
    assert real.tolist() == inverse_frequencies(4).tolist()


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: inverse_frequencies(7), ValueError, "rotary_dim is 7; it must be positive and even"),
        (lambda: inverse_frequencies(0), ValueError, "rotary_dim is 0"),
        (lambda: inverse_frequencies(8.0), TypeError, "rotary_dim is 8.0; it must be an int"),
        (lambda: inverse_frequencies(True), TypeError, "rotary_dim is True"),
        (lambda: inverse_frequencies(8, base=1), ValueError, "base is 1; it must be a finite number above 1"),
        (lambda: inverse_frequencies(8, base=math.nan), ValueError, "base is nan"),
        (lambda: cos_sin([0, 1], inverse_frequencies(8)), TypeError, "positions is a list; it must be a tensor"),
        (
            lambda: cos_sin(torch.arange(4).bfloat16(), inverse_frequencies(8)),
            TypeError,
            "cannot tell position 2048 from 2049.*autocast",
        ),
        (lambda: cos_sin(torch.ones(4).bool(), inverse_frequencies(8)), TypeError, "is it a mask"),
        (lambda: cos_sin(torch.arange(4), inverse_frequencies(8).float()), TypeError, "angles need torch.float64"),
        (lambda: cos_sin(torch.arange(4), inverse_frequencies(8).bfloat16()), TypeError, r"cast with \.to"),
        (lambda: cos_sin(torch.arange(4), inverse_frequencies(8)[None]), ValueError, r"shape \(1, 4\); it must be"),
        (
            lambda: cos_sin(torch.arange(4), inverse_frequencies(8), dtype=torch.bfloat16),
            TypeError,
            "tables are float32 or float64",
        ),
    ],
)
def test_errors_say_what_arrived_and_what_is_needed(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_axial_tables_turn_each_group_by_its_coordinate(generator):
    """Scores depend on the differences of row and column alone, and each group of dimensions on one of them."""
    rows, columns = torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")
    grid = torch.stack((rows, columns), dim=-1).flatten(0, 1)
    cos, sin = axial_cos_sin(grid, 8, dtype=torch.float64)
    assert cos.shape == (12, 4)
    by_row, by_column = (
        cos_sin(axis.flatten(), inverse_frequencies(4), dtype=torch.float64)[0] for axis in (rows, columns)
    )
    assert torch.equal(cos, torch.cat((by_row, by_column), dim=-1))
    q, k = torch.randn(2, 12, 8, generator=generator, dtype=torch.float64)
    tables = (cos, sin), axial_cos_sin(grid + torch.tensor([10, 20]), 8, dtype=torch.float64)
    scores = [apply_rotary_emb(q, *t, interleaved=True) @ apply_rotary_emb(k, *t, interleaved=True).T for t in tables]
    torch.testing.assert_close(*scores, rtol=1e-10, atol=1e-10)
    with pytest.raises(ValueError, match=r"rotary_dim is 6 and positions have 2 coordinates.*multiple of 4"):
        axial_cos_sin(grid, 6)


def test_sectioned_tables_are_those_of_transformers():
    peer = json.loads((ROOT / "tests" / "data" / "transformers_rope.json").read_text())["sectioned"]
    tables = sectioned_cos_sin(torch.tensor(peer["positions"]), 16, sections=peer["sections"], dtype=torch.float64)
    for table, expected in zip(tables, (peer["cos"], peer["sin"]), strict=True):
        torch.testing.assert_close(table, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=5.1e-10)  # 9 digits


def test_sectioned_tables_of_text_are_the_plain_ones():
    positions = torch.arange(5)
    sectioned = sectioned_cos_sin(positions[:, None].expand(5, 3), 16, sections=(2, 3, 3))
    for ours, plain in zip(sectioned, cos_sin(positions, inverse_frequencies(16)), strict=True):
        assert torch.equal(ours, plain)
    with pytest.raises(ValueError, match=r"sections are \(2, 3\), rotary_dim is 16, positions have 3 coordinates"):
        sectioned_cos_sin(torch.zeros(5, 3), 16, sections=(2, 3))
    with pytest.raises(ValueError, match="must add up to rotary_dim // 2"):
        sectioned_cos_sin(torch.zeros(5, 2), 16, sections=(2, 3))
    with pytest.raises(TypeError, match="tables are float32 or float64"):
        sectioned_cos_sin(torch.zeros(5, 2), 16, sections=(4, 4), dtype=torch.bfloat16)


def test_float16_positions_really_would_merge():
    """The number in the error text: bfloat16 merges 256 and 257 already, float16 2048 and 2049."""
    assert torch.tensor(2049).half() == torch.tensor(2048).half()
    assert torch.tensor(2049).bfloat16() == torch.tensor(2048).bfloat16()


def test_several_coordinates_take_the_base():
    positions = torch.tensor([[3, 5], [2, 0]])
    tables = axial_cos_sin(positions, 8, base=100.0)
    torch.testing.assert_close(tables[0][:, 2:], cos_sin(positions[:, 1], inverse_frequencies(4, base=100.0))[0])
    tables = sectioned_cos_sin(positions, 8, sections=(2, 2), base=100.0)
    torch.testing.assert_close(tables[1][:, 2:], cos_sin(positions[:, 1], inverse_frequencies(8, base=100.0))[1][:, 2:])


def test_results_follow_the_positions_not_the_default_device():
    positions = torch.arange(6).view(3, 2)
    angles = [decay.partial_sums, decay.relative_upper_bound, decay.cosine_sum]
    with torch.device("meta"):
        found = [*axial_cos_sin(positions, 8), *sectioned_cos_sin(positions, 8, sections=(2, 2))]
        found += [f(positions, dim=8) for f in angles] + [decay.cosine_sum_limit(positions)]
        found += [scaling.longrope_scaling(8, factors=[1] * 4, factor=2, original_max_position_embeddings=8)[0]]
        x = torch.zeros(2**17, 8, dtype=torch.bfloat16, device="cpu")
        tables = (torch.zeros(2**17, 4, device="cpu") for _ in range(2))
        found += [apply_rotary_emb(x, *tables, interleaved=False)]
    assert {t.device.type for t in found} == {"cpu"}
    assert inverse_frequencies(8, device="meta").device.type == "meta"


def test_a_compiler_can_follow_the_tables():
    def rotate(x, places):
        tables = axial_cos_sin(places, 8)
        return apply_rotary_emb(x, *tables, interleaved=True), inverse_frequencies(4)

    x, places = torch.ones(3, 8), torch.arange(6).view(3, 2)
    compiled = torch.compile(rotate, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(x, places), rotate(x, places))
