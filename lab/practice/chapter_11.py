"""Chapter 11: the standard error of the difference of two accuracies, on separate cases and on the same ones."""

from math import sqrt

from lab.practice import Exercise

Errors = tuple[float, float]


def _shares(both: int, first: int, second: int, neither: int) -> tuple[int, float, float]:
    """The number of cases, and the shares that the two models have right."""
    n = both + first + second + neither
    return n, (both + first) / n, (both + second) / n


def _separate(a: float, b: float, n: float) -> float:
    return 100 * sqrt((a * (1 - a) + b * (1 - b)) / n)


def _same(n: float, first: int, second: int, cases: int) -> float:
    """Of differences that are 1, -1 or 0: the mean of the squares less the square of the mean."""
    return 100 * sqrt(((first + second) / cases - ((first - second) / cases) ** 2) / n)


def _right(both: int, first: int, second: int, neither: int) -> Errors:
    n, a, b = _shares(both, first, second, neither)
    return _separate(a, b, n), _same(n, first, second, n)


def _swapped(*counts: int) -> Errors:
    separate, same = _right(*counts)
    return same, separate


def _of_one_model(*counts: int) -> Errors:
    n, a, _ = _shares(*counts)
    return 100 * sqrt(a * (1 - a) / n), _right(*counts)[1]


def _added(*counts: int) -> Errors:
    n, a, b = _shares(*counts)
    return 100 * (sqrt(a * (1 - a) / n) + sqrt(b * (1 - b) / n)), _right(*counts)[1]


def _pooled(*counts: int) -> Errors:
    n, a, b = _shares(*counts)
    return _separate((a + b) / 2, (a + b) / 2, n), _right(*counts)[1]


def _without_root(*counts: int) -> Errors:
    separate, same = _right(*counts)
    return separate**2 / 100, same**2 / 100


def _equally_good(both: int, first: int, second: int, neither: int) -> Errors:
    n, a, b = _shares(both, first, second, neither)
    return _separate(a, b, n), 100 * sqrt(first + second) / n


def _only_where_they_differ(both: int, first: int, second: int, neither: int) -> Errors:
    n, a, b = _shares(both, first, second, neither)
    return _separate(a, b, n), _same(first + second, first, second, first + second)


def _mistaken_size(both: int, first: int, second: int, neither: int, change: int) -> Errors:
    n, a, b = _shares(both, first, second, neither)
    return _separate(a, b, n + change), _same(n + change, first, second, n)


WHERE = 'Reread chapter 11, "Is that much?".'

exercise = Exercise(
    asked="standard_errors(both, first, second, neither)",
    right=_right,
    cases=[(2, 1, 0, 1), (3, 2, 1, 4), (40, 30, 10, 20), (950, 122, 96, 368)],
    mistakes={
        "The two are the wrong way round: first as if on cases of their own, then on the same ones.": _swapped,
        "Both numbers take the models for independent. On the same cases they often go wrong together: "
        "what is the spread of the difference in *one* case?": lambda *counts: (_right(*counts)[0],) * 2,
        "Both numbers are those for the same cases. What if each model had cases of its own?": (
            lambda *counts: (_right(*counts)[1],) * 2
        ),
        f"The first number is that of one model alone. A difference has the accidents of both. {WHERE}": _of_one_model,
        "The errors of the two were added. Accidents of two models seldom go the same way: what is it that adds up?": (
            _added
        ),
        "The first number gives both models one share, their mean. Each has its own.": _pooled,
        "These are variances. What turns a mean square into a length?": _without_root,
        "These are shares. Asked are points, hundredths of the cases.": (
            lambda *counts: tuple(error / 100 for error in _right(*counts))
        ),
        "The second number takes the models for equally good, as Exercise 11.3 does. The gap that was seen is no "
        "accident: measure from it.": _equally_good,
        "The second number looks only at the cases in which they differ. The others were asked, too.": (
            _only_where_they_differ
        ),
        "You divide by n - 1, as one does for a sample. Here shares stand for probabilities: by what?": (
            lambda *counts: _mistaken_size(*counts, change=-1)
        ),
        "These are two standard errors each, the usual width of an interval. Asked is one of each kind.": (
            lambda *counts: tuple(2 * error for error in _right(*counts))
        ),
        "You divide by twice the cases: how many did each model answer?": (
            lambda *counts: _mistaken_size(*counts, change=sum(counts))
        ),
    },
)
