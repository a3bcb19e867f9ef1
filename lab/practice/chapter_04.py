"""Chapter 4: the score of two turned vectors in the plane."""

from cmath import exp
from math import atan, cos, radians

from lab.practice import Exercise

Vector = list[float]


def _h(q: Vector, k: Vector, angle: float) -> complex:
    """The complex number whose real part is the score of two vectors, the query turned by an angle."""
    return complex(*q) * complex(*k).conjugate() * exp(1j * angle)


def _by_lengths(q: Vector, k: Vector, angle: float) -> float:
    """The score of two vectors with this angle between them."""
    return abs(complex(*q)) * abs(complex(*k)) * cos(angle)


def _arctan(x: Vector) -> float:
    return atan(x[1] / x[0])


exercise = Exercise(
    asked="rope_score(q, k, m, n, theta)",
    right=lambda q, k, m, n, theta: _h(q, k, (m - n) * theta).real,
    cases=[
        ([1.0, 0.0], [1.0, 2.0], 1, 0, 0.5),
        ([3.0, 4.0], [1.0, 0.0], 2, 5, 0.1),
        ([-1.0, 2.0], [2.0, 0.5], 7, 4, 1.0),
        ([0.5, -1.5], [-2.0, -1.0], 3, 40, 0.25),
    ],
    mistakes={
        "Left and right are mixed up. The matrix has n - m; what has the exponent? Reread chapter 4, "
        '"The proof that it works: one line"': (lambda q, k, m, n, theta: _h(q, k, (n - m) * theta).real),
        "The positions are added, and the angles of q and k too. What is missing at k? See (4.3).": (
            lambda q, k, m, n, theta: (complex(*q) * complex(*k) * exp(1j * (m + n) * theta)).real
        ),
        "The angle m + n comes out where m - n should: one of the two vectors turns backwards.": (
            lambda q, k, m, n, theta: _h(q, k, (m + n) * theta).real
        ),
        "This is the complex number h of (4.4). The score is a part of it.": (
            lambda q, k, m, n, theta: _h(q, k, (m - n) * theta)
        ),
        "This is the imaginary part; (4.3) says which one the scalar product is.": (
            lambda q, k, m, n, theta: _h(q, k, (m - n) * theta).imag
        ),
        "This number is the same at all positions: it is the product of the lengths. The score is not all of h.": (
            lambda q, k, m, n, theta: abs(_h(q, k, (m - n) * theta))
        ),
        "You have the lengths and the angle of the positions. But q and k had an angle between them before.": (
            lambda q, k, m, n, theta: _by_lengths(q, k, (m - n) * theta)
        ),
        "Only the distance counts here, and not the side: do not take its absolute value. Exercise 4.1 shows why.": (
            lambda q, k, m, n, theta: _h(q, k, abs(m - n) * theta).real
        ),
        "Only the query turns. At n = 0 that is right; then the key has a position too.": (
            lambda q, k, m, n, theta: _h(q, k, m * theta).real
        ),
        "Your angles are in degrees somewhere; theta is in rad per token.": (
            lambda q, k, m, n, theta: _h(q, k, radians((m - n) * theta)).real
        ),
        "The arc tangent of x_2 / x_1 does not know on which side of the axis a vector points.": (
            lambda q, k, m, n, theta: _by_lengths(q, k, _arctan(q) - _arctan(k) + (m - n) * theta)
        ),
        "It is too small by the root of 2: chapters 4 to 7 do not divide by the root of d.": (
            lambda q, k, m, n, theta: _h(q, k, (m - n) * theta).real / 2**0.5
        ),
    },
)
