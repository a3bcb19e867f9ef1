"""Symbols for the derivations: the rotation, and claims that a computer algebra system must confirm or refute."""

from __future__ import annotations

import sympy as sp


class NotProved(AssertionError):
    """A claimed identity that did not reduce to zero; the text names a point where it fails, if one is found.

    Args:
        difference: what lhs - rhs reduces to.
        sides: the left and the right side that differ; of matrices the first such entries.
        at: a value for each symbol at which they differ, or None where none was found.

    Example:
        >>> x = sp.Symbol("x")
        >>> try:
        ...     proved(x, -x)
        ... except NotProved as error:
        ...     print(error)
        lhs - rhs reduces to 2*x, not to 0; false at {x: 2/3}: 0.6667 and -0.6667
    """

    def __init__(self, difference: sp.Expr, sides: tuple[sp.Expr, sp.Expr], at: dict | None):
        self.sides, self.at = sides, at
        found = "no counter-example found: it may be true but unproved"
        if at is not None:
            self.values = [str(side.doit().subs(at).evalf(4)) for side in sides]
            found = f"false at {at}: {self.values[0]} and {self.values[1]}"
        super().__init__(f"lhs - rhs reduces to {difference}, not to 0; {found}")


def rotation(angle: sp.Expr) -> sp.Matrix:
    """R(alpha) = [[cos alpha, -sin alpha], [sin alpha, cos alpha]]: counter-clockwise by `angle` (rad).

    Example:
        >>> rotation(sp.pi / 2).tolist()
        [[0, -1], [1, 0]]
    """
    return sp.Matrix([[sp.cos(angle), -sp.sin(angle)], [sp.sin(angle), sp.cos(angle)]])


def softmax(scores: sp.Matrix, *, causal: bool = False) -> sp.Matrix:
    """The weights of attention: exp of each score over the sum of its row; causal: zeros right of the diagonal.

    Example:
        >>> softmax(sp.zeros(2, 2), causal=True).tolist()
        [[1, 0], [1/2, 1/2]]
    """
    if not isinstance(scores, sp.MatrixBase):
        raise TypeError(f"scores is {scores!r:.60}; it must be a matrix of sympy, a row for each query")
    powers = sp.Matrix(*scores.shape, lambda i, j: 0 if causal and j > i else sp.exp(scores[i, j]))
    return sp.Matrix(*scores.shape, lambda i, j: powers[i, j] / sum(powers[i, :]))


def proved(lhs, rhs) -> sp.Eq:
    """Return the equation lhs = rhs for display after reducing lhs - rhs to zero for all values of its symbols.

    All values at which both sides are defined: x / x = 1 is accepted, as sympy cancels it before anyone can look.

    Args:
        lhs, rhs: sympy expressions, or matrices of one shape. What is passed unevaluated, such as
            sp.MatMul(A, B), is shown as it stands and evaluated for the check.

    Raises:
        NotProved: the difference did not reduce; the text gives a counter-example where one is found.
        TypeError: a side is neither (a list, a tensor, an equation), or has floats, which are rounded.
        ValueError: matrices of different shapes, or without entries.

    Example:
        >>> x = sp.Symbol("x", real=True)
        >>> proved(sp.sin(x) ** 2, 1 - sp.cos(x) ** 2)
        Eq(sin(x)**2, 1 - cos(x)**2)
    """
    for left, right in _entries(lhs, rhs):
        at = _counter_example(left - right)
        if at is None and _is_zero(left - right):
            continue
        sides = (left, right) if hasattr(lhs, "shape") else (sp.sympify(lhs), sp.sympify(rhs))
        raise NotProved(sp.simplify(left - right), sides, at)
    return sp.Eq(lhs, rhs, evaluate=False)


def refuted(lhs, rhs, at: dict) -> sp.Ne:
    """Return lhs != rhs, evaluated at a point (`at`: a value for each symbol), after checking that they differ there.

    Raises:
        AssertionError: the sides agree at that point, or one has no value there, or symbols are left over.
        TypeError: as `proved`, also for a value; or `at` is no dict.

    Example:
        >>> x = sp.Symbol("x")
        >>> refuted(x**2, x, at={x: 2})
        Ne(4, 2)
    """
    if not isinstance(at, dict):
        raise TypeError(f"at is {at!r:.60}; it must be a dict, with a value for each symbol")
    _evaluated(**{f"at[{symbol}]": value for symbol, value in at.items()})
    left, right = (sp.simplify(side.subs(at)) for side in _evaluated(lhs=lhs, rhs=rhs))
    if left_over := left.free_symbols | right.free_symbols:
        raise AssertionError(f"no value given for {left_over} at {at} (a string, or a symbol of other assumptions?)")
    if any(side.has(sp.nan, sp.zoo, sp.oo) for side in (left, right)):
        raise AssertionError(f"a side has no value at {at}: {left} and {right}")
    if not any(abs((one - other).evalf(30)) > 1e-20 for one, other in _entries(left, right)):
        raise AssertionError(f"both sides are {left} at {at}: this point refutes nothing")
    return sp.Ne(left, right, evaluate=False)


def _evaluated(**sides) -> list:
    for name, side in sides.items():
        exact = isinstance(side, sp.Expr | sp.MatrixBase | int) and not sp.sympify(side).has(sp.Float)
        if not exact or isinstance(side, bool):
            kind = type(side).__name__
            raise TypeError(f"{name} is a {kind}, {side!r:.50}; it must be a formula or a matrix, without floats")
    return [sp.sympify(side).doit() for side in sides.values()]


def _entries(lhs, rhs) -> list[tuple[sp.Expr, sp.Expr]]:
    lhs, rhs = _evaluated(lhs=lhs, rhs=rhs)
    shape, other = (getattr(side, "shape", ()) for side in (lhs, rhs))
    if shape != other:
        raise ValueError(f"lhs has shape {shape}, rhs {other}")
    if 0 in shape:
        raise ValueError(f"both sides have shape {shape}: no entry, so nothing would be checked")
    return list(zip(sp.Matrix(lhs), sp.Matrix(rhs), strict=True)) if shape else [(lhs, rhs)]


def _is_zero(expr: sp.Expr) -> bool:
    """Try the cheapest reduction first. Only an exact zero counts; nothing here is numerical."""
    reductions = [
        sp.expand,
        lambda e: sp.expand(sp.expand(e).rewrite(sp.exp)),  # products of sines and cosines become sums
        sp.simplify,
    ]
    if expr.is_commutative:  # what does not commute has no real part to split off: it would take half a minute
        reductions.append(lambda e: sp.simplify(sp.expand(sp.expand(e.rewrite(sp.exp), complex=True))))
    return any(reduce(expr) == 0 for reduce in reductions)


def _counter_example(expr: sp.Expr) -> dict | None:
    """Values for the symbols at which expr is clearly not zero, or None. Fixed values, so the text never changes."""
    symbols = sorted(expr.free_symbols, key=str)
    for shift, turn in enumerate(3 * [1] + 3 * [-1] + 3 * [sp.I]):
        values = {}
        for i, symbol in enumerate(symbols):
            size = sp.Rational(sp.prime(i + shift + 1), 1 if symbol.is_integer else i + 3)
            for x in (-size, size, turn * size):  # the last that the assumptions allow
                if all(getattr(x, f"is_{name}") is truth for name, truth in symbol.assumptions0.items()):
                    values[symbol] = x
        value = expr.subs(values)
        if value.is_number and value.is_finite and abs(value.evalf(30)) > 1e-20:
            return values
    return None
