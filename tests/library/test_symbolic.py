"""`proved` must confirm what is true and refuse what is false; `refuted` the other way round."""

import re

import pytest
import sympy as sp
import torch

from rope_lib.softmax import attention_from_scores
from rope_lib.theory.symbolic import NotProved, proved, refuted, rotation, softmax

a, b = sp.symbols("a b", real=True)
m, n = sp.symbols("m n", integer=True)
A, B = sp.symbols("A B", commutative=False)
x, y, minus, plus = sp.Symbol("x"), sp.Symbol("y"), sp.Symbol("g", negative=True), sp.Symbol("p", positive=True)

TRUE = [
    (sp.sin(a + b), sp.sin(a) * sp.cos(b) + sp.cos(a) * sp.sin(b)),
    (sp.exp(sp.I * a), sp.cos(a) + sp.I * sp.sin(a)),
    (sp.MatMul(rotation(a), rotation(b)), rotation(a + b)),
    (sp.exp(sp.I * m * (a + 2 * sp.pi)), sp.exp(sp.I * m * a)),
    (sp.re(sp.exp(sp.I * a), evaluate=False), sp.cos(a)),
    (sum(sp.exp(sp.I * j * a) for j in range(4)), sp.exp(sp.I * 3 * a / 2) * sp.sin(2 * a) / sp.sin(a / 2)),
    ((A + B) ** 2 - A * B, A**2 + B * A + B**2),
    (sp.Integer(0), 0),
]
FALSE = [
    (sp.sin(a + b), sp.sin(a) * sp.cos(b) - sp.cos(a) * sp.sin(b)),
    (rotation(a) * rotation(b), rotation(a - b)),
    (rotation(a).T, rotation(a)),
    (sp.exp(sp.I * m * (a + sp.pi)), sp.exp(sp.I * m * a)),  # true for even m only
    (m, n),
    (sp.Integer(1), 0),
    (sp.sqrt(a**2), a),  # true for a >= 0 only
    (A**2 + 3 * A * B + B**2 - (A + B) ** 2, A * B - B * A),
]


@pytest.mark.parametrize(("lhs", "rhs"), TRUE)
def test_true_claims_are_proved_and_shown_as_they_stand(lhs, rhs):
    equation = proved(lhs, rhs)
    assert (equation.lhs, equation.rhs) == (lhs, sp.sympify(rhs))


@pytest.mark.parametrize(("lhs", "rhs"), FALSE)
def test_false_claims_are_not_proved(lhs, rhs):
    with pytest.raises(NotProved, match="not to 0"):
        proved(lhs, rhs)


def test_the_error_names_a_counter_example():
    with pytest.raises(NotProved, match=r"lhs - rhs reduces to 2\*a, not to 0; false at \{a: 2/3\}"):
        proved(a, -a)
    f = sp.Function("f")
    with pytest.raises(NotProved, match="may be true but unproved"):
        proved(f(a), f(b))


def test_a_counter_example_is_sought_at_several_points():
    """Whole numbers 2, 3 and 5: a claim may hold at the first ones, or be undefined there."""
    for lhs, rhs, number in ((n**2, 2 * n, 3), (1 / (n - 2), 0, 3), ((n - 2) * (n - 3), 0, 5)):
        with pytest.raises(NotProved, match=rf"false at \{{n: {number}\}}"):
            proved(lhs, rhs)
    with pytest.raises(NotProved, match=r"false at \{m: 2, n: 3\}"):
        proved(m, n)


@pytest.mark.parametrize(
    ("lhs", "rhs", "point"),
    [
        (sp.Abs(a), a, "a: -7/3"),
        (sp.Abs(m - n), n - m, "m: -7, n: -11"),
        (sp.log(x * y), sp.log(x) + sp.log(y), "x: -7/3, y: -11/4"),
        (sp.re(x), x, "x: 17*I/3"),
        (sp.Max(minus, 0), minus, "g: -2/3"),
        (sp.Abs(a) * plus, a * plus, "a: -7/3, p: 11/4"),
    ],
)
def test_a_counter_example_may_be_negative_or_imaginary(lhs, rhs, point):
    with pytest.raises(NotProved, match=rf"false at \{{{re.escape(point)}\}}"):
        proved(lhs, rhs)


def test_a_counter_example_keeps_to_the_assumptions_of_its_symbols():
    odd = sp.Symbol("o", odd=True)
    for lhs, rhs in (
        (sp.sin(sp.pi * odd / 4) ** 2, sp.Rational(1, 2)),  # false at 2
        (sp.log(minus**2), 2 * sp.log(-minus)),  # false at 2/3
        (sp.log(a**2 * plus), sp.log(a**2) + sp.log(plus)),  # false where plus is imaginary
    ):
        assert lhs - rhs != 0  # it is not so at once
        proved(lhs, rhs)


def test_one_wrong_entry_of_a_matrix_is_enough():
    wrong = rotation(a)
    wrong[1, 1] += b
    with pytest.raises(NotProved, match=r"lhs - rhs reduces to b, not to 0"):
        proved(wrong, rotation(a))
    assert refuted(wrong, rotation(a), at={a: 0, b: 1}).lhs == sp.Matrix([[1, 0], [0, 2]])


def test_refuted_shows_the_two_values():
    assert refuted(a + 1, a, at={a: 3}) == sp.Ne(4, 3, evaluate=False)
    with pytest.raises(AssertionError, match="this point refutes nothing"):
        refuted(a**2, a, at={a: 1})
    seventh = sp.pi / 7  # a true identity that is hard to simplify is no counter-example
    with pytest.raises(AssertionError, match="this point refutes nothing"):
        refuted(a, sp.cos(seventh) - sp.cos(2 * seventh) + sp.cos(3 * seventh) + sp.Rational(1, 2), at={a: 1})
    for at in ({a: 1}, {a: 1, "b": 2}, {a: 1, sp.Symbol("b", positive=True): 2}):
        with pytest.raises(AssertionError, match=r"no value given for \{b\} at \{.*string, or .* other assumptions"):
            refuted(a, b, at=at)


@pytest.mark.parametrize("side", [0.5 * a, sp.Matrix([[0.5]]), 0.5, True, 1j])
def test_sides_are_exact(side):
    """Of floats the last digit is a matter of rounding, which neither proves nor refutes."""
    for lhs, rhs in ((side, a), (a, side)):
        with pytest.raises(TypeError, match=r"hs is a \w+, .*; it must be a formula or a matrix, without floats"):
            proved(lhs, rhs)
        with pytest.raises(TypeError, match="without floats"):
            refuted(lhs, rhs, at={a: 1})
    with pytest.raises(TypeError, match="without floats"):
        refuted(sp.sin(a + b), sp.sin(a) * sp.cos(b) + sp.cos(a) * sp.sin(b), at={a: 0.1, b: 0.2})


@pytest.mark.parametrize("value", [0.5, 3.14, torch.tensor(2), None, True, "2", [1] * 99])
def test_values_of_a_point_are_exact(value):
    with pytest.raises(TypeError, match=rf"^at\[a\] is a \w+, {re.escape(repr(value)[:50])}; .* without floats"):
        refuted(a**2, a, at={a: value})


@pytest.mark.parametrize("at", [(a, 2), 2, None, {a}, "a"])
def test_a_point_is_a_dict(at):
    with pytest.raises(TypeError, match=rf"^at is {re.escape(repr(at))}; it must be a dict"):
        refuted(a**2, a, at=at)


def test_a_side_without_a_value_refutes_nothing():
    for lhs, rhs in ((sp.sin(2 * a) / sp.sin(a), 2 * sp.cos(a)), (1 / a, a), (a, sp.log(a))):
        with pytest.raises(AssertionError, match=r"^a side has no value at \{a: 0\}"):
            refuted(lhs, rhs, at={a: 0})


def test_a_claim_without_entries_is_refused():
    for shape in ((0, 0), (0, 2), (2, 0)):
        with pytest.raises(ValueError, match="nothing would be checked"):
            proved(sp.zeros(*shape), sp.zeros(*shape))


def test_shapes_must_match():
    with pytest.raises(ValueError, match=r"lhs has shape \(2, 2\), rhs \(\)"):
        proved(rotation(a), 1)


def test_rotation_is_counter_clockwise():
    assert rotation(sp.pi / 2) * sp.Matrix([1, 0]) == sp.Matrix([0, 1])


@pytest.mark.parametrize("causal", [False, True])
def test_softmax_is_that_of_torch(causal, generator):
    scores = torch.randn(3, 3, generator=generator, dtype=torch.float64)
    weights = attention_from_scores(scores, torch.eye(3, dtype=torch.float64), causal=causal)
    ours = torch.tensor(softmax(sp.Matrix(scores.tolist()), causal=causal).tolist(), dtype=torch.float64)
    torch.testing.assert_close(ours, weights, rtol=1e-14, atol=0)


def test_softmax_sees_all_keys_unless_it_is_causal():
    half = sp.Rational(1, 2)
    assert softmax(sp.zeros(2)) == sp.Matrix([[half, half], [half, half]])
    assert softmax(sp.zeros(2), causal=True) == sp.Matrix([[1, 0], [half, half]])


def test_a_pole_at_a_test_point_is_no_counter_example():
    n = sp.Symbol("n", integer=True)
    proved((n**2 - 4) / (n - 2), n + 2)
