import json
import math
from fractions import Fraction

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch._subclasses import FakeTensorMode

from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.frequencies import axial_cos_sin, sectioned_cos_sin
from rope_lib.theory import reference
from tests.conftest import ROOT

dims = st.integers(1, 128).map(lambda pairs: 2 * pairs)
ONE_ROUNDING = 3.1e-8  # half a unit in the last place of float32 below 1 is 2^-25; angles are known to 10^6 * 2^-53


def exact_tables(position, speeds):
    return [math.cos(position * speed) for speed in speeds], [math.sin(position * speed) for speed in speeds]


# -- Speeds ------------------------------------------------------------------------------------------------------------


@given(dims, st.floats(1.5, 1e7))
def test_frequencies_are_the_definition(dim, base):
    loop = [reference.inverse_frequency(i, dim, base) for i in range(dim // 2)]
    assert inverse_frequencies(dim, base=base).tolist() == pytest.approx(loop, rel=1e-14)


def test_frequencies_by_hand():
    assert inverse_frequencies(4, base=100).tolist() == pytest.approx([1, 0.1], rel=1e-15)
    assert inverse_frequencies(2).tolist() == [1.0]
    assert inverse_frequencies(4).tolist() == pytest.approx([1, 0.01], rel=1e-15)  # 10000 is the base of the papers
    assert inverse_frequencies(4).dtype == torch.float64


def test_numbers_of_other_kinds_are_numbers():
    expected = inverse_frequencies(8, base=100.0)
    for dim, base in ((np.int64(8), 100), (8, np.float32(100)), (8, Fraction(100)), (np.int32(8), np.int64(100))):
        assert torch.equal(inverse_frequencies(dim, base=base), expected)
    assert torch.equal(inverse_frequencies(8, base=10**30), inverse_frequencies(8, base=1e30))  # beyond int64


# -- Tables ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("base", [1e4, 5e5, 1e6])
@pytest.mark.parametrize("position", [0, 1, -3, 4095, 131_071, 999_999, 1_000_000])
def test_tables_are_right_to_one_rounding_up_to_a_million(position, base, device):
    speeds = [reference.inverse_frequency(i, 128, base) for i in range(64)]
    tables = cos_sin(torch.tensor(position, device=device), inverse_frequencies(128, base=base, device=device))
    for table, exact in zip(tables, exact_tables(position, speeds), strict=True):
        assert table.device.type == device.type
        assert table.tolist() == pytest.approx(exact, abs=ONE_ROUNDING)


@given(st.floats(-1e5, 1e5), dims)
def test_float64_tables_are_the_loop(position, dim):
    tables = cos_sin(torch.tensor(position, dtype=torch.float64), inverse_frequencies(dim), dtype=torch.float64)
    speeds = [reference.inverse_frequency(i, dim) for i in range(dim // 2)]
    for table, exact in zip(tables, exact_tables(position, speeds), strict=True):
        assert table.dtype == torch.float64
        assert table.tolist() == pytest.approx(exact, abs=5e-11)  # a speed is known to 2^-52, so an angle to 2.2e-11


def test_shapes_follow_the_positions():
    inv_freq = inverse_frequencies(8)
    for shape in ((), (5,), (2, 5), (0,), (2, 1, 5)):
        cos, sin = cos_sin(torch.zeros(shape, dtype=torch.int64), inv_freq)
        assert cos.shape == sin.shape == (*shape, 4)
        assert cos.dtype == sin.dtype == torch.float32


def test_positions_of_every_exact_type_give_the_same_tables():
    expected = cos_sin(torch.arange(100), inverse_frequencies(8))
    whole = (torch.int8, torch.int16, torch.int32, torch.uint8, torch.uint16, torch.uint32, torch.uint64)
    for dtype in (*whole, torch.float32, torch.float64):
        assert all(map(torch.equal, cos_sin(torch.arange(100).to(dtype), inverse_frequencies(8)), expected))


def test_far_whole_numbers_are_exact_where_the_text_says_so():
    """2^24 - 1 in float32 is the integer; 2^53 - 1 among the integers is the float."""
    speeds = [reference.inverse_frequency(i, 8) for i in range(4)]
    for position, dtype in ((2**24 - 1, torch.float32), (2**53 - 1, torch.int64), (2**53 - 1, torch.float64)):
        tables = cos_sin(torch.tensor(position, dtype=dtype), torch.tensor(speeds, dtype=torch.float64))
        for table, exact in zip(tables, exact_tables(position, speeds), strict=True):
            assert table.tolist() == pytest.approx(exact, abs=ONE_ROUNDING)  # the same product of the same two floats


def test_what_is_no_number_stays_none():
    cos, sin = cos_sin(torch.tensor([math.nan, math.inf, 0.0]), inverse_frequencies(4))
    assert cos.isnan().tolist() == sin.isnan().tolist() == [[True, True], [True, True], [False, False]]


def test_gradients_reach_positions_and_speeds(generator):
    positions = torch.rand(5, generator=generator, dtype=torch.float64).requires_grad_()
    speeds = torch.rand(3, generator=generator, dtype=torch.float64).requires_grad_()
    assert torch.autograd.gradcheck(lambda m, w: cos_sin(m, w, dtype=torch.float64), (positions, speeds))


# -- Several coordinates -----------------------------------------------------------------------------------------------


def test_axial_tables_turn_each_group_by_its_coordinate(generator):
    """Scores depend on the differences of row and column alone, and each group of dimensions on one of them."""
    rows, columns = torch.meshgrid(torch.arange(3), torch.arange(4), indexing="ij")
    grid, inv_freq = torch.stack((rows, columns), dim=-1).flatten(0, 1), inverse_frequencies(4, base=100.0)
    tables = axial_cos_sin(grid, inv_freq, dtype=torch.float64)
    for m, n, cos, sin in zip(rows.flatten(), columns.flatten(), *tables, strict=True):
        angles = [m.item(), m.item() * 0.1, n.item(), n.item() * 0.1]
        assert cos.tolist() == pytest.approx([math.cos(a) for a in angles], abs=1e-14)
        assert sin.tolist() == pytest.approx([math.sin(a) for a in angles], abs=1e-14)
    q, k = torch.randn(2, 12, 8, generator=generator, dtype=torch.float64)
    moved = axial_cos_sin(grid + torch.tensor([10, 20]), inv_freq, dtype=torch.float64)
    scores = [
        apply_rotary_emb(q, *t, interleaved=True) @ apply_rotary_emb(k, *t, interleaved=True).T for t in (tables, moved)
    ]
    torch.testing.assert_close(*scores, rtol=1e-10, atol=1e-10)


def test_axial_tables_of_any_number_of_coordinates():
    inv_freq = inverse_frequencies(6)
    places = torch.arange(24).view(2, 4, 3)
    for axes in (1, 2, 3):
        tables = axial_cos_sin(places[..., :axes], inv_freq)
        for table, plain in zip(tables, cos_sin(places, inv_freq), strict=True):
            assert torch.equal(table, torch.cat([plain[..., axis, :] for axis in range(axes)], dim=-1))


def test_sectioned_tables_are_those_of_transformers():
    peer = json.loads((ROOT / "tests" / "data" / "transformers_rope.json").read_text())["sectioned"]
    positions = torch.tensor(peer["positions"])
    tables = sectioned_cos_sin(
        positions, inverse_frequencies(16), sections=peer["sections"], interleaved_sections=False, dtype=torch.float64
    )
    for table, expected in zip(tables, (peer["cos"], peer["sin"]), strict=True):
        torch.testing.assert_close(table, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=5.1e-10)  # 9 digits


def test_sections_by_hand():
    """Two pairs by time, none by row, one by column."""
    speeds = torch.tensor([1.0, 0.5, 0.25], dtype=torch.float64)
    places = torch.tensor([[[1.0, 7.0, 2.0]], [[3.0, 7.0, 4.0]]])
    cos, sin = sectioned_cos_sin(places, speeds, sections=(2, 0, 1), interleaved_sections=False, dtype=torch.float64)
    angles = torch.tensor([[[1, 0.5, 0.5]], [[3, 1.5, 1]]], dtype=torch.float64)
    torch.testing.assert_close(cos, angles.cos(), rtol=0, atol=1e-15)
    torch.testing.assert_close(sin, angles.sin(), rtol=0, atol=1e-15)


@pytest.mark.parametrize(
    ("sections", "axes"),  # which coordinate each pair turns by, read off Qwen3-VL's code
    [((4, 2, 2), "thwthwtt"), ((3, 3, 2), "thwthwth"), ((5, 1, 1), "thwtttt"), ((2, 1), "tht"), ((3,), "ttt")],
)
def test_interleaved_sections_by_hand(sections, axes, generator):
    speeds = inverse_frequencies(2 * len(axes))
    places = torch.randint(1, 40, (5, len(sections)), generator=generator)
    cos, sin = sectioned_cos_sin(places, speeds, sections=sections, interleaved_sections=True, dtype=torch.float64)
    angles = torch.stack([places[:, "thw".index(axis)] * speed for axis, speed in zip(axes, speeds, strict=True)], -1)
    torch.testing.assert_close(cos, angles.cos(), rtol=0, atol=1e-12)
    torch.testing.assert_close(sin, angles.sin(), rtol=0, atol=1e-12)


DIFFUSERS = json.loads((ROOT / "tests" / "data" / "diffusers.json").read_text(encoding="utf-8"))
FRAMES, ROWS, COLUMNS = (torch.arange(n).double() for n in DIFFUSERS["grid"])


def on_the_trained_grid(model, axis, count):
    """Evenly from the crop's first row (or column), in steps of that of its last, divided by the count."""
    (first, last), n = (corner[axis] for corner in DIFFUSERS["crops"][model]), len(count)
    return first + count * (last * (n - 1) / n - first) / (n - 1)


def middle(count):
    return count - (len(count) - len(count) // 2)


VIDEO = (FRAMES, ROWS, COLUMNS)
OF_DIFFUSERS = {  # dimensions of each axis, base, coordinates
    "Flux": ((16, 56, 56), 1e4, VIDEO),
    "Flux 2": ((32, 32, 32, 32), 2000, VIDEO),
    "HunyuanVideo": ((16, 56, 56), 256, VIDEO),
    "Wan": ((44, 42, 42), 1e4, VIDEO),
    "Qwen-Image": ((16, 56, 56), 1e4, (FRAMES, middle(ROWS), middle(COLUMNS))),
    "CogVideoX": ((16, 24, 24), 1e4, (FRAMES, *(on_the_trained_grid("CogVideoX", *it) for it in enumerate(VIDEO[1:])))),
    "CogVideoX 1.5": ((16, 24, 24), 1e4, VIDEO),
    "HunyuanDiT": ((44, 44), 1e4, [on_the_trained_grid("HunyuanDiT", *it) for it in enumerate(VIDEO[1:])]),
    "Cosmos": (
        (44, 42, 42),
        (1e4 * 2 ** (44 / 42), 1e4, 1e4),
        (FRAMES * 24 / 30, ROWS, COLUMNS),
    ),  # time: NTK-aware by 2
    "CogView 4": ((64, 64), 1e4, [count * 256 // len(count) for count in VIDEO[1:]]),  # stretched, in whole steps
    "GLM-Image": ((64, 64), 1e4, VIDEO[1:]),
}


@pytest.mark.parametrize("model", DIFFUSERS["models"])
def test_axes_of_unequal_shares_are_those_of_diffusers(model):
    axes, base, coordinates = OF_DIFFUSERS[model]
    places = torch.cartesian_prod(*coordinates)[DIFFUSERS["first_token"] :: DIFFUSERS["every"]]
    if model == "Flux 2":  # its fourth coordinate counts the words of a text; here it was the frame
        places = torch.cat((places, places[:, :1]), dim=-1)
    if model == "HunyuanDiT":  # the column turns the first half
        places = places.flip(-1)
    bases = base if isinstance(base, tuple) else [base] * len(axes)
    speeds = torch.cat([inverse_frequencies(n, base=b) for n, b in zip(axes, bases, strict=True)])
    sections = [n // 2 for n in axes]
    tables = sectioned_cos_sin(places, speeds, sections=sections, interleaved_sections=False, dtype=torch.float64)
    theirs = DIFFUSERS["models"][model]
    angle = float(places.abs().max())  # theirs is rounded to float32 twice: the speed, and the product
    for ours, name in zip(tables, ("cos", "sin"), strict=True):
        wanted = torch.tensor(theirs[name], dtype=torch.float64)
        torch.testing.assert_close(ours, wanted, rtol=0, atol=2**-24 * (3 * angle + 2))
    if len(set(axes)) == 1:
        for short, whole in zip(
            axial_cos_sin(places, speeds[: axes[0] // 2], dtype=torch.float64), tables, strict=True
        ):
            torch.testing.assert_close(short, whole)


@pytest.mark.parametrize("interleaved", [False, True])
def test_sectioned_tables_of_text_are_the_plain_ones(interleaved):
    positions, inv_freq = torch.arange(5), inverse_frequencies(16)
    for dtype in (torch.float32, torch.float64):
        settings = {"sections": [4, 2, 2], "interleaved_sections": interleaved, "dtype": dtype}
        sectioned = sectioned_cos_sin(positions[:, None].expand(5, 3), inv_freq, **settings)
        for ours, plain in zip(sectioned, cos_sin(positions, inv_freq, dtype=dtype), strict=True):
            assert ours.dtype == dtype
            assert torch.equal(ours, plain)
    default = sectioned_cos_sin(positions[:, None], inv_freq, sections=[8], interleaved_sections=False)
    assert {t.dtype for t in (*default, *axial_cos_sin(positions[:, None], inv_freq))} == {torch.float32}


# -- Devices and compilers ---------------------------------------------------------------------------------------------


def test_results_follow_their_inputs_not_the_default_device(device):
    positions = torch.arange(6, device=device).view(3, 2)

    def tables(inv_freq):
        sectioned = sectioned_cos_sin(positions, inv_freq, sections=(1, 3), interleaved_sections=False)
        return torch.stack([*cos_sin(positions[:, 0], inv_freq), *cos_sin(positions[:, 1], inv_freq), *sectioned])

    for inv_freq in (inverse_frequencies(8, device="cpu"), inverse_frequencies(8, device=device)):
        expected = tables(inv_freq)
        with torch.device("meta"):
            assert torch.equal(tables(inv_freq), expected)
            assert axial_cos_sin(positions, inv_freq)[0].device == expected.device == positions.device
        assert {t.device.type for t in cos_sin(positions.to("meta"), inv_freq)} == {"meta"}
        somewhere = sectioned_cos_sin(
            positions.to("meta"), inv_freq, sections=(1, 3), interleaved_sections=False
        )  # no value is waited for
        assert {(*t.shape, t.device.type) for t in somewhere} == {(3, 4, "meta")}


def test_speeds_live_where_they_are_asked_to(device):
    here = inverse_frequencies(8, device=device)
    assert here.dtype == torch.float64
    assert here.device.type == ("cpu" if device.type == "mps" else device.type)  # mps has no float64
    assert here.tolist() == inverse_frequencies(8).tolist()
    with torch.device("meta"):
        assert inverse_frequencies(8).device.type == "meta"
        assert inverse_frequencies(8, device="cpu").tolist() == here.tolist()
    assert inverse_frequencies(8, device="meta").device.type == "meta"


def test_speeds_for_an_apple_gpu_stay_on_the_cpu():
    """It has no float64. The devices are only pretended."""
    with FakeTensorMode():
        assert {name: inverse_frequencies(8, device=name).device.type for name in ("mps", "cuda")} == {
            "mps": "cpu",
            "cuda": "cuda",
        }


def test_a_compiler_can_follow_the_tables():
    def tables(places, inv_freq):
        sectioned = sectioned_cos_sin(places, inv_freq, sections=(1, 3), interleaved_sections=False)
        return axial_cos_sin(places, inv_freq), sectioned, inverse_frequencies(4)

    torch.compiler.reset()  # what other tests compiled counts towards a limit
    places, inv_freq = torch.arange(6).view(3, 2), inverse_frequencies(8)
    compiled = torch.compile(tables, fullgraph=True, backend="aot_eager")
    torch.testing.assert_close(compiled(places, inv_freq), tables(places, inv_freq))


# -- Errors ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("call", "error", "text"),
    [
        (lambda: inverse_frequencies(7), ValueError, "rotary_dim is 7; it must be positive and even"),
        (lambda: inverse_frequencies(0), ValueError, "rotary_dim is 0"),
        (lambda: inverse_frequencies(-4), ValueError, "rotary_dim is -4"),
        (lambda: inverse_frequencies(8.0), TypeError, "rotary_dim is 8.0; it must be an int"),
        (lambda: inverse_frequencies(True), TypeError, "rotary_dim is True"),
        (lambda: inverse_frequencies(8, base=1), ValueError, "base is 1; it must be a finite number above 1"),
        (lambda: inverse_frequencies(8, base=math.nan), ValueError, "base is nan"),
        (lambda: inverse_frequencies(8, base=math.inf), ValueError, "base is inf"),
        (lambda: inverse_frequencies(8, base=10**400), ValueError, "it must be a finite number above 1"),
        (lambda: inverse_frequencies(8, base="10000"), TypeError, "base is '10000'; it must be a number"),
    ],
)
def test_errors_of_the_speeds(call, error, text):
    with pytest.raises(error, match=text):
        call()


INV_FREQ = inverse_frequencies(8)
TABLES = {
    "cos_sin": cos_sin,
    "axial_cos_sin": axial_cos_sin,
    "sectioned_cos_sin": lambda *args, **settings: sectioned_cos_sin(
        *args, sections=(1, 3), interleaved_sections=False, **settings
    ),
}


@pytest.mark.parametrize("name", TABLES)
@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"positions": [[0, 1]]}, TypeError, r"positions is a list; it must be a tensor, e.g. torch.arange\(seq_len\)"),
        ({"positions": np.zeros((5, 2))}, TypeError, "positions is a ndarray"),
        ({"positions": torch.zeros(5, 2).to_sparse()}, TypeError, "positions is torch.sparse_coo; it must be a dense"),
        ({"positions": torch.zeros(5, 2).bfloat16()}, TypeError, "cannot tell position 256 from 257, nor float16 2048"),
        (
            {"positions": torch.zeros(5, 2).half()},
            TypeError,
            r"dtype torch.float16; .* did .to\(bfloat16\) or autocast",
        ),
        (
            {"positions": torch.zeros(5, 2).to(torch.float8_e4m3fn)},
            TypeError,
            "positions has dtype torch.float8_e4m3fn",
        ),
        ({"positions": torch.ones(5, 2).bool()}, TypeError, "positions has dtype torch.bool; .*a mask"),
        ({"positions": torch.zeros(5, 2).to(torch.complex128)}, TypeError, "positions has dtype torch.complex128"),
        ({"inv_freq": 10000.0}, TypeError, "inv_freq is a float; it must be a tensor.*is it the base"),
        ({"inv_freq": 8}, TypeError, "inv_freq is a int; .*or the dimension"),
        ({"inv_freq": [1.0, 0.1]}, TypeError, r"inv_freq is a list; .* e.g. inverse_frequencies\(rotary_dim\)"),
        ({"inv_freq": INV_FREQ.to_sparse()}, TypeError, "inv_freq is torch.sparse_coo; it must be a dense tensor"),
        ({"inv_freq": INV_FREQ.float()}, TypeError, r"inv_freq has dtype torch.float32; .*cast with .to\(...\)"),
        ({"inv_freq": INV_FREQ[None]}, ValueError, r"inv_freq has shape \(1, 4\); it must be \(rotary_dim // 2,\)"),
        ({"inv_freq": INV_FREQ[0]}, ValueError, r"inv_freq has shape \(\)"),
        ({"dtype": torch.bfloat16}, TypeError, "dtype is torch.bfloat16; tables are torch.float32 or torch.float64"),
        ({"dtype": torch.float16}, TypeError, "dtype is torch.float16"),
        ({"dtype": torch.int64}, TypeError, "dtype is torch.int64"),
        ({"dtype": torch.complex64}, TypeError, "dtype is torch.complex64"),
        ({"dtype": torch.float8_e5m2}, TypeError, "dtype is torch.float8_e5m2"),
        ({"dtype": "float32"}, TypeError, "dtype is 'float32'"),
        ({"dtype": float}, TypeError, "dtype is <class 'float'>"),
    ],
)
def test_errors_of_the_tables(name, changed, error, text):
    arguments = {"positions": torch.zeros(5, 2), "inv_freq": INV_FREQ, "dtype": torch.float32, **changed}
    with pytest.raises(error, match=text):
        TABLES[name](arguments.pop("positions"), arguments.pop("inv_freq"), **arguments)


@pytest.mark.parametrize(
    ("positions", "sections", "text"),
    [
        (torch.zeros(5, 3), (1, 3), r"sections are \(1, 3\), inv_freq has 4 entries, positions have 3 coordinates"),
        (torch.zeros(5, 2), (1, 2, 1), r"sections are \(1, 2, 1\), inv_freq has 4 entries, positions have 2"),
        (torch.zeros(5, 2), (2, 3), "must add up to the length of inv_freq"),
        (torch.zeros(3, 5), (1, 1, 2), "positions have 5 coordinates; there must be one section per coordinate"),
        (torch.tensor(3), (4,), "positions have 0 coordinates"),
        (torch.zeros(5, 2), (5, -1), r"sections are \(5, -1\)"),
        (torch.zeros(5, 2), (1.0, 3.0), r"sections are \(1.0, 3.0\)"),
    ],
)
def test_sections_fit_speeds_and_coordinates(positions, sections, text):
    with pytest.raises(ValueError, match=text):
        sectioned_cos_sin(positions, INV_FREQ, sections=sections, interleaved_sections=False)


def test_one_number_has_no_coordinates():
    with pytest.raises(
        ValueError, match=r"positions is one number; it must be \(..., axes\), e.g. one \(row, column\)"
    ):
        axial_cos_sin(torch.tensor(3), INV_FREQ)


@pytest.mark.parametrize("far", [2**24 + 1, 2**40 + 1, 1e5 / 3])
def test_coordinates_far_away_are_as_exact_as_positions(far):
    places = torch.tensor([[far, far + 1]], dtype=torch.float64 if isinstance(far, float) else torch.int64)
    speeds = inverse_frequencies(4)
    expected = cos_sin(places, speeds, dtype=torch.float64)
    for found, table in zip(axial_cos_sin(places, speeds, dtype=torch.float64), expected, strict=True):
        assert torch.equal(found, table.flatten(-2))
    sectioned = sectioned_cos_sin(places, speeds, sections=(1, 1), interleaved_sections=False, dtype=torch.float64)
    for found, table in zip(sectioned, expected, strict=True):
        assert torch.equal(found[0], table[0].diagonal())


@pytest.mark.parametrize("shape", [(0, 2), (3, 0, 2), (3, 0)])
def test_no_places_have_empty_tables(shape):
    for table in axial_cos_sin(torch.zeros(shape), inverse_frequencies(4)):
        assert table.shape == (*shape[:-1], 2 * shape[-1])
