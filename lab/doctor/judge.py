"""What answers say: how far they are from the right model and from each mistake, and what follows.

The model behind it: an engine says what one row of the table says, and rounding. Rounding is no more than in engines
that were recorded. To eight bits or more it does not grow, neither with the length of a prompt, nor from the first
token behind it to the second. So a row *explains* the answers if what it leaves is no more than that and does not grow.
The nearest of these rows is then compared with each other one, place by place, in units of what it leaves. The sum, the
*evidence*, is the logarithm of a ratio of likelihoods (where rounding has Laplace's distribution), which chance makes
as large as t no more often than exp(-t). A row that is not beaten *stands*. If the right model stands, nothing is said
to be wrong.
"""

import json
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import cache, cached_property, partial
from math import log, sqrt

import numpy as np

import lab
from lab.doctor.servers import Answer
from lab.doctor.table import RIGHT, Table

STORED = "published_models/doctor_tried.json"  # below lab; lab/doctor/trials.py writes it
RARE = 1e-3  # how often chance may deceive
DEVIATIONS = 3.1  # of a normal distribution; beyond them lies one of a thousand
FINEST = 0.02  # nats: what a place counts is not measured in finer units
MOST = 3.0  # in these units one place counts no more than that


@cache
def tried() -> dict:
    """What lab/doctor/trials.py has found."""
    return json.loads(pkgutil.get_data(lab.__name__, STORED))


class Verdict(Enum):
    """What was found."""

    NOTHING = "nothing wrong that these prompts would show"
    FOUND = "a mistake of the table"
    UNKNOWN = "something that is not in the table"
    UNDECIDED = "not decided"


STATUS = {Verdict.NOTHING: 0, Verdict.FOUND: 1, Verdict.UNKNOWN: 1, Verdict.UNDECIDED: 3}


@dataclass(frozen=True)
class Rounding:
    """How far a healthy engine may be from the right model: mean and spread over places, in nats, with a margin.

    `engine` is the noisiest of those that were recorded.
    """

    engine: str
    mean: float
    spread: float

    def at_most(self, places: int | np.ndarray) -> float | np.ndarray:
        """The mean over so many places, but for one case in a thousand."""
        return self.mean + DEVIATIONS * self.spread / np.sqrt(places)


@dataclass(frozen=True)
class Limits:
    """Of rounding.

    Attributes:
        usual: the published file, or its weights in eight bits or more, and a cache in eight or more.
        worst: weights rounded once more, to five or four bits, or a cache in so few.
    """

    usual: Rounding
    worst: Rounding

    @classmethod
    def stored(cls) -> "Limits":
        """As they were found of SmolLM2."""
        return cls(**{name: Rounding(**one) for name, one in tried()["limits"].items()})

    @classmethod
    def of(cls, table: Table) -> "Limits":
        """The stored ones; the usual one is wider where this model leaves more in bfloat16 than SmolLM2 does.

        With SmolLM2 llama.cpp's server left twice what bfloat16 leaves, both behind texts and behind drawn tokens.
        """
        stored = cls.stored()
        if table.rounded is None:
            return stored
        right = table.known[table.mistakes.index(RIGHT)]
        apart = distances(np.where(table.tokens >= 0, table.rounded, np.nan), right)
        scale = max(1.0, float(np.nanmean(apart)) / tried()["bfloat16"])
        usual = Rounding(stored.usual.engine, scale * stored.usual.mean, scale * stored.usual.spread)
        return cls(usual, max(usual, stored.worst, key=lambda one: one.mean))


@dataclass(frozen=True)
class Diagnosis:
    """What the answers say.

    Attributes:
        lengths: of the prompts that were answered, in tokens.
        refused: of those that were not.
        apart: (rows, prompts, 2) distances in nats, of the prompts that were answered; NaN where a place is missing.
        table: what they were compared with.
        verdict: what follows.
        standing: the rows that explain the answers and are not beaten, RIGHT first, then the nearest first.
        grows: for each row whether what it leaves grows.
        usual: what usual rounding leaves at most at so many places.
        worst: what four bits leave at most.
        ask_what_shows: computes `shows`.
    """

    lengths: list[int]
    refused: list[int]
    apart: np.ndarray
    table: Table
    verdict: Verdict
    standing: list[str]
    grows: dict[str, bool]
    usual: float
    worst: float
    ask_what_shows: Callable[[], dict[str, int | None]] = dict

    @property
    def rows(self) -> list[str]:
        """Their names."""
        return self.table.mistakes

    @cached_property
    def shows(self) -> dict[str, int | None]:
        """See `would_show`."""
        return self.ask_what_shows()

    @cached_property
    def level(self) -> dict[str, float]:
        """The mean distance from each row, the nearest first."""
        mean = mean_of(self.apart)
        return {self.rows[i]: float(mean[i]) for i in np.argsort(mean, kind="stable")}

    def of_length(self, row: str, length: int) -> float:
        """The mean distance over prompts of this length."""
        return float(mean_of(self.apart[self.rows.index(row), np.array(self.lengths) == length]))

    def votes(self, row: str, other: str) -> tuple[int, int]:
        """In how many prompts `row` is nearer, and in how many farther, by more than half a unit."""
        a, b = (mean_of(self.apart[self.rows.index(name)], -1) for name in (row, other))
        unit = max(float(mean_of(self.apart[self.rows.index(row)])), FINEST) / 2
        return int((b - a > unit).sum()), int((a - b > unit).sum())


# -- Distances ---------------------------------------------------------------------------------------------------------


def what_was_said(answers: list[Answer | None], table: Table) -> np.ndarray:
    """(rows, prompts, 2, T) log-probabilities of the table's tokens, as each row sees them; NaN where nothing is known.

    A token that the engine did not name is not likelier than the last one that it named: if the row says less, nothing
    speaks against it. The second place counts only if the first token, which stands before it, is the one that was
    computed with; where two are equally likely, it is not known which one was written.
    """
    said = np.full(table.known.shape, np.nan)
    for p, answer in enumerate(answers):
        for place, likely in enumerate((answer or [])[:2]):
            if place == 0 or likeliest(answer[0]) == [table.tokens[p, 0, 0]]:
                named = np.array([likely.get(int(token), np.nan) for token in table.tokens[p, place]])
                at_most = np.minimum(min(likely.values()), table.known[:, p, place])
                said[:, p, place] = np.where(np.isnan(named), at_most, named)
    return np.where(table.tokens >= 0, said, np.nan)


def likeliest(said: dict[int, float]) -> list[int]:
    """The token of the highest log-probability, or those that share it."""
    highest = max(said.values())
    return [token for token, x in said.items() if x == highest]


def distances(said: np.ndarray, known: np.ndarray) -> np.ndarray:
    """(..., T) twice -> (...): the mean difference of log-probabilities in nats; NaN where nothing was said.

    Each token is weighed by the larger of its two probabilities.
    """
    apart = abs(said - known)
    weight = np.where(np.isnan(apart), 0.0, np.exp(np.fmax(said, known)))
    with np.errstate(invalid="ignore"):  # 0 / 0 where there was no answer
        return (weight * np.nan_to_num(apart)).sum(-1) / weight.sum(-1)


# -- What follows ------------------------------------------------------------------------------------------------------


def rises(apart: np.ndarray, lengths: np.ndarray) -> np.ndarray:
    """(rows, prompts, 2) distances -> (2, rows): whether they grow with the length, and from the first token on.

    Ranks are compared, so that one prompt cannot decide: Spearman's coefficient of correlation with the length, and
    the number of prompts whose second place is farther than the first. What is below FINEST counts as equal.
    """
    apart = np.fmax(apart, np.where(np.isnan(apart), np.nan, FINEST))
    mean = mean_of(apart, -1)
    a, b = (centred(ranked(x)) for x in (mean, np.where(np.isnan(mean), np.nan, lengths)))
    norm = np.sqrt(np.nansum(a**2, -1) * np.nansum(b**2, -1))
    with_length = np.nansum(a * b, -1) / np.where(norm > 0, norm, np.inf) * sqrt(max(len(lengths) - 1, 0))
    signs = np.sign(apart[..., 1] - apart[..., 0])
    count = (~np.isnan(signs)).sum(-1)
    with_place = np.nansum(signs, -1) / np.sqrt(np.maximum(count, 1))
    return np.stack((with_length, with_place)) > DEVIATIONS


def ranked(x: np.ndarray) -> np.ndarray:
    """(..., n) -> (..., n) ranks, the mean one for equals, NaN for NaN."""
    below, up_to = x[..., None, :] < x[..., :, None], x[..., None, :] <= x[..., :, None]
    return np.where(np.isnan(x), np.nan, (below.sum(-1) + up_to.sum(-1) + 1) / 2)


def centred(x: np.ndarray) -> np.ndarray:
    """(..., n) -> (..., n) less the mean."""
    return x - mean_of(x, -1)[..., None]


def mean_of(x: np.ndarray, axis: int | tuple[int, ...] = (-2, -1)) -> np.ndarray:
    """Of what is not NaN; NaN where nothing is."""
    count = (~np.isnan(x)).sum(axis)
    return np.where(count > 0, np.nansum(x, axis) / np.maximum(count, 1), np.nan)


def evidence(apart: np.ndarray, best: int) -> np.ndarray:
    """(rows, prompts, 2) distances -> (rows,): how much speaks for the row `best` and against each."""
    unit = max(float(mean_of(apart[best])), FINEST)
    return np.nansum(np.clip((apart - apart[best]) / unit, -MOST, MOST), (1, 2))


def within(apart: np.ndarray, lengths: np.ndarray, rounding: Rounding) -> np.ndarray:
    """(rows, prompts, 2) distances -> (rows,): whether rounding leaves as much, at each length and in all."""
    found = np.ones(len(apart), dtype=bool)
    for some in (lengths > 0, *(lengths == length for length in np.unique(lengths))):
        places = (~np.isnan(apart[:, some])).sum((1, 2))
        found &= ~(mean_of(apart[:, some]) > rounding.at_most(np.maximum(places, 1)))
    return found


def judged(
    apart: np.ndarray, lengths: np.ndarray, right: int, limits: Limits
) -> tuple[Verdict, np.ndarray, np.ndarray]:
    """(rows, prompts, 2) distances -> what follows, (rows,) which ones stand, and (rows,) which ones grow."""
    (longer, later), level, enough = rises(apart, lengths), mean_of(apart), log(len(apart) / RARE)
    usual = within(apart, lengths, limits.usual)
    explains = usual & ~longer & ~later
    best = int(np.where(explains if explains.any() else ~np.isnan(level), level, np.inf).argmin())
    beaten = evidence(apart, best) > enough
    stands = explains & ~beaten
    if explains.any():
        verdict = Verdict.NOTHING if stands[right] else Verdict.FOUND
        undecided = stands.all() or not (stands[right] or beaten[right])
    else:  # a cache in few bits grows with the length, too; but it favours no mistake, and no place
        verdict = Verdict.UNKNOWN
        coarse = within(apart[[right]], lengths, limits.worst)[0] and not usual[right]
        undecided = coarse and not (beaten[right] or later[right])
    return Verdict.UNDECIDED if undecided else verdict, stands, longer | later


def diagnose(answers: list[Answer | None], table: Table, limits: Limits | None = None) -> Diagnosis | None:
    """What the answers say; None if there is none."""
    given = [p for p, answer in enumerate(answers) if answer is not None]
    if not given:
        return None
    limits, right = limits or Limits.of(table), table.mistakes.index(RIGHT)
    lengths = np.array([len(prompt) for prompt in table.prompts])
    apart = distances(what_was_said(answers, table), table.known)[:, given]
    verdict, stands, grows = judged(apart, lengths[given], right, limits)
    level, places = mean_of(apart), int((~np.isnan(apart[right])).sum())
    order = sorted(np.flatnonzero(stands), key=lambda row: (row != right, level[row]))
    return Diagnosis(
        lengths=lengths[given].tolist(),
        refused=[length for p, length in enumerate(lengths.tolist()) if p not in given],
        apart=apart,
        table=table,
        verdict=verdict,
        standing=[table.mistakes[row] for row in order],
        grows=dict(zip(table.mistakes, grows.tolist(), strict=True)),
        usual=limits.usual.at_most(places),
        worst=limits.worst.at_most(places),
        ask_what_shows=partial(would_show, answers, table, limits),
    )


def would_show(answers: list[Answer | None], table: Table, limits: Limits | None = None) -> dict[str, int | None]:
    """For each mistake the shortest of the lengths that were answered up to which prompts would show it; None: none.

    It is put into the answers: to what the engine said, what the mistake says is added, less what the right model says.
    So the engine keeps its own rounding. The prompts up to each length are then judged.
    """
    limits, right = limits or Limits.of(table), table.mistakes.index(RIGHT)
    given = [p for p, answer in enumerate(answers) if answer is not None]
    lengths = np.array([len(table.prompts[p]) for p in given])
    known = table.known[:, given]
    said = what_was_said(answers, table)[right, given] - known[right]
    found: dict[str, int | None] = {}
    for row, mistake in enumerate(table.mistakes):
        if row != right:
            apart = distances(known[row] + said, known)
            shows = (
                int(length)
                for length in np.unique(lengths)
                if judged(apart[:, lengths <= length], lengths[lengths <= length], right, limits)[0]
                in (Verdict.FOUND, Verdict.UNKNOWN)
            )
            found[mistake] = next(shows, None)
    return found
