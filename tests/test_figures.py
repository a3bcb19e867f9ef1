"""The plotted data against closed forms and the plain loops; the stored SVG files against a fresh drawing."""

import math

import numpy as np
import pytest
import torch

import figures
from figures.__main__ import OUT, all_figures, svg
from figures.rotation import score_tables
from figures.sinusoidal import clock, closest_codes, diagonal_share
from figures.style import WIDTH
from rope_lib import reference


def axes(figure):
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def test_wavelengths():
    line = axes(figures.draw_wavelengths(dim=16, base=100))[0].lines[0]
    expected = [2 * math.pi * 100 ** (2 * i / 16) for i in range(8)]
    assert line.get_ydata() == pytest.approx(expected, rel=1e-12)


def test_heat_map_is_the_plain_loop():
    image = axes(figures.draw_sinusoidal_heatmap(length=9, dim=6))[0].images[0].get_array()
    assert np.allclose(image, [reference.sinusoidal_encoding(m, 6) for m in range(9)], rtol=0, atol=1e-12)


def test_binary_clock():
    digits, waves = clock(32, 5)
    assert [int("".join(map(str, row[::-1])), 2) for row in digits] == list(range(32))
    assert ((waves > 0.5) == digits).all()
    assert np.allclose(waves[:, 0], digits[:, 0])
    above, below = (ax.images[0].get_array() for ax in axes(figures.draw_binary_clock()))
    assert np.array_equal(above, digits.T)
    assert np.array_equal(below, waves.T)


def test_similarity_is_the_product_of_codes():
    line = axes(figures.draw_code_similarity(dims=(8,), reach=20))[0].lines[0]
    zero = np.array(reference.sinusoidal_encoding(0, 8))
    products = [zero @ reference.sinusoidal_encoding(k, 8) / 4 for k in range(-20, 21)]
    assert list(line.get_xdata()) == list(range(-20, 21))
    assert line.get_ydata() == pytest.approx(products, abs=1e-12)


def test_projected_similarity():
    plain, first, second = (ax.images[0].get_array() for ax in axes(figures.draw_projected_similarity()))
    codes = np.array([reference.sinusoidal_encoding(m, 64) for m in range(64)])
    assert np.allclose(plain, codes @ codes.T, rtol=0, atol=1e-11)
    shares = [diagonal_share(torch.tensor(np.array(table))) for table in (plain, first, second)]
    assert shares[0] == pytest.approx(1, abs=1e-12)
    assert max(shares[1:]) < 0.5


def test_diagonal_share_of_known_tables():
    position = torch.arange(5.0, dtype=torch.float64)
    assert diagonal_share(position[:, None] - position) == pytest.approx(1)
    assert diagonal_share(position[:, None] + position) == pytest.approx(0)


def test_nearest_twin():
    for dim, line in zip((2, 4), axes(figures.draw_nearest_twin(length=800, dims=(2, 4)))[0].lines, strict=True):
        gaps = [
            math.dist(reference.sinusoidal_encoding(0, dim), reference.sinusoidal_encoding(k, dim))
            for k in range(1, 800)
        ]
        expected = np.minimum.accumulate(gaps) / math.sqrt(dim // 2)
        assert line.get_ydata() == pytest.approx(expected, abs=1e-12)
    assert (closest_codes(10_000, 64) == closest_codes(10_000, 64)[0]).all()  # no pair is nearer than neighbours
    assert closest_codes(800, 2)[709] == pytest.approx(2 * abs(math.sin(355)), rel=1e-6)


def test_relative_angle_shows_one_angle_twice():
    arcs = [ax.lines[-1].get_xydata() for ax in axes(figures.draw_relative_angle())]
    spans = [np.angle(complex(*arc[-1]) / complex(*arc[0])) for arc in arcs]
    # q is 0.3 rad behind k, and m - n = 2 steps of pi / 9.
    assert spans == pytest.approx([2 * math.pi / 9 - 0.3] * 2, abs=1e-12)
    tips = [
        [note.xy for note in ax.texts if note.get_text().startswith("$f")] for ax in axes(figures.draw_relative_angle())
    ]
    for (m, n), (tip_q, tip_k) in zip(((3, 1), (6, 4)), tips, strict=True):
        q, k = (np.exp(1j * 0.35), 0.8 * np.exp(1j * 0.65))
        assert complex(*tip_q) == pytest.approx(q * np.exp(1j * m * math.pi / 9))
        assert complex(*tip_k) == pytest.approx(k * np.exp(1j * n * math.pi / 9))


def test_solutions():
    orbits = [ax.lines[-1].get_xydata() @ [1, 1j] for ax in axes(figures.draw_solutions(zeta=1.1, steps=4))]
    rotation, reflection, scaled = orbits
    assert np.allclose(rotation[1:] / rotation[:-1], np.exp(1j * math.pi / 7))
    assert np.allclose(reflection[2:], reflection[:-2])
    assert np.allclose(reflection[1], reflection[0].conjugate())
    assert np.allclose(scaled[1:] / scaled[:-1], 1.1 * np.exp(1j * math.pi / 7))


def test_aliases_meet_at_whole_positions_only():
    slow, fast, dots = (line.get_xydata() for line in axes(figures.draw_aliases())[0].lines)
    whole = np.isclose(slow[:, 0], slow[:, 0].round())
    assert np.allclose(slow[whole], fast[whole], rtol=0, atol=1e-9)
    assert np.abs(slow[~whole, 1] - fast[~whole, 1]).max() > 1
    assert np.allclose(dots[:, 1], np.cos(0.5 * np.arange(9)))


def test_basis_images():
    tips = [note.xy for note in axes(figures.draw_basis_images(angle=0.6))[0].texts if "cos" in note.get_text()]
    assert np.allclose(tips, [(math.cos(0.6), math.sin(0.6)), (-math.sin(0.6), math.cos(0.6))])


def test_rotation_blocks():
    for m, ax in zip((0, 7), axes(figures.draw_rotation_blocks(positions=(0, 7), dim=4, base=10)), strict=True):
        shown = np.ma.filled(ax.images[0].get_array(), np.nan)
        columns = [reference.rotate([float(j == r) for r in range(4)], m, interleaved=True, base=10) for j in range(4)]
        expected = np.array(columns).T
        assert np.isnan(shown[:2, 2:]).all()
        assert np.isnan(shown[2:, :2]).all()
        for block in (slice(0, 2), slice(2, 4)):
            assert np.allclose(shown[block, block], expected[block, block], rtol=0, atol=1e-12)


def test_scores_of_rotations_that_do_not_commute_are_not_relative():
    commuting, other = (diagonal_share(torch.tensor(t)) for t in score_tables(length=24, seed=0))
    assert commuting == pytest.approx(1, abs=1e-12)
    assert other < 0.9
    for ax, table in zip(axes(figures.draw_not_relative()), score_tables(length=24, seed=0), strict=True):
        assert np.array_equal(ax.images[0].get_array(), table)


@pytest.fixture(scope="module")
def drawn():
    return all_figures()


def test_stored_svg_files_are_up_to_date(drawn):
    stored = {path.stem: path.read_text(encoding="utf-8") for path in OUT.glob("*.svg")}
    assert set(stored) == set(drawn)
    for name, figure in drawn.items():
        assert svg(figure) == stored[name], f"{name}.svg is stale: run `make figures`"


def test_house_style(drawn):
    for name, figure in drawn.items():
        assert figure.get_figwidth() == WIDTH, name
        assert figure._suptitle is None, name
        for ax in axes(figure):
            together = ax.get_shared_x_axes().get_siblings(ax)  # ax itself and what shares its x axis
            labelled = figure._supxlabel is not None or any(other.get_xlabel() for other in together)
            assert labelled or not (ax.axison and len(ax.get_xticks())), f"{name}: an x axis says nothing"
