"""What answers say: how far they are from the right model and from each mistake, and what follows."""

from dataclasses import dataclass
from textwrap import fill

import numpy as np

from lab.doctor.servers import Answer
from lab.doctor.table import CAUSES, RIGHT, Table

WIDTH = 76  # of a report, in letters
SAME = 0.03  # nats: nearer mistakes are not told apart
NEAR = 0.5  # an engine that is farther than that from everything has something else


@dataclass(frozen=True)
class Diagnosis:
    """How far an engine is from the right model, and from each mistake.

    Attributes:
        lengths: of the prompts that were answered, in tokens.
        refused: of those that were not.
        apart: for each mistake the mean distance in nats.
        nearest: the mistake that explains the answers best.
        rival: the best of those that say something else.
        same: the mistakes that say the same as `nearest` behind these prompts.
        votes: for each prompt the nats by which `nearest` is nearer than `rival`.
    """

    lengths: list[int]
    refused: list[int]
    apart: dict[str, float]
    nearest: str
    rival: str
    same: list[str]
    votes: np.ndarray

    @property
    def nearer(self) -> int:
        """In how many prompts `nearest` is nearer than `rival`."""
        return int((self.votes > SAME).sum())

    @property
    def farther(self) -> int:
        """In how many it is farther."""
        return int((self.votes < -SAME).sum())

    @property
    def found(self) -> str | None:
        """What is wrong, RIGHT if nothing is, None if that is not decided."""
        known = self.apart[self.nearest] <= NEAR
        return self.nearest if known and self.nearer > self.farther else None


def distances(answers: list[Answer | None], table: Table) -> np.ndarray:
    """(mistakes, prompts): how far the engine is from each mistake, in nats; NaN where there was no answer.

    The mean over places and tokens of the difference of log-probabilities, each token weighed by the larger of its two
    probabilities. A token that the engine did not name is not likelier than the last one that it named. The second
    place counts only if the first token, which stands before it, is the one that was computed with.
    """
    said = np.full(table.known.shape, np.nan)
    for p, answer in enumerate(answers):
        for place, likely in enumerate((answer or [])[:2]):
            if place == 0 or max(answer[0], key=answer[0].get) == table.tokens[p, 0, 0]:
                named = np.array([likely.get(int(token), np.nan) for token in table.tokens[p, place]])
                at_most = np.minimum(min(likely.values()), table.known[:, p, place])
                said[:, p, place] = np.where(np.isnan(named), at_most, named)
    counted = (table.tokens >= 0) & ~np.isnan(said)
    weight = np.where(counted, np.exp(np.fmax(said, table.known)), 0.0)
    apart = np.where(counted, abs(said - table.known), 0.0)
    with np.errstate(invalid="ignore"):  # 0 / 0 where there was no answer
        return (weight * apart).sum((-2, -1)) / weight.sum((-2, -1))


def between(first: str, second: str, table: Table, given: list[int]) -> float:
    """How far two mistakes are from each other behind these prompts, in nats."""
    a, b = (table.known[table.mistakes.index(name)][given] for name in (first, second))
    weight = np.where(table.tokens[given] >= 0, np.exp(np.maximum(a, b)), 0.0)
    return float((weight * abs(a - b)).sum() / weight.sum())


def diagnose(answers: list[Answer | None], table: Table) -> Diagnosis | None:
    """What the answers say; None if there is none."""
    given = [p for p, answer in enumerate(answers) if answer is not None]
    if not given:
        return None
    apart = dict(zip(table.mistakes, distances(answers, table)[:, given], strict=True))
    mean = {mistake: float(rows.mean()) for mistake, rows in apart.items()}
    nearest, *others = sorted(mean, key=mean.get)
    same = [mistake for mistake in others if between(nearest, mistake, table, given) < SAME]
    rival = next(mistake for mistake in others if mistake not in same)
    lengths = [len(prompt) for prompt in table.prompts]
    return Diagnosis(
        lengths=[lengths[p] for p in given],
        refused=[length for p, length in enumerate(lengths) if p not in given],
        apart=mean,
        nearest=nearest,
        rival=rival,
        same=same,
        votes=apart[rival] - apart[nearest],
    )


def report(seen: Diagnosis | None) -> str:
    """What was found, how sure it is, and what it cannot be told from."""
    if seen is None:
        return "No prompt was answered: nothing can be said."
    answered = len(seen.lengths)
    lines = [f"{answered} of {answered + len(seen.refused)} prompts were answered.", ""]
    shown = [seen.nearest, seen.rival]
    if RIGHT not in shown:
        shown.append(RIGHT)
    lines += [f"  {seen.apart[name]:5.2f} nats from: {named(name)}" for name in shown]
    lines.append("")
    if seen.apart[seen.nearest] > NEAR:
        lines.append("None of the mistakes that this program knows explains it. Is it SmolLM2-135M-Instruct at all?")
        return "\n".join(lines)
    if seen.found is None:
        lines.append(f"Not decided between {named(seen.nearest)} and {named(seen.rival)}.")
        return "\n".join(lines)
    lines += [f"Found: {named(seen.found)}.", fill(CAUSES[seen.found], WIDTH)]
    lines.append(f"How sure: nearer than the next in {seen.nearer} prompts, farther in {seen.farther};")
    lines.append(f"in {answered - seen.nearer - seen.farther} the two say the same.")
    hidden = list(seen.same)
    if seen.found == RIGHT:
        hidden.append("a shift of all positions, which changes nothing")
    if hidden:
        lines.append(fill(f"It cannot be told from: {'; '.join(hidden)}.", WIDTH))
    if seen.refused and min(seen.refused) > max(seen.lengths):
        lines.append(f"Prompts of {min(seen.refused):,} tokens and more were refused: nothing is said of such texts.")
    return "\n".join(lines)


def named(mistake: str) -> str:
    """As a report says it."""
    return "nothing wrong" if mistake == RIGHT else mistake
