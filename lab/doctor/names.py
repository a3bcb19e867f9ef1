"""How an engine names tokens: by their numbers or by their texts, each in several spellings. Its answers tell which."""

import json
import math
import re
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass

from lab.vocabulary import BYTES, text_of

Key = Callable[[str], str]


def _as_it_is(text: str) -> str:
    return text


def _read_pieces(name: str) -> str:
    return text_of(name) if all(letter in BYTES for letter in name) else name


# What of a token's text a name keeps, and how it is read. Where two explain the names equally well, the first is taken:
# a name of the others would say more than it does.
SPELLINGS: dict[str, tuple[Key, Key]] = {
    "their texts without white space": (str.strip, _as_it_is),
    "their texts without the spaces in front": (lambda text: text.lstrip(" "), _as_it_is),
    "their texts without the space in front": (lambda text: text.removeprefix(" "), _as_it_is),
    "their texts": (_as_it_is, _as_it_is),
    "their texts, with ▁ for a space": (_as_it_is, lambda name: name.replace("▁", " ")),
    "pieces of GPT-2's vocabulary": (_as_it_is, _read_pieces),
}
NUMBER = re.compile(r"(\D*)([0-9]{1,9})(\D*)")
# Of the probability that an engine names, this much is on tokens of the table. Behind five prompts it was 0.66 and more
# with each mistake that was tried, known or not, and 0.25 behind the least lucky single one; where the names are upside
# down, or in capitals, it is up to 0.58.
KNOWN, PROMPTS, KNOWN_OF_FEWER = 0.6, 5, 0.2
UNSURE = 0.05  # of the probability may be on names that stand for several tokens


class NotUnderstood(Exception):
    """The engine answered, in a form that is not known here.

    Attributes:
        kind: what is not understood.
        example: of this answer.
    """

    def __init__(self, kind: str, example: str = ""):
        super().__init__(f"{kind}: {example}" if example else kind)
        self.kind, self.example = kind, example


@dataclass(frozen=True)
class Place:
    """What an engine says of one token behind a prompt.

    Attributes:
        name: of the token that it wrote.
        logarithm: of its probability.
        likely: the names of the likeliest tokens, and their log-probabilities; two tokens may have one name.
    """

    name: str
    logarithm: float
    likely: list[tuple[str, float]]


@dataclass(frozen=True)
class Naming:
    """One way of naming tokens.

    Attributes:
        kind: in words.
        numbers: the tokens that a name stands for.
    """

    kind: str
    numbers: Callable[[str], Iterable[int]]


def namings(names: Iterable[str], words: dict[int, str]) -> Iterator[Naming]:
    """The ways in which these names may be meant: as numbers, if all are, with the same words around each; as texts."""
    around = {part and part.group(1, 3) for part in map(NUMBER.fullmatch, names)}
    if len(around) == 1 and (words_around := around.pop()):

        def number_in(name: str) -> list[int]:
            part = NUMBER.fullmatch(name)
            return [int(part[2])] if part and part.group(1, 3) == words_around else []

        yield Naming("their numbers", number_in)
    for kind, (kept, read) in SPELLINGS.items():
        numbers = defaultdict(list)
        for number, word in words.items():
            numbers[kept(word)].append(number)
        yield Naming(kind, lambda name, numbers=numbers, read=read: numbers.get(read(name), ()))


def naming_of(answers: list[list[Place]], words: dict[int, str]) -> Naming:
    """The way in which most of the probability is on tokens that are known.

    Args:
        answers: for each prompt that was answered its places.
        words: the texts of the tokens that are known, by number.

    Raises:
        NotUnderstood: in each way hardly any is.
    """
    mass = Counter()
    for place in (place for places in answers for place in places):
        for name, x in place.likely or [(place.name, place.logarithm)]:
            mass[name] += math.exp(x)

    def known(naming: Naming) -> float:
        return round(sum(p for name, p in mass.items() if any(number in words for number in naming.numbers(name))), 6)

    best = max(namings(mass, words), key=known)
    share = known(best) / max(mass.total(), 1e-9)
    if share < (KNOWN if len(answers) >= PROMPTS else KNOWN_OF_FEWER):
        foreign = [name for name, _ in mass.most_common() if not any(n in words for n in best.numbers(name))]
        raise NotUnderstood(
            "its names of tokens are not understood",
            f"{', '.join(json.dumps(name[:40], ensure_ascii=False) for name in foreign[:3])} ({share:.0%} of the "
            "probability is on names that are known here). It may be another form of names, or another model.",
        )
    return best


def numbered(place: Place, naming: Naming, among: Iterable[int]) -> dict[int, float] | None:
    """The log-probabilities of a place by the tokens' numbers; None if it cannot be said which tokens are meant.

    A name that is not one of `among` gets a negative number of its own, so that its probability still counts.

    Args:
        place: as the engine gives it.
        naming: its way of naming tokens.
        among: the tokens that matter here.
    """
    among, found, unsure = {*among}, {}, 0.0
    said: dict[str, float] = {}
    for name, x in place.likely:
        said[name] = max(x, said.get(name, x))
    for other, (name, x) in enumerate(said.items(), start=2):
        tokens = [*naming.numbers(name)]
        here = [token for token in tokens if token in among]
        if len(tokens) > 1 and name == place.name:  # a lesser token of this name may have taken its place
            x = max(x, place.logarithm)
        if len(here) > 1:
            unsure += math.exp(x)
        found[here[0] if len(here) == 1 else tokens[0] if len(tokens) == 1 else -other] = x
    return found if unsure <= UNSURE else None
