"""Homework: the check names each planted mistake, right solutions pass, and students get no solutions."""

import json
import os
import re
import subprocess
import sys
from itertools import product

import nbformat
import pytest
import torch
from conftest import ROOT

from lab import experiments
from lab.mistakes import DIM, MISTAKES
from lectures.homework import __main__ as making
from lectures.homework import check
from lectures.teacher.numbers import numbers
from rope_lib import RotaryEmbedding, half_split_to_interleaved, interleaved_to_half_split, reference

LAYOUTS = pytest.mark.parametrize("interleaved", [True, False], ids=["interleaved", "half-split"])
KNOWN_TWICE = [{"factor": -1}, {"swapped": True}, {"factor": 0}]  # a table that a rotation can also be wrong by


def said(capsys, task, *functions):
    """The points, and what was printed, without line breaks."""
    points = task(*functions)
    return points, re.sub(r"\n {4}", " ", capsys.readouterr().out)


# -- The loops are the definitions of the library ----------------------------------------------------------------------


@LAYOUTS
def test_loops_are_those_of_the_reference(interleaved, generator):
    for dim, base in ((2, 10000.0), (6, 100.0), (16, 500000.0)):
        x = torch.randn(3, dim, generator=generator, dtype=torch.float64)
        positions = torch.tensor([0, 7, 999_999])
        cos, sin = check.tables_by_loop(positions, dim, base)
        [found] = check.rotation_by_loop(x, cos, sin, interleaved)
        for row, m, y in zip(x.tolist(), positions.tolist(), found, strict=True):
            expected = reference.rotate(row, m, interleaved=interleaved, base=base)
            torch.testing.assert_close(y, torch.tensor(expected, dtype=torch.float64), rtol=0, atol=1e-12)


def test_loops_are_those_of_the_library(generator):
    weight = torch.randn(24, 5, generator=generator, dtype=torch.float64)
    for back, convert in ((False, interleaved_to_half_split), (True, half_split_to_interleaved)):
        [found] = check.conversion_by_loop(weight, 6, back)
        assert torch.equal(found, convert(weight, head_dim=6, dim=0))
    q, k = torch.randn(2, 3, 7, 8, generator=generator, dtype=torch.float64)
    turned_q, turned_k = RotaryEmbedding(8, interleaved=True)(q, k, positions=torch.arange(7))
    found = check.cache_by_loop(q, k, (4, 1, 2))
    torch.testing.assert_close(found[-2], turned_q[:, 5:] @ turned_k.mT)
    torch.testing.assert_close(found[-1], turned_k)


# -- Right solutions, in several styles --------------------------------------------------------------------------------


def tables(positions, head_dim, base=10000.0):
    angles = positions.double()[:, None] * base ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    return angles.cos(), angles.sin()


def tables_of_complex_numbers(positions, head_dim, base=10000.0):
    speeds = torch.exp(
        -torch.arange(0, head_dim, 2, dtype=torch.float64) * (torch.tensor(base).double().log() / head_dim)
    )
    numbers = torch.polar(torch.ones(len(positions), head_dim // 2).double(), torch.outer(positions.double(), speeds))
    return numbers.real.float(), numbers.imag.float()


def tables_by_loops(positions, head_dim, base=10000.0):
    rows = [[m / base ** (2 * i / head_dim) for i in range(head_dim // 2)] for m in positions.tolist()]
    return [torch.tensor(rows, dtype=torch.float64).cos(), torch.tensor(rows, dtype=torch.float64).sin()]


@pytest.mark.parametrize("solution", [tables, tables_of_complex_numbers, tables_by_loops])
def test_right_tables_pass(solution, capsys):
    assert check.tables(solution) == 5
    assert capsys.readouterr().out.endswith("Task 1: 5 of 5\n")


def split(x, interleaved):
    return (x[..., 0::2], x[..., 1::2]) if interleaved else x.chunk(2, dim=-1)


def join(x0, x1, interleaved):
    return torch.stack((x0, x1), dim=-1).flatten(-2) if interleaved else torch.cat((x0, x1), dim=-1)


def swap(x, interleaved):
    x0, x1 = split(x, interleaved)
    return join(-x1, x0, interleaved)


def twice(table, interleaved):
    return join(table, table, interleaved)


def stacked(x, cos, sin, interleaved):
    x0, x1 = split(x, interleaved)
    return join(x0 * cos - x1 * sin, x0 * sin + x1 * cos, interleaved).to(x.dtype)


def by_rotate_half(x, cos, sin, interleaved):
    y = x.float() if x.dtype == torch.bfloat16 else x
    return (y * twice(cos, interleaved) + swap(y, interleaved) * twice(sin, interleaved)).type_as(x)


def as_complex_product(x, cos, sin, interleaved):
    pairs = torch.complex(*(part.contiguous().double() for part in split(x, interleaved)))
    turned = pairs * torch.complex(cos.double(), sin.double())
    return join(turned.real, turned.imag, interleaved).to(x.dtype)


def by_matrices(x, cos, sin, interleaved):
    matrices = torch.stack((cos, -sin, sin, cos), dim=-1).unflatten(-1, (2, 2)).to(torch.float32)
    pairs = torch.stack(split(x, interleaved), dim=-1).float()
    return join(*torch.einsum("wprc,...wpc->...wpr", matrices, pairs).unbind(-1), interleaved).to(x.dtype)


def by_loops(x, cos, sin, interleaved):
    y, half = torch.empty_like(x), x.shape[-1] // 2
    for word, i in product(range(x.shape[-2]), range(half)):
        a, b = (2 * i, 2 * i + 1) if interleaved else (i, i + half)
        c, s = cos[word, i], sin[word, i]
        y[..., word, a] = x[..., word, a] * c - x[..., word, b] * s
        y[..., word, b] = x[..., word, a] * s + x[..., word, b] * c
    return y


@pytest.mark.parametrize("solution", [stacked, by_rotate_half, as_complex_product, by_matrices, by_loops])
def test_right_rotations_pass(solution, capsys):
    both = [lambda *case, layout=layout: solution(*case, layout) for layout in (True, False)]
    assert check.rotation(*both) == 5
    assert capsys.readouterr().out.endswith("Task 2: 5 of 5\n")


def to_half_split(weight, head_dim):
    return weight.unflatten(0, (-1, head_dim // 2, 2)).transpose(1, 2).flatten(0, 2)


def to_interleaved(weight, head_dim):
    return weight.unflatten(0, (-1, 2, head_dim // 2)).transpose(1, 2).flatten(0, 2)


def test_right_conversions_pass(capsys):
    def by_index(weight, head_dim):
        heads = torch.arange(len(weight)).view(-1, head_dim)
        return weight[torch.cat((heads[:, 0::2], heads[:, 1::2]), dim=1).flatten()]

    def by_matrix(weight, head_dim):
        order = by_index(torch.arange(len(weight)), head_dim)
        return torch.eye(len(weight), dtype=weight.dtype)[order].T @ weight

    assert check.conversion(to_half_split, to_interleaved) == 5
    assert check.conversion(by_index, by_matrix) == 5
    assert capsys.readouterr().out.endswith("Task 3: 5 of 5\n")


def cached(  # right, unless it is asked for something else
    q, k, cache, *, offset=lambda past: past, query_offset=None, spread=1, keys_too=True, stack=None, keep=None,
    last=None, again=False, turn=stacked,
):  # fmt: skip
    past, new = (0 if cache is None else cache.shape[1]), q.shape[1]

    def at(start):
        return tables(start + spread * torch.arange(new), q.shape[-1])

    old = k[:, :0] if cache is None else cache
    turned_q = turn(q, *at((query_offset or offset)(past)), True) if query_offset is not False else q
    turned_k = turn(k, *at(offset(past)), True) if keys_too else k
    if again:
        old = turn(old, *tables(torch.arange(past), q.shape[-1]), True)
    seen = torch.cat((old, turned_k) if stack is None else stack(old, turned_k), dim=1)
    scores = turned_q @ seen.mT
    kept = seen if keep is None else keep(torch.cat((k[:, :0] if cache is None else cache, k), dim=1), turned_k)
    return (scores if last is None else last(scores, past)), kept


def test_right_caches_pass(capsys):
    def turns_all_and_keeps_the_last(q, k, cache):
        past = 0 if cache is None else cache.shape[1]
        cos, sin = tables(torch.arange(past + q.shape[1]), q.shape[-1])
        q, k = (stacked(x, cos[past:], sin[past:], True) for x in (q, k))
        keys = k if cache is None else torch.cat([cache, k], dim=-2)
        return torch.einsum("hqd,hkd->hqk", q, keys), keys

    assert check.cache(cached) == check.cache(turns_all_and_keeps_the_last) == 5
    assert capsys.readouterr().out.endswith("Task 4: 5 of 5\n")


def rope(d_k, theta, longest, x, positions, *, of_tables=tables, turn=stacked):
    cos, sin = (t.view(*positions.shape, -1) for t in of_tables(positions.flatten(), d_k, theta))
    return turn(x, cos, sin, True)


def test_right_run_rope_passes(capsys):
    assert check.run_rope(rope)
    assert capsys.readouterr().out == "run_rope: right.\n"


# -- Planted mistakes --------------------------------------------------------------------------------------------------


def with_speeds(speeds):
    def planted(positions, head_dim, base=10000.0):
        angles = positions.double()[:, None] * speeds(head_dim, base)
        return angles.cos(), angles.sin()

    return planted


def with_angles(change):
    def planted(positions, head_dim, base=10000.0):
        speeds = base ** (-torch.arange(0, head_dim, 2).double() / head_dim)
        angles = change(positions, speeds).double()
        return angles.cos(), angles.sin()

    return planted


def with_result(change):
    return lambda *case: change(*tables(*case))


def even(head_dim):
    return torch.arange(0, head_dim, 2).double()


WRONG_TABLES = {
    "half as fast": (0, with_speeds(lambda d, b: b ** (-torch.arange(d // 2).double() / d))),
    "twice as fast": (0, with_speeds(lambda d, b: b ** (-even(d) / (d // 2)))),
    "pairs counted from 1": (0, with_speeds(lambda d, b: b ** (-(even(d) + 2) / d))),
    "Your pairs get faster": (0, with_speeds(lambda d, b: b ** (even(d) / d))),
    "the last point included": (0, with_speeds(lambda d, b: b ** -torch.linspace(0, 1, d // 2).double())),
    "All pairs turn equally fast": (0, with_speeds(lambda d, b: b ** -(torch.arange(0, d, 2) // d).double())),
    "All pairs but the first": (0, with_speeds(lambda d, b: b ** (-torch.arange(0, d, 2) // d).double())),
    "Right for base 10000 only": (0, with_speeds(lambda d, b: 10000.0 ** (-even(d) / d))),
    "with base 500,000": (0, with_speeds(lambda d, b: 500000.0 ** (-even(d) / d))),
    "with base 1,000,000": (0, with_speeds(lambda d, b: 1e6 ** (-even(d) / d))),
    "positions counted from 1": (0, with_angles(lambda p, s: (p + 1)[:, None] * s)),
    "You count 0, 1, 2": (0, with_angles(lambda p, s: torch.arange(len(p))[:, None] * s)),
    "Rotated backwards": (0, with_result(lambda cos, sin: (cos, -sin))),
    "have changed places. At position 0 every cosine": (0, with_result(lambda cos, sin: (sin, cos))),
    "from degrees": (0, with_angles(lambda p, s: torch.deg2rad(p[:, None] * s))),
    "2π times too large": (0, with_angles(lambda p, s: p[:, None] * s * 2 * torch.pi)),
    "twice as large": (0, with_angles(lambda p, s: 2 * p[:, None] * s)),
    "All angles are 0": (0, with_angles(lambda p, s: 0 * p[:, None] * s)),
    "to bfloat16: exact up to position 256": (3, with_angles(lambda p, s: p.bfloat16().double()[:, None] * s)),
    "to bfloat16: off by up to": (3, with_angles(lambda p, s: p.bfloat16()[:, None] * s.bfloat16())),
    "to float16: exact up to position 2048": (3, with_angles(lambda p, s: p.half().double()[:, None] * s)),
    "to float16: off by up to": (3, with_angles(lambda p, s: p.half()[:, None] * s.half())),
    "to float32: fine near the beginning": (3, with_angles(lambda p, s: p.float()[:, None] * s.float())),
    "The tables have a column for each dimension": (0, with_result(lambda *both: tuple(twice(t, False) for t in both))),
    "Rows and columns have changed places": (0, with_result(lambda *both: tuple(t.T for t in both))),
    "The tables are torch.bfloat16": (0, with_result(lambda *both: tuple(t.bfloat16() for t in both))),
    "the number of tensors that came back is 1": (0, with_result(torch.complex)),
    "It returned None": (0, lambda *_: None),
    "It stopped. TypeError": (0, lambda positions, head_dim: None),
}  # fmt: skip


@pytest.mark.parametrize("sentence", WRONG_TABLES)
def test_wrong_tables_are_named(sentence, capsys):
    expected, planted = WRONG_TABLES[sentence]
    points, text = said(capsys, check.tables, planted)
    assert sentence in text
    assert not [other for other in WRONG_TABLES if other != sentence and other in text]
    assert points == expected
    assert f"Task 1: {expected} of 5" in text


def overwritten(x, cos, sin, interleaved):
    y = x.clone()
    y0, y1 = split(y, interleaved)  # views
    y0.copy_(y0 * cos - y1 * sin)
    y1.copy_(y0 * sin + y1 * cos)
    return y


def first_half(x, cos, sin, interleaved):
    y, count = stacked(x, cos, sin, interleaved), cos.shape[-1] // 2
    parts = [
        torch.cat((new[..., :count], old[..., count:]), -1)
        for new, old in zip(split(y, interleaved), split(x, interleaved), strict=True)
    ]
    return join(*parts, interleaved)


def pairwise(formula):
    return lambda x, cos, sin, interleaved: join(*formula(*split(x, interleaved), cos, sin), interleaved)


WRONG_ROTATIONS = {
    "Right at distance 0 only": lambda x, c, s, i: stacked(x, c, s, not i),
    "Rotated backwards: compare with a quarter turn": lambda x, c, s, i: stacked(x, c, -s, i),
    "right numbers in the wrong places": lambda x, c, s, i: join(*split(stacked(x, c, s, i), i), not i),
    "meet different angles": lambda x, c, s, i: x * twice(c, not i) + swap(x, i) * twice(s, not i),
    "the wrong partner": lambda x, c, s, i: x * twice(c, i) + swap(x, not i) * twice(s, i),
    "A plus in both": pairwise(lambda x0, x1, c, s: (x0 * c + x1 * s, x0 * s + x1 * c)),
    "A minus in both": pairwise(lambda x0, x1, c, s: (x0 * c - x1 * s, -x0 * s + x1 * c)),
    "A reflection": pairwise(lambda x0, x1, c, s: (x0 * c + x1 * s, x0 * s - x1 * c)),
    "after that was turned": overwritten,
    "The sines have no effect": pairwise(lambda x0, x1, c, s: (x0 * c, x1 * c)),
    "Cosines and sines have changed places": lambda x, c, s, i: stacked(x, s, c, i),
    "like the first one": lambda x, c, s, i: stacked(x, c[:1], s[:1], i),
    "turned by its head number": lambda x, c, s, i: stacked(x, c[:, None], s[:, None], i),
    "Only the first half of the pairs": first_half,
    "Nothing is turned": lambda x, c, s, i: x,
    "Count axes from the right": lambda x, c, s, i: stacked(x, c, s, i).flatten(min(2, x.ndim - 1)),
    "Complex numbers came back": lambda x, c, s, i: torch.complex(*split(stacked(x, c, s, i), i)),
}  # fmt: skip


@LAYOUTS
@pytest.mark.parametrize("sentence", WRONG_ROTATIONS)
def test_wrong_rotations_are_named(sentence, interleaved, capsys):
    wrong, right = ([lambda *case, layout=layout, f=f: f(*case, layout) for layout in (True, False)]
                    for f in (WRONG_ROTATIONS[sentence], stacked))  # fmt: skip
    both = (wrong[0], right[1]) if interleaved else (right[0], wrong[1])
    points, text = said(capsys, check.rotation, *both)
    assert f"Task 2, {'interleaved' if interleaved else 'half-split'}: " in text
    assert sentence in text
    assert not [other for other in WRONG_ROTATIONS if other != sentence and other in text]
    assert points == 2


def test_habits_cost_a_point(capsys):
    def in_place(x, cos, sin, interleaved):
        return x.copy_(stacked(x, cos, sin, interleaved))

    def widened(x, cos, sin, interleaved):
        return stacked(x.double(), cos, sin, interleaved)

    def only_wide(x, cos, sin, interleaved):
        return torch.view_as_real(
            torch.view_as_complex(torch.stack(split(x, interleaved), -1)) * torch.complex(cos, sin)
        ).flatten(-2)

    for planted, sentence in (
        (in_place, "Your function changes the x that it is given"),
        (widened, "the result in torch.float64"),
    ):
        both = [lambda *case, layout=layout, f=planted: f(*case, layout) for layout in (True, False)]
        points, text = said(capsys, check.rotation, *both)
        assert sentence in text
        assert points == 4
    points, text = said(
        capsys, check.rotation, lambda *case: only_wide(*case, True), lambda *case: stacked(*case, False)
    )
    assert "x in torch.bfloat16, tables in torch.float32: It stopped. RuntimeError" in text
    assert points == 4


WRONG_CONVERSIONS = {
    "The other way round": lambda w, d, to, back: back(w, d),
    "from head to head": lambda w, d, to, back: to(w, len(w)),
    "The columns are sorted": lambda w, d, to, back: to(w.T, d).T,
    "comes back as it was": lambda w, d, to, back: w,
    "First and second number": lambda w, d, to, back: swapped_pairs(w, d, to),
}


def swapped_pairs(weight, head_dim, to):
    if to is to_half_split:
        return to(weight.unflatten(0, (-1, 2)).flip(1).flatten(0, 1), head_dim)
    return to(weight.unflatten(0, (-1, 2, head_dim // 2)).flip(1).flatten(0, 2), head_dim)


@pytest.mark.parametrize("sentence", WRONG_CONVERSIONS)
def test_wrong_conversions_are_named(sentence, capsys):
    planted = WRONG_CONVERSIONS[sentence]
    for there, points in ((True, 2), (False, 3)):
        forth = (lambda w, d: planted(w, d, to_half_split, to_interleaved)) if there else to_half_split
        back = to_interleaved if there else (lambda w, d: planted(w, d, to_interleaved, to_half_split))
        found, text = said(capsys, check.conversion, forth, back)
        assert found == points
        assert sentence in text
        assert not [other for other in WRONG_CONVERSIONS if other != sentence and other in text]


def raw(old_and_new, turned):
    return old_and_new


def masked(scores, past):
    return scores.masked_fill(torch.ones_like(scores[0], dtype=torch.bool).triu(past + 1), -torch.inf)


def keeps_raw_and_turns_all(q, k, cache):
    keys = k if cache is None else torch.cat((cache, k), dim=1)
    cos, sin = tables(torch.arange(keys.shape[1]), q.shape[-1])
    return stacked(q, cos[-q.shape[1] :], sin[-q.shape[1] :], True) @ stacked(keys, cos, sin, True).mT, keys


WRONG_CACHES = {
    "Each call begins again at position 0": (0, {"offset": lambda past: 0}),
    "the queries begin again": (0, {"query_offset": lambda past: 0}),
    "the keys begin again": (0, {"offset": lambda past: 0, "query_offset": lambda past: past}),
    "All words of a call get the same position": (3, {"spread": 0}),
    "positions counted from 1": (0, {"offset": lambda past: past + 1}),
    "are turned again in each call": (0, {"again": True}),
    "and later queries meet them so": (0, {"keep": raw}),
    "New keys are put in front": (0, {"stack": lambda old, new: (new, old)}),
    "The queries are not turned": (0, {"query_offset": False}),
    "The keys are not turned": (0, {"keys_too": False}),
    "holds the new keys only": (0, {"keep": lambda old_and_new, turned: turned}),
    "divided by the root": (0, {"last": lambda scores, past: scores / 8**0.5}),
    "Right, but masked": (3, {"last": masked}),
    "Right at distance 0 only": (0, {"turn": lambda x, c, s, i: stacked(x, c, s, not i)}),
    "Rotated backwards": (0, {"turn": lambda x, c, s, i: stacked(x, c, -s, i)}),
    "right numbers in the wrong places": (0, {"turn": WRONG_ROTATIONS["right numbers in the wrong places"]}),
}


@pytest.mark.parametrize("sentence", WRONG_CACHES)
def test_wrong_caches_are_named(sentence, capsys):
    expected, options = WRONG_CACHES[sentence]
    points, text = said(capsys, check.cache, lambda *case: cached(*case, **options))
    assert sentence in text
    assert not [other for other in WRONG_CACHES if other != sentence and other in text]
    assert points == expected


def test_a_cache_from_before_the_rotation_is_called_a_design(capsys):
    points, text = said(capsys, check.cache, keeps_raw_and_turns_all)
    assert "a design in its own right" in text
    assert points == 0


OF_CHAPTER_6 = {
    "the other layout": "Right at distance 0 only",
    "turned backwards": "Rotated backwards: compare with a quarter turn",
    "another base": "You turn with base 500,000",
    "pairs counted from 1": "pairs counted from 1",
    "position forgotten": "Nothing is turned",
    "angles in float32": "Angles rounded to float32",
    "positions counted from 1": "positions counted from 1",
    "cat in the place of stack": "right numbers in the wrong places",
    "tables of the other layout": "meet different angles",
    "a sign wrong": "A plus in both",
}


def test_the_ten_mistakes_of_chapter_6_are_among_them():
    assert set(OF_CHAPTER_6) == set(MISTAKES) - {"(none)"}
    x, positions = check.drawn(4, DIM), torch.tensor([3, 1, 11, 13])
    mistakes = [*check.rotation_mistakes(True), *check.TABLE_MISTAKES]
    for name, rotate in MISTAKES.items():

        def run(dim, theta, longest, x, positions, rotate=rotate):
            return (rotate(x, positions),)

        case = (DIM, 10000.0, 64, x, positions)
        found = check.verdict(run, check.run_rope_by_loop, mistakes, [case], [], str)
        if name == "angles in float32":

            def as_tables(positions, dim, base, rotate=rotate):
                y = rotate(torch.tensor([1.0, 0.0], dtype=torch.float64).repeat(len(positions), dim // 2), positions)
                return y[:, 0::2], y[:, 1::2]

            assert found is None
            found = check.rounding(as_tables, DIM)
        assert (found is None) == (name == "(none)")
        assert name == "(none)" or OF_CHAPTER_6[name] in found, name


def by_head(d_k, theta, longest, x, positions):
    cos, sin = tables(positions.flatten(), d_k, theta)
    return stacked(x, cos[:, None], sin[:, None], True)


def rope_with(of_tables="", rotation=""):
    of_tables = WRONG_TABLES[of_tables][1] if of_tables else tables
    return lambda *case: rope(*case, of_tables=of_tables, turn=WRONG_ROTATIONS.get(rotation, stacked))


WRONG_ROPES = [
    (["You count 0, 1, 2"], lambda *case: rope(*case[:4], torch.arange(case[3].shape[-2]).expand(case[4].shape))),
    (["Right for base 10000 only"], lambda d, theta, *case: rope(d, 10000.0, *case)),
    (["turned by its head number"], by_head),
    *(([f"Angles rounded {words}"], rope_with(words)) for words in WRONG_TABLES if words.startswith("to ")),
    *(
        (["Two mistakes at once", *two], rope_with(*two))
        for two in (
            ("pairs counted from 1", "Rotated backwards: compare with a quarter turn"),
            ("half as fast", "Right at distance 0 only"),
            ("Right for base 10000 only", "A plus in both"),
        )
    ),
    (["not written yet"], check.unwritten),
]


@pytest.mark.parametrize(("sentences", "planted"), WRONG_ROPES, ids=[" + ".join(s) for s, _ in WRONG_ROPES])
def test_wrong_run_ropes_are_named(sentences, planted, capsys):
    right, text = said(capsys, check.run_rope, planted)
    assert not right
    assert all(sentence in text for sentence in sentences), text


@pytest.mark.parametrize("seed", range(3))
def test_known_mistakes_are_told_apart_for_each_seed(seed, monkeypatch, capsys):
    monkeypatch.setattr(check, "SEED", seed)
    for mistake in check.TABLE_MISTAKES:
        wrong_tables = lambda *case, m=mistake: check.tables_by_loop(*case, **m.knobs)  # noqa: E731
        assert mistake.says in said(capsys, check.tables, wrong_tables)[1]
    for layout in (True, False):
        for mistake in check.rotation_mistakes(layout):

            def wrong(*case, layout=layout, knobs=mistake.knobs):
                return check.rotation_by_loop(*case, layout, **knobs)[0]  # no result where the mistake stops

            def right(*case, layout=not layout):
                return stacked(*case, layout)

            both = (wrong, right) if layout else (right, wrong)
            assert mistake.says in said(capsys, check.rotation, *both)[1]
    for mistake in [*check.rotation_mistakes(True), *check.TABLE_MISTAKES]:
        if mistake.knobs not in KNOWN_TWICE:

            def wrong_rope(*case, knobs=mistake.knobs):
                return check.run_rope_by_loop(*case, **knobs)[0]

            assert mistake.says in said(capsys, check.run_rope, wrong_rope)[1]


def test_some_fifty_mistakes_are_known():
    lists = check.TABLE_MISTAKES, check.rotation_mistakes(True), check.conversion_mistakes(True), check.CACHE_MISTAKES
    sentences = [mistake.says for known in lists for mistake in known]
    assert 50 <= len(set(sentences)) == len(sentences) <= 55
    assert "some fifty mistakes" in (making.FOLDER / "README.md").read_text(encoding="utf-8")


# -- Wrong, and not on the list ----------------------------------------------------------------------------------------


def test_an_unknown_mistake_gets_its_smallest_case(capsys):
    text = said(capsys, check.tables, with_speeds(lambda d, b: (2 * b) ** (-even(d) / d)))[1]
    assert (
        "The smallest case that I found: positions = [1], head_dim = 4, base = 10000: sin got [0.841471, 0.007" in text
    )
    assert ", wanted [0.841471, 0.00999983]." in text

    def speeds_in_reverse(x, cos, sin):  # right for one pair, and for position 0
        return stacked(x, cos.flip(-1), sin.flip(-1), True)

    _, text = said(capsys, check.rotation, speeds_in_reverse, lambda *case: stacked(*case, False))
    assert "x = [[1, 0, 0, 0]], cos = [[0.540302, 0.99995]], sin = [[0.841471, 0.00999983]]: " in text
    assert ": got [0.99995, 0.00999983, 0, 0], wanted [0.540302, 0.841471, 0, 0]." in text
    _, text = said(capsys, check.conversion, lambda w, d: w.flip(0), to_interleaved)
    assert "head_dim = 2, weight = [[0], [1]]: got [1, 0], wanted [0, 1]." in text
    _, text = said(capsys, check.cache, lambda *case: cached(*case, last=lambda scores, past: scores + past))
    assert "0 elsewhere, new words in each call: [1, 1]: call 2, scores got [1.5403, 2], wanted [0.540302, 1]." in text
    _, text = said(capsys, check.run_rope, lambda *case: rope(*case) + 1)
    assert "d_k = 2, theta = 10000, token_positions = [0], x = [[1, 0]]: got [2, 1], wanted [1, 0]." in text


def test_a_mistake_that_needs_many_words_is_shown_too(capsys):
    def wrong_for_many_words(x, cos, sin):
        y = stacked(x, cos, sin, True)
        y[..., 4:, :] += 1
        return y

    _, text = said(capsys, check.rotation, wrong_for_many_words, lambda *case: stacked(*case, False))
    assert "x = [[1, 2], [3, 4], [5, 6], [7, 8], [9, 10]], cos = " in text
    assert re.search(r": row 4 got \[\S+, \S+\], wanted \[\S+, \S+\]\.", text)


def test_nothing_is_given_away(capsys):
    formula = re.compile(r"\*\*|cos\(|sin\(|torch\.(?!float|bfloat|Tensor)\w+\(|arange|unflatten|x0|x1|\d \* ")
    for _, planted in WRONG_TABLES.values():
        text = said(capsys, check.tables, planted)[1]
        assert not formula.search(text), text
        assert "got [" not in text
    for planted in WRONG_ROTATIONS.values():
        both = [lambda *case, layout=layout, f=planted: f(*case, layout) for layout in (True, False)]
        text = said(capsys, check.rotation, *both)[1]
        assert not formula.search(text), text
        assert "got [" not in text


# -- Pages, files, keys ------------------------------------------------------------------------------------------------


def test_the_pages_that_are_named_exist():
    texts = [
        path.read_text(encoding="utf-8")
        for path in sorted((ROOT / "lectures").rglob("*"))
        if path.suffix in (".py", ".md", ".ipynb")
    ]
    named = {found for text in texts for found in re.findall(r'[Cc]hapter (\d+), \\?"([^"\\]+)\\?"', text)}
    assert len(named) >= 12
    for chapter, section in named:
        [path] = (ROOT / "chapters").glob(f"{int(chapter):02}_*.ipynb")
        cells = nbformat.read(path, as_version=4).cells
        heads = {line.lstrip("# ") for cell in cells for line in cell.source.splitlines() if line.startswith("##")}
        assert section in heads or section.rstrip(".") in heads, (chapter, section)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    folder = tmp_path_factory.mktemp("build")
    making.student(folder / "student")
    making.teacher(folder / "teacher", 1)
    return folder


def solutions(path):
    """Lines between the marks of a source, which no student may get."""
    text = path.read_text(encoding="utf-8")
    if path.suffix == ".ipynb":
        text = "\n".join(cell.source for cell in nbformat.reads(text, as_version=4).cells)
    parts = re.findall(r"### BEGIN SOLUTION\n(.*?)### END SOLUTION", text, flags=re.DOTALL)
    return [line.strip() for part in parts for line in part.splitlines() if len(line.strip()) > 15]


@pytest.mark.parametrize("name", making.FILES)
def test_students_get_no_solution_and_teachers_do(name, built):
    lines = solutions(making.FOLDER / name)
    assert lines
    for whose, kept in (("student", False), ("teacher", True)):
        text = (built / whose / name).read_text(encoding="utf-8")
        assert "SOLUTION" not in text
        if name.endswith(".ipynb"):
            notebook = nbformat.reads(text, as_version=4)
            nbformat.validate(notebook)
            text = "\n".join(cell.source for cell in notebook.cells if cell.id != "book-code")
            assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
        assert all((line in text) == kept for line in lines), name


def test_sources_are_cleared():
    for path in making.FOLDER.glob("*.ipynb"):
        notebook = nbformat.read(path, as_version=4)
        assert all(not cell.get("outputs") and cell.get("execution_count") is None for cell in notebook.cells)
        assert path.read_text(encoding="utf-8") == nbformat.writes(notebook) + "\n"


def test_what_a_student_gets_is_not_written_yet(built, capsys):
    assert check.grade(built / "student" / "hw1_rope.ipynb") == 0
    text = capsys.readouterr().out
    assert text.count("not written yet") == 6
    assert text.endswith("hw1_rope.ipynb: 0 of 20\n")
    assert check.grade(built / "student" / "adapters.py") is None
    assert capsys.readouterr().out == "run_rope: not written yet.\n"


def test_the_check_runs_alone_in_a_shell_and_under_pytest(built, tmp_path):
    """With torch, and without this book; the check of the teacher has other numbers."""
    for name, source in (("check.py", "teacher"), ("hw1_rope.ipynb", "teacher"), ("adapters.py", "teacher")):
        (tmp_path / name).write_bytes((built / source / name).read_bytes())
    program = """
import sys, runpy, pytest
sys.modules.update(rope_lib=None, lab=None, figures=None, lectures=None)
sys.argv[1:] = ["hw1_rope.ipynb", "adapters.py"]
runpy.run_path("check.py", run_name="__main__")
sys.exit(pytest.main(["-q", "-p", "no:cacheprovider", "check.py"]))
"""
    alone = os.environ | {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "HOMEWORK": "hw1_rope.ipynb"}
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, cwd=tmp_path, env=alone, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "hw1_rope.ipynb: 20 of 20\nrun_rope: right.\n" in done.stdout
    assert "4 passed" in done.stdout
    assert re.search(r"^SEED = 1 ", (tmp_path / "check.py").read_text(), re.MULTILINE)


def test_under_pytest_a_mistake_is_the_message(tmp_path, monkeypatch):
    (tmp_path / "wrong.py").write_text(
        "def tables(positions, head_dim, base):\n    return None\nraise OSError('late')\n"
    )
    monkeypatch.setenv("HOMEWORK", str(tmp_path / "wrong.py"))
    with pytest.raises(AssertionError, match="It returned None: is there a `return`"):
        check.test_tables()
    with pytest.raises(AssertionError, match="not written yet"):
        check.test_cache()


@pytest.mark.parametrize("seed", range(5))
def test_the_exam_has_ten_questions_with_three_levels(seed):
    drawn = numbers(seed)
    source = (ROOT / "lectures" / "teacher" / "exam.md").read_text(encoding="utf-8")
    assert {*re.findall(r"\[\[(\w+)\]\]", source)} == set(drawn)
    questions = making.with_solution(source, code=False).split("\n## ")[1:]
    assert len(questions) == 10
    for number, question in enumerate(questions, 1):
        assert question.startswith(f"{number}. ")
        assert [question.count(f"* *{level}:*") for level in ("Enough", "Good", "Full")] == [1, 1, 1]
        assert re.search(r"(Chapter|Exercise) \d", question)
    for_students = making.without_solution(source, code=False)
    assert "Enough" not in for_students
    assert for_students.count("\n## ") == 10
    q, k = [float(drawn["a"]), 0.0], [0.0, float(drawn["b"])]
    speed = torch.pi / float(drawn["parts"])
    found = reference.score(q, k, int(drawn["m"]) * speed, int(drawn["n"]) * speed, interleaved=True)
    assert abs(found - float(drawn["score"])) < 1e-3
    [order] = check.conversion_by_loop(torch.arange(int(drawn["rows"]))[:, None], int(drawn["head"]), False)
    assert ", ".join(str(int(row)) for row in order) == drawn["order"]


def test_teachers_get_the_exam_twice(built):
    exam, key = ((built / "teacher" / name).read_text(encoding="utf-8") for name in ("exam.md", "exam_key.md"))
    assert "[[" not in key
    assert "Full" in key
    assert "Full" not in exam


def test_numbers_of_the_proofs():
    """Homework 2: how often a head is converted until it comes back, and the bound of problem 4."""
    comes_back = {}
    for dim in range(2, 130, 2):
        x = order = interleaved_to_half_split(torch.arange(dim), head_dim=dim, dim=0)
        assert order[: dim - 1].tolist() == [2 * j % (dim - 1) for j in range(dim - 1)]
        count = 1
        while not torch.equal(x, torch.arange(dim)):
            x, count = x[order], count + 1
        comes_back[dim] = count
    assert [dim for dim, count in comes_back.items() if 2 % count == 0] == [2, 4]
    assert comes_back[128] == 7
    theta = torch.tensor(reference.inverse_frequency(63, 128), dtype=torch.float64)
    assert f"{theta:.2e}" == "1.15e-04"
    assert f"{10 / (theta / 2).sin():.1e}" == "1.7e+05"


def test_homework_3_does_what_its_key_says(capsys):
    cells = [
        cell
        for cell in json.loads((making.FOLDER / "hw3_length.ipynb").read_text())["cells"]
        if cell["cell_type"] == "code"
    ]
    names = {}
    for cell in cells:
        exec("".join(cell["source"]), names)
    text = capsys.readouterr().out
    assert text.count(": right\n") == 3
    assert "10 18\n" in text
    edges, stored = experiments.rescued()
    assert edges == names["edges"]
    assert abs(names["losses"]["by parts"][-1] - stored["by parts"][-1]) < 0.2  # 8 texts, 32 there
