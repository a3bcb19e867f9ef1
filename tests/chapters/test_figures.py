"""The plotted data against closed forms and the plain loops; the stored SVG files against a fresh drawing."""

import functools
import hashlib
import json
import math
import re
import shutil
from itertools import combinations, pairwise

import numpy as np
import pytest
import torch
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Wedge
from matplotlib.text import Text

import figures.decay
import figures.evidence
import figures.family
import figures.layouts
import figures.linear
import figures.longer
import figures.order
import figures.precision
import figures.quick
import figures.rotation
import figures.sinusoidal
import figures.speed
from figures import files
from figures.files import (
    COLOURS,
    DARK_PAGE,
    OUT,
    all_figures,
    functions,
    narrow_figures,
    origin,
    picture,
    pictures_in_chapters,
    svg,
)  # fmt: skip
from figures.layouts import VECTOR
from figures.linear import linear_weights
from figures.palette import HUES
from figures.rotation import score_tables
from figures.sinusoidal import clock
from figures.style import MAP, NARROW_WIDTH, SIGNED, WIDTH, narrow_form
from lab import published, traffic
from lab.extensions import EXTENSIONS
from lab.precision import angle_errors
from lab.similarity import closest_codes, diagonal_share
from rope_lib.theory import reference
from rope_lib.theory.matrices import rotation_matrix
from tests import oracles
from tests.conftest import CI, ROOT
from tests.conftest import contrast as on_screen

DRAWINGS = {"book_map", "entry_points", "where_it_sits"}  # they show no data


def axes(figure):
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]


def test_wavelengths():
    line = axes(figures.sinusoidal.draw_wavelengths(dim=16, base=100))[0].lines[0]
    expected = [2 * math.pi * 100 ** (2 * i / 16) for i in range(8)]
    assert line.get_ydata() == pytest.approx(expected, rel=1e-12)


def test_heat_map_is_the_plain_loop():
    image = axes(figures.sinusoidal.draw_sinusoidal_heatmap(length=9, dim=6))[0].images[0].get_array()
    assert np.allclose(image, [reference.sinusoidal_encoding(m, 6) for m in range(9)], rtol=0, atol=1e-12)


def test_turning_digits():
    """A hand points down or to the left where its digit is 1."""
    [ax] = axes(figures.sinusoidal.draw_turning_digits())
    hands = [line.get_xydata() for line in ax.lines if len(line.get_xydata()) == 2]
    assert len(hands) == 24
    for (x, y), (to_x, to_y) in hands:
        m, bit = round(x), round(-y)
        across, up = to_x - x, to_y - y
        second_half = across < -1e-9 or (abs(across) < 1e-9 and up < 0)
        assert second_half == bool(m >> bit & 1)
        assert math.hypot(across, up) == pytest.approx(0.34)
    assert [text.get_text() for text in ax.texts] == [f"{m:03b}" for m in range(8)]


def test_binary_clock():
    digits, waves = clock(32, 5)
    assert [int("".join(map(str, row[::-1])), 2) for row in digits] == list(range(32))
    assert ((waves > 0.5) == digits).all()
    assert np.allclose(waves[:, 0], digits[:, 0])
    above, below = (ax.images[0].get_array() for ax in axes(figures.sinusoidal.draw_binary_clock()))
    assert np.array_equal(above, digits.T)
    assert np.array_equal(below, waves.T)


def test_similarity_is_the_product_of_codes():
    line = axes(figures.sinusoidal.draw_code_similarity(dims=(8,), reach=20))[0].lines[0]
    zero = np.array(reference.sinusoidal_encoding(0, 8))
    products = [zero @ reference.sinusoidal_encoding(k, 8) / 4 for k in range(-20, 21)]
    assert list(line.get_xdata()) == list(range(-20, 21))
    assert line.get_ydata() == pytest.approx(products, abs=1e-12)


def test_projected_similarity():
    plain, first, second = (ax.images[0].get_array() for ax in axes(figures.sinusoidal.draw_projected_similarity()))
    codes = np.array([reference.sinusoidal_encoding(m, 64) for m in range(64)])
    assert np.allclose(plain, codes @ codes.T, rtol=0, atol=1e-11)
    shares = [diagonal_share(torch.tensor(np.array(table))) for table in (plain, first, second)]
    assert shares[0] == pytest.approx(1, abs=1e-12)
    assert max(shares[1:]) < 0.5


def test_nearest_twin():
    for dim, line in zip(
        (2, 4), axes(figures.sinusoidal.draw_nearest_twin(length=800, dims=(2, 4)))[0].lines, strict=True
    ):
        gaps = [
            math.dist(reference.sinusoidal_encoding(0, dim), reference.sinusoidal_encoding(k, dim))
            for k in range(1, 800)
        ]
        expected = np.minimum.accumulate(gaps) / math.sqrt(dim // 2)
        assert line.get_ydata() == pytest.approx(expected, abs=1e-12)
    assert (closest_codes(10_000, 64) == closest_codes(10_000, 64)[0]).all()  # no pair is nearer than neighbours
    assert closest_codes(800, 2)[709] == pytest.approx(2 * abs(math.sin(355)), rel=1e-6)


def test_shuffled_attention_moves_rows_and_columns_together():
    first, second = (ax.images[0].get_array() for ax in axes(figures.order.draw_shuffled_attention()))
    assert np.allclose(second, first[::-1, ::-1], rtol=0, atol=1e-7)
    assert not np.allclose(second, first, rtol=0, atol=0.05)


def test_prefix_orders():
    one, two = (line.get_ydata() for line in axes(figures.order.draw_prefix_orders())[0].lines)
    assert np.ptp(one) < 1e-14
    assert len(set(two.round(6))) == 24


def test_three_scores():
    none, added, rotated = (ax.images[0].get_array() for ax in axes(figures.order.draw_three_scores()))
    assert np.ptp(none) < 1e-6
    assert np.allclose(rotated[1:, 1:], rotated[:-1, :-1], rtol=0, atol=1e-5)
    assert np.ptp(rotated) > 1
    assert diagonal_share(torch.tensor(np.array(added))) < 0.9


def test_decay_bounds_are_the_plain_loop():
    for dim, line in zip(
        (8, 12, 16), axes(figures.decay.draw_decay_bound(dims=(8, 12, 16), reach=9))[0].lines[::2], strict=True
    ):
        loop = [np.mean(np.abs(oracles.partial_sums(delta, dim))) for delta in range(10)]
        assert line.get_ydata() == pytest.approx(loop, rel=1e-12)
    curve, start, level, half = (
        line.get_ydata() for line in axes(figures.decay.draw_decay_long(dim=8, reach=50))[0].lines
    )
    assert curve == pytest.approx([np.mean(np.abs(oracles.partial_sums(delta, 8))) for delta in range(1, 51)])
    assert [start[0], level[0], half[0]] == pytest.approx([2.5, math.sqrt(4 * math.pi) / 3, 0.5])


def test_decay_families_are_the_plain_loop():
    """Also with other families than the book's, and with more of them than there are colours."""
    left, right = ([line.get_ydata() for line in ax.lines] for ax in axes(figures.decay.draw_decay_families()))
    assert left[1] == pytest.approx(right[1])  # base 10000 and d = 128 are in both panels
    families = {"bases": (50.0, 1e2, 1e4, 1e6), "dims": (4, 8)}
    panels = axes(figures.decay.draw_decay_families(**families))
    settings = [[(128, base) for base in families["bases"]], [(dim, 1e4) for dim in families["dims"]]]
    for panel, family in zip(panels, settings, strict=True):
        for line, (dim, base) in zip(panel.lines, family, strict=True):
            first = np.mean(np.abs(oracles.partial_sums(1, dim, base))) / ((dim / 2 + 1) / 2)
            assert line.get_ydata()[0] == pytest.approx(first)
    centres, found = figures.decay.middle_and_band(8, 100.0, reach=40, bins=4)
    loop = {m: np.mean(np.abs(oracles.partial_sums(m, 8, 100.0))) / 2.5 for m in range(1, 40)}
    edges = [1, 3, 6, 16, 40]
    assert centres.tolist() == pytest.approx([math.sqrt(a * (b - 1)) for a, b in pairwise(edges)])
    for column, (a, b) in zip(found.T.tolist(), pairwise(edges), strict=True):
        values = [loop[m] for m in range(a, b)]
        assert column == pytest.approx([np.median(values), min(values), max(values)])


def test_bounds_hold_and_the_score_is_the_plain_loop():
    bound, triangle, score = axes(figures.decay.draw_bound_and_score(dim=16, reach=100))[0].lines
    assert (score.get_ydata() <= bound.get_ydata()).all()
    assert (score.get_ydata() <= triangle.get_ydata()).all()
    q = torch.randn(16, generator=torch.Generator().manual_seed(0), dtype=torch.float64).tolist()
    loop = [abs(oracles.score(q, q, int(delta), 0, interleaved=True)) for delta in score.get_xdata()]
    assert score.get_ydata() == pytest.approx(loop)
    h = [q[2 * i] ** 2 + q[2 * i + 1] ** 2 for i in range(8)]
    step = max(abs(b - a) for a, b in zip(h, [*h[1:], 0], strict=True))
    sums = [sum(map(abs, oracles.partial_sums(int(delta), 16))) for delta in bound.get_xdata()]
    assert bound.get_ydata() == pytest.approx([step * total for total in sums])


def test_cosine_decay_and_its_limit():
    few, many, limit, logarithm, _ = axes(figures.decay.draw_cosine_decay(dims=(8, 2048)))[0].lines
    loop = [sum(math.cos(delta * reference.inverse_frequency(i, 8)) for i in range(4)) / 4 for delta in few.get_xdata()]
    assert few.get_ydata() == pytest.approx(loop, abs=1e-9)
    near = limit.get_xdata() <= 300
    assert np.abs(many.get_ydata() - limit.get_ydata())[near].max() < 0.01
    middle = (limit.get_xdata() > 10) & (limit.get_xdata() < 500)
    assert np.abs(limit.get_ydata() - logarithm.get_ydata())[middle].max() < 0.02


def test_any_distance_can_win():
    for r, line in zip((0, 50, 200), axes(figures.decay.draw_any_distance())[0].lines, strict=True):
        assert line.get_ydata().argmax() == r
        assert line.get_ydata()[r] == pytest.approx(1, rel=1e-12)


def test_linear_weights_are_the_plain_loop():
    tables = linear_weights(6, 4)
    q, k = torch.randn(2, 6, 4, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    features = [[[math.exp(v) if v < 0 else v + 1 for v in row] for row in x.tolist()] for x in (q, k)]
    for m in range(6):
        rotated = [
            oracles.score(features[0][m], features[1][n], m, n, interleaved=True) if n <= m else 0 for n in range(6)
        ]
        plain = [oracles.dot(features[0][m], features[1][n]) if n <= m else 0 for n in range(6)]
        assert tables["none"][m].tolist() == pytest.approx([w / sum(plain) for w in plain])
        assert tables["both"][m].tolist() == pytest.approx([w / sum(rotated) for w in rotated])
        assert tables["numerator"][m].tolist() == pytest.approx([w / sum(plain) for w in rotated])
    drawn = axes(figures.linear.draw_linear_weights())
    panel = drawn[2].images[0].get_array()
    assert panel[40, 3] == pytest.approx(41 * linear_weights()["numerator"][40, 3].item())
    assert panel.mask[3, 40]
    for bars, weights in zip(drawn[3:], linear_weights().values(), strict=True):
        assert [bar.get_height() for bar in bars.patches] == pytest.approx((41 * weights[40, :41]).tolist())
        assert bars.texts[0].get_text() == f"{int((weights[40] < 0).sum())} of 41 negative"


def test_row_sums():
    random, equal, _ = (line.get_ydata() for line in axes(figures.linear.draw_row_sums(length=200))[0].lines)
    loop = [sum(math.cos(delta * reference.inverse_frequency(i, 64)) for i in range(32)) / 32 for delta in range(200)]
    assert equal == pytest.approx([sum(loop[: m + 1]) / (m + 1) for m in range(200)])
    assert random[0] == pytest.approx(1)
    assert random[-1] < 0.9


def test_a_state_is_what_its_pairs_wrote():
    """The plain loops, for three pairs in two dimensions; one key reads its value and the others' share."""
    one, state, answer = axes(figures.linear.draw_state(dim=2, pairs=3, read=2))
    draw = torch.randn(2, 3, 2, generator=torch.Generator().manual_seed(4), dtype=torch.float64).tolist()
    keys, values = [[x / math.hypot(*key) for x in key] for key in draw[0]], draw[1]
    written = [[[x * y for y in value] for x in key] for key, value in zip(keys, values, strict=True)]
    assert np.allclose(one.images[0].get_array(), written[2])
    total = [[sum(pair[i][j] for pair in written) for j in range(2)] for i in range(2)]
    assert np.allclose(state.images[0].get_array(), total)
    stored, read = ([bar.get_height() for bar in bars] for bars in answer.containers)
    assert stored == pytest.approx(values[2])
    assert read == pytest.approx([oracles.dot(keys[2], column) for column in zip(*total, strict=True)])


def test_recall_is_the_plain_loop():
    """The same draws, and every weight and product written out."""
    softmax, identity, elu, _ = axes(figures.linear.draw_recall(counts=(2, 6), dim=4))[0].lines
    assert list(softmax.get_xdata()) == [2, 6]
    generator, loop = torch.Generator().manual_seed(0), {"softmax": [], "identity": [], "elu": []}
    for count in (2, 6):
        texts = zip(*torch.randn(2, 2048 // count, count, 4, generator=generator).tolist(), strict=True)
        right = dict.fromkeys(loop, 0)
        for keys, values in texts:
            keys = [[2 * x / math.hypot(*key) for x in key] for key in keys]
            values = [[x / math.hypot(*value) for x in value] for value in values]
            features = [[math.exp(x) if x < 0 else x + 1 for x in key] for key in keys]
            for j in range(count):
                weights = {
                    "softmax": [math.exp(oracles.dot(keys[j], key) / 2) for key in keys],
                    "identity": [oracles.dot(keys[j], key) for key in keys],
                    "elu": [oracles.dot(features[j], feature) for feature in features],
                }
                for name, row in weights.items():
                    output = [oracles.dot(row, column) for column in zip(*values, strict=True)]
                    fits = [oracles.dot(output, value) for value in values]
                    right[name] += fits[j] == max(fits)
        for name, number in right.items():
            loop[name].append(number / (2048 // count * count))
    for line, shares in zip((softmax, identity, elu), loop.values(), strict=True):
        assert line.get_ydata() == pytest.approx(shares, abs=0.001)  # float32 may decide a tie differently


def test_score_family():
    panels = axes(figures.family.draw_score_family())
    titled = {panels.index(ax): ax.get_title(loc="left") for ax in panels if ax.get_title(loc="left")}
    equal, scores = (
        {name: np.array(panels[place + down].images[0].get_array()) for place, name in titled.items()}
        for down in (0, 4)
    )
    assert len(scores) == 8
    dotted = [line.get_xydata() for ax in panels for line in ax.lines]
    assert len(dotted) == 2
    assert all((ends[:, 1] - ends[:, 0] == 8).all() for ends in dotted)  # query less key
    steps = np.abs(np.subtract.outer(np.arange(24), np.arange(24)))
    assert np.allclose(scores["ALiBi"] - scores["no position"], -0.25 * (steps - steps.mean()))
    five = scores["T5"] - 4 * scores["no position"]  # T5 does not divide by the root of d = 16
    assert np.allclose(five[1:, 1:], five[:-1, :-1])
    generator, double = torch.Generator().manual_seed(5), torch.float64
    q, k = (
        sum(c * torch.randn(rows, 16, generator=generator, dtype=double) for c, rows in ((1, 1), (0.5, 24))).tolist()
        for _ in range(2)
    )
    turned = [[oracles.score(a, b, m, n, interleaved=True) / 4 for n, b in enumerate(k)] for m, a in enumerate(q)]
    for name, loop in (("no position", [[oracles.dot(a, b) / 4 for b in k] for a in q]), ("RoPE", turned)):
        assert np.allclose(scores[name], loop - np.mean(loop)), name
    # One word repeated: nothing without a position, and stripes under every encoding but TUPE.
    assert np.abs(equal.pop("no position")).max() < 1e-12
    striped = {name: np.allclose(table[1:, 1:], table[:-1, :-1]) for name, table in equal.items()}
    assert [name for name in striped if not striped[name]] == ["TUPE"]
    assert min(np.ptp(table) for table in equal.values()) > 1
    for ax in panels:
        low, high = ax.images[0].get_clim()
        assert low == -high


def test_entry_points_name_each_method_where_it_acts():
    figure = figures.family.draw_entry_points()
    renderer = FigureCanvasAgg(figure).get_renderer()
    texts = [text for text in axes(figure)[0].texts if text.get_text()]
    frames = [text.get_window_extent(renderer) for text in texts]
    assert not any(one.overlaps(other) for one, other in combinations(frames, 2))
    assert all(figure.bbox.containsx(frame.x0) and figure.bbox.containsx(frame.x1) for frame in frames)
    assert all(figure.bbox.containsy(frame.y0) and figure.bbox.containsy(frame.y1) for frame in frames)
    places = {text.get_text(): text.get_position() for text in texts}
    tips = {note.xy for note in axes(figure)[0].texts if not note.get_text()}
    rows = {"word": ("$x_m$", "$x_n$"), "turn": ("$W_q$", "$W_k$"), "key": ("$W_k$",), "value": ("$W_v$",)}
    for entry, names in {**rows, "score": ("softmax",)}.items():
        text, _, ends = figures.family.ENTRIES[entry]
        assert text in places
        for end, name in zip(ends, names, strict=True):
            assert end in tips
            assert abs(end[1] - places[name][1]) < 0.15, (entry, name)


def test_t5_buckets():
    for both, line in zip((False, True), axes(figures.family.draw_t5_buckets())[0].lines, strict=True):
        loop = [oracles.t5_bucket(int(distance), bidirectional=both) for distance in line.get_xdata()]
        assert list(line.get_ydata()) == loop


def test_clipping_bleu_shows_the_printed_numbers():
    ax = axes(figures.family.draw_clipping_bleu())[0]
    assert [bar.get_height() for bar in ax.patches] == [12.5, 25.5, 25.8, 25.9, 25.8, 25.9, 25.8]
    assert [tick.get_text() for tick in ax.get_xticklabels()] == ["0", "1", "2", "4", "16", "64", "256"]
    assert ax.get_ylim()[0] == 0


def test_speed_pictures_show_the_stored_results():
    found = json.loads((ROOT / "lab" / "results" / "speed-cpu.json").read_text())
    half = next(
        row["ratios"]
        for row in found["rotation"]
        if row["shape"] == [1, 32, 4096, 128] and (row["dtype"], row["interleaved"]) == ("bfloat16", False)
    )
    panel = axes(figures.speed.draw_rotation_speed())[1]
    names = [tick.get_text() for tick in panel.get_yticklabels()]
    assert set(names) == set(half) - {"clone", "copy_"}
    assert dict(zip(names, panel.lines[1].get_xdata(), strict=True)) == {name: half[name] for name in names}
    square, straight, softmax, _, ours = axes(figures.speed.draw_linear_attention_speed())[0].lines
    rows = found["linear_attention"]
    for guide, line, times in ((square, softmax, 4), (straight, ours, 2)):  # what a text twice as long takes
        assert guide.get_ydata()[-1] == line.get_ydata()[-1]
        lengths, drawn = np.array(guide.get_xdata()), np.array(guide.get_ydata())
        assert np.log(drawn[1:] / drawn[:-1]) == pytest.approx(np.log(times) * np.log2(lengths[1:] / lengths[:-1]))
    assert list(softmax.get_ydata()) == [row["forward"]["softmax"] for row in rows]
    assert list(ours.get_ydata()) == [row["forward"]["rotated"] for row in rows]


def test_traffic_shows_what_was_counted():
    panel = axes(figures.speed.draw_traffic())[0]
    bars = [(bar.get_width(), label.get_text()) for bar, label in zip(panel.patches, panel.texts, strict=True)]
    counted = [(row["copies"], f"{row['copies']:.1f}; {row['kernels']} kernels") for row in traffic.rotation_traffic()]
    assert sorted(bars) == sorted(counted)


def test_positions_are_counted_as_each_row_says():
    boxes = [text for text in axes(figures.layouts.draw_positions())[0].texts if text.get_text().isdigit()]
    rows = {}
    for box in boxes:
        rows.setdefault(box.get_position()[1], []).append(int(box.get_text()))
    everything, parents = torch.arange(7), (None, 0, 1, 2, 2, 3, 4)  # of the tree, by place
    depth = [0]
    for parent in parents[1:]:
        depth.append(depth[parent] + 1)
    assert list(rows.values()) == [
        everything.tolist(),
        everything.tolist(),
        [*range(3), *range(4)],
        (everything - 2).clamp(min=0).tolist(),
        depth,
    ]


def test_extensions_are_the_stages_and_their_lines():
    [ax] = axes(figures.longer.draw_extensions())
    dotted = [line for line in ax.lines if line.get_linestyle() == ":"]
    paths = [line for line in ax.lines if line.get_linestyle() != ":"]
    stages = [tuple(zip(*line.get_data(), strict=True)) for line in paths]
    assert stages == [extension.stages for extension in EXTENSIONS]
    obey = [0.8 < extension.used_over_rule < 1.25 for extension in EXTENSIONS]
    assert [line.get_marker() == "o" for line in paths] == obey
    places = [float(text.get_text()) for text in ax.texts if text.get_text()[0] == "0"]
    for place, line in zip(places, dotted, strict=True):
        for length, base in zip(*line.get_data(), strict=True):
            assert length * base**-place == pytest.approx(2 * math.pi)


def test_scores_on_a_plane_are_the_plain_sums():
    maps = [ax.images[0].get_array() for ax in axes(figures.rotation.draw_plane_scores())]
    for way, shown in zip(("axial", "random", "golden"), maps, strict=True):
        speeds = figures.rotation.plane_speeds(way)
        for row, column in ((15, 15), (0, 30), (7, 19)):
            angles = [(row - 15) * down + (column - 15) * right for down, right in speeds.tolist()]
            assert shown[row, column] == pytest.approx(sum(map(math.cos, angles)) / 32), way
    corners = maps[0][1:, 1:] + maps[0][:-1, :-1] - maps[0][1:, :-1] - maps[0][:-1, 1:]
    assert abs(corners).max() < 1e-12
    golden = figures.rotation.plane_speeds("golden")
    steps = np.diff(np.unwrap(2 * np.arctan2(*golden.T))) / 2  # directions have no sign
    assert np.allclose(steps % np.pi, np.pi * (5**0.5 - 1) / 2)


def test_what_commutes_is_what_the_theorem_says():
    """Theorem 6.3, entry by entry: the block of two pairs is (a, b; -b, a) if their speeds are equal, else zero."""
    for ax, (name, speeds) in zip(axes(figures.layouts.draw_commuting()), figures.layouts.SPEEDS.items(), strict=True):
        shown = {(int(y), int(x)): text.get_text() for text in ax.texts for x, y in [text.get_position()]}
        equal = {(i, j) for i in range(4) for j in range(4) if speeds[i] == speeds[j]}
        assert {(row // 2, column // 2) for row, column in shown} == equal, name
        assert len(shown) == 4 * len(equal)
        for i, j in equal:
            a, b, below, last = (shown[2 * i + row, 2 * j + column] for row in (0, 1) for column in (0, 1))
            if speeds[i]:
                assert (below, last) == ("\u2212" + b, a)
            else:
                assert len({a, b, below, last}) == 4
    for speeds in figures.layouts.SPEEDS.values():
        turned = rotation_matrix(3, torch.tensor(speeds, dtype=torch.float64)).numpy()
        for number in np.moveaxis(figures.layouts.commuting(speeds), -1, 0):
            assert np.allclose(number @ turned, turned @ number)


def test_layouts_are_the_plain_loop():
    for position, column in zip((0, 4), (axes(figures.layouts.draw_layouts())[i::2] for i in (0, 1)), strict=True):
        turned = reference.rotate(list(VECTOR), position, interleaved=True, base=100)
        interleaved, half_split = ([bar.get_height() for bar in ax.patches] for ax in column)
        assert interleaved == pytest.approx(turned)
        assert half_split == pytest.approx(turned[0::2] + turned[1::2])
        for ax, names in zip(column, ("AABBCCDD", "ABCDABCD"), strict=True):
            assert [tick.get_text()[-1] for tick in ax.get_xticklabels()] == list(names)
            colours = {name: bar.get_facecolor() for name, bar in zip(names, ax.patches, strict=True)}
            assert [colours[name] for name in names] == [bar.get_facecolor() for bar in ax.patches]
            assert len(set(colours.values())) == 4


def test_angle_errors_are_those_measured():
    ax = axes(figures.precision.draw_angle_errors(reach=1000))[0]
    line, [half_a_turn] = ax.lines[2], [text for text in ax.texts if text.get_text() == "half a turn"]
    assert line.get_ydata() == pytest.approx(angle_errors([int(m) for m in line.get_xdata()], torch.float32))
    assert half_a_turn.xy[1] == ax.lines[-1].get_ydata()[0] == math.pi


def test_relative_angle_shows_one_angle_twice():
    for ax, (m, n) in zip(axes(figures.rotation.draw_relative_angle()), ((3, 1), (6, 4)), strict=True):
        assert_shows_both_words(ax, m, n)
        assert {text.get_text() for text in ax.texts} >= {f"$f(q, {m})$", f"$f(k, {n})$"}


def test_one_pair_alone_goes_round():
    titles = []
    for ax, delta in zip(axes(figures.decay.draw_one_pair()), (0, 2, 5, 10), strict=True):
        titles.append(ax.get_title().partition("score ")[2])
        if delta:
            assert_shows_both_words(ax, delta, 0)
    scores = [
        oracles.dot(reference.rotate([1.8, 0.4], d * 10000 ** (-6 / 128), interleaved=True), [1.2, 0.8])
        for d in (0, 2, 5, 10)
    ]
    assert titles == [f"{score:.2f}".replace("-", "−") for score in scores]


def assert_shows_both_words(ax, m, n):
    speed = reference.inverse_frequency(3, 128)
    q, k = ((1.8 + 0.4j) * np.exp(1j * m * speed), (1.2 + 0.8j) * np.exp(1j * n * speed))
    assert [complex(*note.xy) for note in ax.texts if not note.get_text()] == pytest.approx([q, k])
    assert [complex(*line.get_xydata()[1]) for line in ax.lines] == [1.8 + 0.4j, 1.2 + 0.8j]
    of_q, of_k, wedge = sorted(ax.patches, key=lambda patch: isinstance(patch, Wedge) or -patch.get_radius())
    assert (of_q.get_radius(), of_k.get_radius()) == pytest.approx((abs(q), abs(k)))
    begin, end = (np.exp(1j * math.radians(angle)) for angle in (wedge.theta1, wedge.theta2))
    either = [(q / abs(q), k / abs(k)), (k / abs(k), q / abs(q))]
    assert any((begin, end) == pytest.approx(ends) for ends in either)
    assert (wedge.theta2 - wedge.theta1) % 360 <= 180


def test_solutions():
    orbits = [ax.lines[-1].get_xydata() @ [1, 1j] for ax in axes(figures.rotation.draw_solutions(zeta=1.1, steps=4))]
    rotation, reflection, scaled = orbits
    assert np.allclose(rotation[1:] / rotation[:-1], np.exp(1j * math.pi / 7))
    assert np.allclose(reflection[2:], reflection[:-2])
    assert np.allclose(reflection[1], reflection[0].conjugate())
    assert np.allclose(scaled[1:] / scaled[:-1], 1.1 * np.exp(1j * math.pi / 7))


def test_aliases_meet_at_whole_positions_only():
    slow, fast, dots = (line.get_xydata() for line in axes(figures.rotation.draw_aliases())[0].lines)
    whole = np.isclose(slow[:, 0], slow[:, 0].round())
    assert np.allclose(slow[whole], fast[whole], rtol=0, atol=1e-9)
    assert np.abs(slow[~whole, 1] - fast[~whole, 1]).max() > 1
    assert np.allclose(dots[:, 1], np.cos(0.5 * np.arange(9)))


def test_basis_images():
    tips = [
        note.xy for note in axes(figures.rotation.draw_basis_images(angle=0.6))[0].texts if "cos" in note.get_text()
    ]
    assert np.allclose(tips, [(math.cos(0.6), math.sin(0.6)), (-math.sin(0.6), math.cos(0.6))])


def test_complex_numbers():
    """Arcs end at the angles of the arrows; the thick line on the real axis is as long as the scalar product."""
    q, k = 1.5 + 2j, 2 - 0.5j
    for ax, factor in zip(axes(figures.rotation.draw_complex_numbers(q=q, k=k)), (k, k.conjugate()), strict=True):
        ends = [complex(*line.get_xydata()[-1]) for line in ax.lines[2:5]]
        assert np.angle(ends) == pytest.approx(np.angle([q, factor, q * factor]), abs=1e-12)
        tips = [complex(*note.xy) for note in ax.texts if not note.get_text()]
        assert tips[:3] == pytest.approx([q, factor, q * factor])
    score = ax.lines[5].get_xydata()
    assert score == pytest.approx(np.array([[0, 0], [1.5 * 2 + 2 * -0.5, 0]]))


def test_rotation_blocks():
    left, right = axes(figures.rotation.draw_rotation_blocks(positions=(0, 7), dim=4, base=10, shown=7))
    columns = [reference.rotate([float(j == r) for r in range(4)], 7, interleaved=True, base=10) for j in range(4)]
    shown = [float(text.get_text().replace("−", "-")) for text in left.texts]
    assert np.allclose(np.reshape(shown, (4, 4)), np.array(columns).T, rtol=0, atol=0.005)
    hands = iter(right.lines)
    for pair in range(2):
        for m in (0, 7):
            (x, x_end), (y, y_end) = next(hands).get_data()
            angle = np.angle(complex(x_end - x, y - y_end))  # rows are counted downwards
            assert np.exp(1j * angle) == pytest.approx(np.exp(1j * m * reference.inverse_frequency(pair, 4, base=10)))


def test_scores_of_rotations_that_do_not_commute_are_not_relative():
    commuting, other = (diagonal_share(torch.tensor(t)) for t in score_tables(length=24, seed=0))
    assert commuting == pytest.approx(1, abs=1e-12)
    assert other < 0.9
    for ax, table in zip(axes(figures.rotation.draw_not_relative()), score_tables(length=24, seed=0), strict=True):
        assert np.array_equal(ax.images[0].get_array(), table)


def test_cases_are_right_answers_with_a_standard_error():
    """Right answers of 1536: their shares are what is printed, and the errors those of a binomial law."""
    ax = axes(figures.evidence.draw_cases())[0]
    dots = [line.get_xdata()[0] for line in ax.lines if line.get_marker() == "o"]
    right = [int(text.get_text().split(" of ")[0]) for text in ax.texts]
    names = [label.get_text() for label in ax.get_yticklabels()]
    assert [round(100 * count / 1536, 2) for count in right] == dots
    assert dict(zip(names, dots, strict=True)) == {
        name: test for name, (_, test) in (published.CAIL | published.CAIL_OTHERS).items()
    }
    for bar, count in zip(ax.collections, right, strict=True):
        low, high = bar.get_segments()[0][:, 0]
        share = count / 1536
        assert high - low == pytest.approx(2 * 100 * math.sqrt(share * (1 - share) / 1536), abs=1e-3)


def test_stages_show_the_printed_numbers():
    ax = axes(figures.evidence.draw_stages())[0]
    shown = {text.get_text(): text.xy for text in ax.texts}
    assert shown == {f"stage {stage}": (length, best) for stage, length, *_, best in published.STAGES}
    assert [(*line.get_xdata(), *line.get_ydata()) for line in ax.lines] == list(shown.values())


def test_two_exams_show_the_printed_numbers():
    ax = axes(figures.evidence.draw_two_exams())[0]
    names = [label.get_text() for label in ax.get_yticklabels()]
    dots = [line.get_xdata()[0] for line in ax.lines if len(line.get_xdata()) == 1]
    expected = {f"{name}, validation set": f1 for name, f1 in published.QQP_VALIDATION.items()}
    expected |= {"RoFormer, validation set": 86.4, "BERT, test set": 71.2}
    assert dict(zip(names, dots, strict=True)) == expected
    *beside, arrow, between = ax.texts
    assert [float(text.get_text()) for text in beside] == dots
    assert {arrow.xy[0], arrow.xyann[0]} == {71.2, 86.4}
    assert between.get_text() == "15.2"


def test_each_figure_has_a_test_of_its_data():
    tests = "".join(path.read_text(encoding="utf-8") for path in (ROOT / "tests").glob("*/test_*.py"))
    for name in sorted(functions("draw_").keys() - DRAWINGS):
        assert f".draw_{name}(" in tests, (
            f"draw_{name} has no test of its data: compare the plotted numbers with a closed form or the plain loop, "
            "in tests/chapters/test_figures.py"
        )


def test_each_figure_is_stored_in_both_forms():
    names = functions("draw_")
    missing = {f"{name}{form}.svg" for name in names for form in ("", ".narrow")} ^ {
        path.name for path in OUT.glob("*.svg")
    }
    assert not missing, f"run `make figures`: {sorted(missing)} are not there, or of no function"


# -- As they are stored ------------------------------------------------------------------------------------------------
#
# A figure is stored three times: wide and narrow as SVG for the pages, as PNG in its chapter for GitHub and JupyterLab.


@pytest.fixture(scope="module")
def shown():
    return pictures_in_chapters()


# On a new machine none is remembered, and to draw them all takes minutes: in CI that is done beside the other tests.
@pytest.mark.parametrize("name", functions("draw_"))
@(pytest.mark.slow if CI else lambda test: test)
def test_all_three_forms_are_as_it_is_drawn_now(name, shown, cache):
    """It is drawn if its code, its data or a form has changed since it was seen so here: pytest remembers."""
    forms = [stored_svg(name).encode(), stored_svg(f"{name}.narrow").encode(), shown.get(name, b"")]
    state = hashlib.sha256(b"\0".join([origin(name).encode(), *forms])).hexdigest()
    if cache.get(f"figures/{name}", None) == state:
        return
    for form, figure in both_forms(name).items():
        assert svg(figure) == stored_svg(form), f"{form}.svg is stale: run `make figures NAME=draw_{name}`"
    again = picture(all_figures([name])[name])  # one that was saved has other places
    assert shown.get(name, again) == again, f"the picture of draw_{name} in its chapter is stale: run `make chapters`"
    cache.set(f"figures/{name}", state)


def test_each_figure_stands_in_a_chapter(shown):
    assert set(functions("draw_")) - set(shown) == {"book_map"}  # it stands in a page that is no notebook


def test_a_change_is_seen_whether_of_code_colour_or_data(monkeypatch, tmp_path):
    """Comments and docstrings are no change."""
    for name in ("figures", "lab"):
        shutil.copytree(ROOT / name, tmp_path / name)
    monkeypatch.setattr(files, "ROOT", tmp_path)
    before = {name: origin(name) for name in ("decay_bound", "rescue", "rescue_map")}

    def differs(path, old, new):
        file = tmp_path / path
        text = file.read_text(encoding="utf-8")
        assert old in text
        file.write_text(text.replace(old, new), encoding="utf-8")
        files.program.cache_clear()
        return [name for name in before if origin(name) != before[name]]

    assert differs("figures/decay.py", "RoFormer's figure 2 for", "The second figure of RoFormer for") == []
    assert differs("lab/opened/rescue.py", "1500", "2500") == ["rescue_map"]  # of a package, what it imports
    assert differs("lab/trained/rescue.json", "1", "2") == ["rescue", "rescue_map"]
    assert differs("figures/decay.py", "BLUE", "GREEN") == ["decay_bound", "rescue", "rescue_map"]
    assert differs("figures/palette.py", "#0072B2", "#0072B3") == ["decay_bound", "rescue", "rescue_map"]
    files.program.cache_clear()


def stored_svg(name):
    return (OUT / f"{name}.svg").read_text(encoding="utf-8")


@functools.cache
def both_forms(name):
    """One figure, drawn once for all that is asked of it."""
    return all_figures([name]) | narrow_figures([name])


@pytest.fixture(scope="module", params=sorted(functions("draw_")))
def drawn(request):
    return both_forms(request.param)


def written(figure):
    return [text for text in figure.findobj(Text) if text.get_text().strip() and text.get_visible()]


@pytest.mark.slow
def test_house_style(drawn):
    for name, figure in drawn.items():
        assert figure.get_figwidth() == (NARROW_WIDTH if name.endswith(".narrow") else WIDTH)
        assert figure._suptitle is None
        for ax in axes(figure):
            together = ax.get_shared_x_axes().get_siblings(ax)  # ax itself and what shares its x axis
            labelled = figure._supxlabel is not None or any(other.get_xlabel() for other in together)
            assert labelled or not (ax.axison and len(ax.get_xticks())), f"{name}: an x axis says nothing"


@pytest.mark.slow
def test_every_figure_has_a_form_for_a_phone(drawn):
    for name, figure in drawn.items():
        renderer = FigureCanvasAgg(figure).get_renderer()
        figure.draw_without_rendering()
        for text in written(figure):
            assert text.get_fontsize() >= 8, (name, text.get_text())
        names = [part for ax in figure.axes for part in (*ax.texts, ax.title, ax._left_title)]
        names += [axis.label for ax in figure.axes if ax.axison for axis in (ax.xaxis, ax.yaxis)]
        for text in (text for text in names if text.get_text().strip()):
            place = text.get_window_extent(renderer)
            off = max(-place.x0, place.x1 - figure.bbox.width, -place.y0, place.y1 - figure.bbox.height)
            assert off < 3, (name, text.get_text())


@pytest.mark.slow
def test_a_form_for_a_phone_shows_the_same_numbers(drawn):
    def numbers(figure):
        found = [np.ma.filled(image.get_array(), np.nan) for ax in axes(figure) for image in ax.images]
        found += [line.get_ydata() for ax in axes(figure) for line in ax.lines]
        return sorted(np.round(np.asarray(part, float), 9).tobytes() for part in found)

    name, narrow = drawn
    assert name in DRAWINGS or numbers(drawn[name]) == numbers(drawn[narrow])


def contrast(one, other):
    """As of colours on a screen."""
    return on_screen(*([255 * part for part in to_rgb(colour)] for colour in (one, other)))


LIGHT, DARK = "#ffffff", "#14181e"  # the theme's pages


@pytest.mark.parametrize(("name", "hue"), HUES.items(), ids=HUES)
def test_colours_are_readable_on_light_and_dark_pages(name, hue):
    """WCAG AA: 4.5 for text, 3 for lines, computed from the colours that are used."""
    assert contrast(hue.line, LIGHT) >= 3 or name == "purple"
    assert contrast(hue.text, LIGHT) >= 4.5
    assert contrast(hue.on_dark, DARK) >= 4.5


@pytest.mark.slow
def test_text_is_readable_on_light_and_dark_pages(drawn):
    for name, figure in drawn.items():
        for text in written(figure):
            colour = to_hex(text.get_color())
            if (
                (name.startswith("shuffled_attention") or "needles" in name) and text.axes and text in text.axes.texts
            ):  # a number in its cell
                number = float(text.get_text()) / (100 if "needles" in name else 1)
                *cell, share = MAP(number)
                for page, seen in ((LIGHT, colour), (DARK, "#ced6dd" if colour == "#000000" else colour)):
                    behind = [share * c + (1 - share) * p for c, p in zip(cell, to_rgb(page), strict=True)]
                    assert contrast(seen, behind) >= 4.5, text.get_text()
            else:  # black turns white on a dark page
                assert colour == "#000000" or (colour in COLOURS and contrast(colour, LIGHT) >= 4.5), colour


def test_a_signed_map_is_clear_in_the_middle():
    assert [SIGNED(x)[3] for x in (0.0, 1.0)] == [1, 1]
    assert SIGNED(0.5)[3] < 0.01


@pytest.mark.slow
def test_signed_quantities_have_one_map_and_the_others_another(drawn):
    for figure in drawn.values():
        for image in (image for ax in axes(figure) for image in ax.images):
            low, high = image.get_clim()
            values = np.ma.compressed(np.ma.masked_invalid(image.get_array()))
            if values.min() < 0:
                assert image.get_cmap() is SIGNED or image.get_cmap() == SIGNED
                assert low == -high
            else:
                assert image.get_cmap() == (MAP if low == 0 else SIGNED)


def test_variables_stand_for_every_colour_of_a_name():
    text = svg(all_figures(["any_distance"])["any_distance"])
    assert "var(--rb-blue, #0072b2)" in text  # the line
    assert "var(--rb-blue, #005f99)" in text  # its name
    assert not re.search(r"(?<!, )#(?:0072b2|005f99|d55e00|b34700|009e73|00734f)", text.replace(DARK_PAGE, ""))


def test_the_narrow_entry_points_stay_on_the_page():
    with narrow_form():
        figure = figures.family.draw_entry_points()
    renderer = FigureCanvasAgg(figure).get_renderer()
    frames = [text.get_window_extent(renderer) for text in axes(figure)[0].texts if text.get_text()]
    assert not any(one.overlaps(other) for one, other in combinations(frames, 2))


def test_the_idea_shows_one_angle_three_times():
    rows, planes = np.split(np.array(figures.quick.draw_idea(places=(0, 3)).axes), 2)
    for row, ax, n in zip(rows, planes, (0, 3), strict=True):
        words = [text.get_text() for text in row.texts[::2]]
        assert (words.index("red"), words.index("car")) == (n, n + 2)
        assert_shows_both_words(ax, n + 2, n)


def test_values_are_not_turned_where_rope_sits():
    followers = {start: [b for a, b in figures.quick.ARROWS if a == start] for start in figures.quick.BOXES}
    assert followers["W_q"] == ["turn q"]
    assert followers["W_k"] == ["turn k"]
    assert followers["W_v"] == ["sum"]
    texts = {text.get_text() for text in axes(figures.quick.draw_where_it_sits())[0].texts}
    assert {box[0] for box in figures.quick.BOXES.values()} <= texts


def test_hands_show_what_was_met_and_what_a_longer_text_adds():
    for ax, pair in zip(figures.longer.draw_hands(pairs=(0, 50, 63)).axes, (0, 50, 63), strict=True):
        speed = reference.inverse_frequency(pair, 128)
        met, more = (np.unwrap(np.arctan2(line.get_ydata(), line.get_xdata())) for line in ax.lines[:2])
        assert met[-1] == pytest.approx(min(4096 * speed, 2 * math.pi), abs=1e-6)
        reached = min(8 * 4096 * speed, 2 * math.pi)
        assert np.ptp(more) == pytest.approx(reached - min(4096 * speed, 2 * math.pi), abs=1e-6)
        assert f"pair {pair}\n{4096 * speed / (2 * math.pi):.3g} turns" == ax.get_title()
        [hand] = ax.texts
        assert hand.xy == pytest.approx((0.85 * math.cos(4096 * speed), 0.85 * math.sin(4096 * speed)), abs=1e-9)


def test_turns_in_training():
    ax = axes(figures.longer.draw_turns_in_training(dim=16))[0]
    lines = ax.lines
    expected = [4096 * 10_000 ** (-2 * i / 16) / (2 * math.pi) for i in range(8)]
    assert lines[0].get_ydata() == pytest.approx(expected, rel=1e-12)
    for dot, turns, said in zip(lines[1::2], (lines[0].get_ydata(), lines[2].get_ydata()), ax.texts, strict=False):
        below = [i for i in range(8) if turns[i] < 1]
        assert (dot.get_xdata()[0], dot.get_ydata()[0]) == (below[0], turns[below[0]])
        assert said.get_text().endswith(f"\n{len(below)} of 8 pairs below one turn")


def test_scaled_speeds_are_the_plain_loop():
    rounding = 5e-10  # to nine digits
    curves = {line.get_label(): line.get_ydata() for line in axes(figures.longer.draw_scaled_speeds(dim=16))[0].lines}
    assert curves["linear"] == pytest.approx([8] * 8, abs=rounding)
    assert curves["NTK-aware"] == pytest.approx([8 ** (2 * i / 14) for i in range(8)], abs=rounding)
    speed = [reference.ntk_by_parts_frequency(i, 16, 8.0, 4096, 32.0, 1.0) for i in range(8)]
    plain = [reference.inverse_frequency(i, 16) for i in range(8)]
    assert curves["by parts"] == pytest.approx([a / b for a, b in zip(plain, speed, strict=True)], abs=rounding)
    assert curves["YaRN"][[0, -1]] == pytest.approx([1, 8], abs=rounding)


def test_unmet_angles():
    lines = axes(figures.longer.draw_unmet_angles(dim=32, length=100, factor=2))[0].lines
    for line, pair in zip(lines, (15, 7), strict=True):
        speed = reference.inverse_frequency(pair, 32)
        assert line.get_ydata() == pytest.approx([math.cos(x * speed) for x in line.get_xdata()], abs=1e-12)
        assert line.get_xdata()[-1] == 200
