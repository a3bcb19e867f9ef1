"""Definitions as plain loops over Python floats: slow, obvious, and what the tests trust."""

from math import cos, pi, sin

Vector = list[float]


def inverse_frequency(pair: int, dim: int, base: float = 10000.0) -> float:
    """theta_i = base^(-2i / dim), in rad per token.

    Example:
        >>> inverse_frequency(1, 4, base=100)
        0.1
    """
    return base ** (-2 * pair / dim)


def sinusoidal_encoding(position: float, dim: int, base: float = 10000.0) -> Vector:
    """The code of one position: sin in the even places, cos in the odd ones (Vaswani et al. 2017, section 3.5).

    Example:
        >>> [round(x, 4) for x in sinusoidal_encoding(1, 4, base=100)]
        [0.8415, 0.5403, 0.0998, 0.995]
    """
    code = []
    for pair in range(dim // 2):
        angle = position * inverse_frequency(pair, dim, base)
        code += [sin(angle), cos(angle)]
    return code


def rotate(x: Vector, m: float, *, interleaved: bool, base: float = 10000.0) -> Vector:
    """R_m x for one vector (Su et al. 2021, equation 15), in one of the two layouts.

    Example:
        >>> [round(x, 4) for x in rotate([1, 0], 1, interleaved=True)]
        [0.5403, 0.8415]
    """
    turned, half = list(x), len(x) // 2
    for pair in range(half):
        first = 2 * pair if interleaved else pair
        second = first + (1 if interleaved else half)
        angle = m * inverse_frequency(pair, 2 * half, base)
        turned[first] = x[first] * cos(angle) - x[second] * sin(angle)
        turned[second] = x[first] * sin(angle) + x[second] * cos(angle)
    return turned


def ntk_by_parts_frequency(
    pair: int, dim: int, factor: float, length: int, beta_fast: float, beta_slow: float, base: float = 10000.0
) -> float:
    """One speed under NTK-by-parts (Peng et al. 2023, section 3.2).

    Example:
        >>> ntk_by_parts_frequency(0, 4, 8, 2048, 32, 1)  # fast: as it was
        1.0
    """
    speed = inverse_frequency(pair, dim, base)
    turns = length * speed / (2 * pi)
    if turns >= beta_fast:
        return speed
    if turns <= beta_slow:
        return speed / factor
    keep = (turns - beta_slow) / (beta_fast - beta_slow)
    return keep * speed + (1 - keep) * speed / factor
