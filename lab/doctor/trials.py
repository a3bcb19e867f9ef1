"""How often does the judge err? python -m lab.doctor.trials

It takes the limits of rounding from recorded engines, tries the judge on engines whose mistake is known, or which have
none, and writes what it counted into lab/published_models/doctor_tried.json. The program reads the limits there and
says the counts. An engine is simulated by a row of the table with independent normal noise on each log-probability.
"""

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import numpy as np

import lab
from lab.doctor.engines import HEALTHY, MISTAKEN, USUAL, WORST, Engines
from lab.doctor.judge import STORED, Limits, Rounding, Verdict, distances, judged, tried, what_was_said
from lab.doctor.servers import Answer
from lab.doctor.table import RIGHT, Table

NOISE = (0.01, 0.05, 0.1, 0.2)  # nats, the standard deviation
DRAWS = 200
Choose = Callable[[np.random.Generator, np.ndarray], np.ndarray]


def some(count: int) -> Choose:
    """So many prompts by chance."""
    return lambda rng, lengths: np.sort(rng.permutation(len(lengths))[:count])


SUBSETS: dict[str, Choose] = {
    "all": lambda rng, lengths: np.arange(len(lengths)),
    "64 tokens": lambda rng, lengths: np.flatnonzero(lengths == 64),
    "every second": lambda rng, lengths: np.arange(0, len(lengths), 2),
    "ten": some(10),
    "five": some(5),
    "two": some(2),
    "one token each": lambda rng, lengths: np.arange(len(lengths)),
}


def rounding(names: dict, engines: Engines, table: Table) -> Rounding:
    """Of the noisiest of these engines, and a margin: the next one may exceed it as it exceeds the second."""
    found = {name: left_by(engines.runs[name], table) for name in names}
    first, second, *_ = sorted(found, key=found.get, reverse=True)
    margin = found[first][0] / found[second][0]
    return Rounding(first, *(round(margin * x, 4) for x in found[first]))


def left_by(run: list[Answer | None], table: Table) -> tuple[float, float]:
    """How far an engine is from the right model: mean and spread over places, in nats."""
    apart = distances(what_was_said(run, table), table.known)[table.mistakes.index(RIGHT)]
    return float(np.nanmean(apart)), float(np.nanstd(apart))


def limits(engines: Engines, table: Table, *, without: str | None = None) -> Limits:
    """From the recorded engines, one of them left out."""
    usual, worst = ({name: one for name, one in names.items() if name != without} for names in (USUAL, WORST))
    return Limits(rounding(usual, engines, table), rounding(worst, engines, table))


def outcome(apart: np.ndarray, lengths: np.ndarray, rows: list[str], given: Limits) -> tuple[Verdict, list[str]]:
    """(rows, prompts, 2) distances -> the verdict, and the rows that stand."""
    verdict, stands, _ = judged(apart, lengths, rows.index(RIGHT), given)
    return verdict, [row for row, one in zip(rows, stands, strict=True) if one]


def simulated(
    row: int, noise: float, subset: str, seed: int, table: Table, given: Limits, *, known: np.ndarray | None = None,
    rows: list[str] | None = None,
) -> tuple[Verdict, list[str]]:  # fmt: skip
    """What is said of an engine that is a row of the table with noise; `known` and `rows` may be fewer than its own."""
    rng = np.random.default_rng((row, round(1000 * noise), [*SUBSETS].index(subset), seed))
    lengths = np.array([len(prompt) for prompt in table.prompts])
    chosen = SUBSETS[subset](rng, lengths)
    said = table.known[row, chosen] + rng.normal(0, noise, table.known[row, chosen].shape)
    said = np.where(table.tokens[chosen] >= 0, said, np.nan)
    if subset == "one token each":
        said[:, 1] = np.nan
    known = table.known if known is None else known
    return outcome(distances(said, known[:, chosen]), lengths[chosen], rows or table.mistakes, given)


def healthy(table: Table, given: Limits) -> dict[str, dict[str, int]]:
    """For each noise and subset how often each verdict was given on an engine without a mistake."""
    right, found = table.mistakes.index(RIGHT), {}
    for noise in NOISE:
        for subset in SUBSETS:
            verdicts = [simulated(right, noise, subset, seed, table, given)[0] for seed in range(DRAWS)]
            found[f"{noise}, {subset}"] = counted(verdicts)
    return found


def counted(verdicts: list[Verdict]) -> dict[str, int]:
    """How often each was given."""
    count = Counter(verdict.name for verdict in verdicts)
    return {verdict.name: count[verdict.name] for verdict in Verdict if count[verdict.name]}


def mistaken(table: Table, given: Limits, *, noise: float = 0.05, draws: int = 10) -> dict[str, dict[str, dict]]:
    """For each subset and each mistake how often it was named, among others, missed, and so on."""
    found: dict[str, dict[str, dict]] = {}
    for subset in SUBSETS:
        for row, mistake in enumerate(table.mistakes):
            if mistake != RIGHT:
                said = [simulated(row, noise, subset, seed, table, given) for seed in range(draws)]
                found.setdefault(subset, {})[mistake] = dict(Counter(in_words(mistake, *one) for one in said))
    return found


def in_words(mistake: str, verdict: Verdict, standing: list[str]) -> str:
    """What a verdict is worth where this mistake was made."""
    if verdict is not Verdict.FOUND:
        return verdict.name
    if standing == [mistake]:
        return "named"
    return "named among others" if mistake in standing else "another: " + "; ".join(standing)


def left_out(table: Table, given: Limits, *, noise: float = 0.05, draws: int = 10) -> dict[str, dict]:
    """For each mistake what is said of an engine that makes it when the table does not know it."""
    found = {}
    for row, mistake in enumerate(table.mistakes):
        if mistake != RIGHT:
            known, rows = np.delete(table.known, row, 0), [name for name in table.mistakes if name != mistake]
            options = {"known": known, "rows": rows}
            said = [simulated(row, noise, "all", seed, table, given, **options) for seed in range(draws)]
            found[mistake] = dict(Counter(in_words(mistake, *one) for one in said))
    return found


def recorded(engines: Engines, table: Table) -> dict[str, tuple[str, list[str]]]:
    """For each recorded engine the verdict and the rows that stand; limits are those of the other engines."""
    lengths, found = np.array([len(prompt) for prompt in table.prompts]), {}
    for name in HEALTHY | MISTAKEN:
        run = engines.runs[name]
        asked = [p for p, answer in enumerate(run) if answer is not None]
        apart = distances(what_was_said(run, table), table.known)[:, asked]
        verdict, standing = outcome(apart, lengths[asked], table.mistakes, limits(engines, table, without=name))
        found[name] = (verdict.name, standing)
    return found


def parts_of_recorded(engines: Engines, table: Table, *, draws: int = 50) -> dict[str, dict[str, int]]:
    """For each healthy engine how often each verdict was given on ten, five and two of its recorded answers."""
    lengths, found = np.array([len(prompt) for prompt in table.prompts]), {}
    for name in HEALTHY:
        asked = np.array([p for p, answer in enumerate(engines.runs[name]) if answer is not None])
        apart = distances(what_was_said(engines.runs[name], table), table.known)
        given, verdicts = limits(engines, table, without=name), []
        for subset in ("ten", "five", "two"):
            for seed in range(draws):
                chosen = asked[SUBSETS[subset](np.random.default_rng(seed), lengths[asked])]
                verdicts.append(outcome(apart[:, chosen], lengths[chosen], table.mistakes, given)[0])
        found[name] = counted(verdicts)
    return found


def of_own(table: Table, *, draws: int = 200) -> dict[str, float]:
    """A short trial with another model's table: healthy engines, and each mistake in five, all prompts answered.

    The noise is 0.05 nats, or as much more as the limit of usual rounding is wider.
    """
    given, right = Limits.of(table), table.mistakes.index(RIGHT)
    noise = round(0.05 * given.usual.mean / Limits.stored().usual.mean, 2)
    verdicts = counted([simulated(right, noise, "all", seed, table, given)[0] for seed in range(draws)])
    said = Counter(
        in_words(mistake, *simulated(row, noise, "all", seed, table, given)).split(":")[0]
        for row, mistake in enumerate(table.mistakes)
        if row != right
        for seed in range(5)
    )
    return {
        "noise": noise,
        "healthy": draws,
        "accused": sum(verdicts.get(name, 0) for name in ACCUSED),
        "mistaken": said.total(),
        "named": said["named"] + said["named among others"],
        "missed": said[Verdict.NOTHING.name],
        "misnamed": said["another"],
    }


ACCUSED = (Verdict.FOUND.name, Verdict.UNKNOWN.name)


def all_trials(engines: Engines, table: Table) -> dict:
    """What the file holds."""
    given = limits(engines, table)
    by_noise, of_engines = healthy(table, given), recorded(engines, table)
    return {
        "limits": {name: vars(getattr(given, name)) for name in ("usual", "worst")},
        "bfloat16": round(left_by(engines.runs["bfloat16"], table)[0], 4),
        "healthy": {
            "draws": DRAWS * len(by_noise),
            "noise": max(NOISE),
            "accused": sum(count.get(name, 0) for count in by_noise.values() for name in ACCUSED),
            "undecided": sum(count.get(Verdict.UNDECIDED.name, 0) for count in by_noise.values()),
            "engines": len(HEALTHY),
            "engines accused": sum(of_engines[name][0] in ACCUSED for name in HEALTHY),
            "by noise and subset": by_noise,
        },
        "mistaken": mistaken(table, given),
        "left out": left_out(table, given),
        "left out, without noise": left_out(table, given, noise=0.0, draws=1),
        "recorded": of_engines,
        "parts of recorded": parts_of_recorded(engines, table),
    }


def main() -> None:
    """Write the file; what an earlier judge did is kept."""
    found = all_trials(Engines.stored(), Table.stored()) | {"before": tried()["before"]}
    (Path(lab.__file__).parent / STORED).write_text(json.dumps(found) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
