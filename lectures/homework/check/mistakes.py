"""What goes wrong most often. A sentence says what, and never the right formula."""

import math

from .pages import BUFFER, FORMS, HEADS, LAYOUTS, MATRIX, METHODS, POSITIONS, SIGNS, SPEEDS, STACK, WHICH
from .runner import Mistake


def mistake(page: str, *, says: str, **knobs) -> Mistake:
    """The same, easier to read in a list."""
    return Mistake(says, page, knobs)


# fmt: off
TABLE_MISTAKES = [
    mistake(SPEEDS, exponent=lambda pair, dim: -pair / dim, says=
        "Your speeds fall half as fast as they should, so the slow pairs are much too fast. Did a 2 get lost in the"
        " exponent?"),
    mistake(SPEEDS, exponent=lambda pair, dim: -4 * pair / dim, says=
        "Your speeds fall twice as fast as they should. Do you divide by the number of pairs where it should be the"
        " dimension, or count dimensions in steps of two and double them once more?"),
    mistake(SPEEDS, exponent=lambda pair, dim: -2 * (pair + 1) / dim, says=
        "Each pair has the speed of the next one: pairs counted from 1. The first pair should turn by 1 rad per"
        " token, whatever the base."),
    mistake(SPEEDS, exponent=lambda pair, dim: -2 * (pair - 1) / dim, says=
        "Each pair has the speed of the one before it. The first paper counts pairs from 1, and here they count from"
        " 0: the first one should turn by 1 rad per token, whatever the base."),
    mistake(SPEEDS, exponent=lambda pair, dim: -2 * pair, times=lambda pair, dim: 1 / dim, says=
        "Your division by the dimension falls on the power, and it belongs in the exponent: look at the brackets. The"
        " first pair should turn by 1 rad per token, whatever the dimension."),
    mistake(SPEEDS, exponent=lambda pair, dim: -2, times=lambda pair, dim: pair / dim, says=
        "Only a part of your exponent is in the power, and the rest is multiplied afterwards: look at the brackets."
        " The first pair does not turn at all."),
    mistake(SPEEDS, exponent=lambda pair, dim: 2 * pair / dim, says=
        "Your pairs get faster where they should get slower. Look at the sign of the exponent, or for a division"
        " that should be a product."),
    mistake(SPEEDS, exponent=lambda pair, dim: -pair / max(dim / 2 - 1, 1), says=
        "Your slowest pair has the speed 1 / base, which is one step too far: do your exponents run from end to end,"
        " the last point included?"),
    mistake(SPEEDS, exponent=lambda pair, dim: 0, says=
        "All pairs turn equally fast, by 1 rad per token. Where did the exponent go: a whole-number division (//)?"),
    mistake(SPEEDS, exponent=lambda pair, dim: -2 * pair // dim, says=
        "All pairs but the first have the speed 1 / base. Is there a whole-number division (//) in your exponent?"),
    mistake(SPEEDS, only_base=10000.0, says=
        "Right for base 10000 only: the base that is given is not used."),
    mistake(SPEEDS, only_base=500_000.0, says="You turn with base 500,000, whatever base is given."),
    mistake(SPEEDS, only_base=1_000_000.0, says="You turn with base 1,000,000, whatever base is given."),
    mistake(WHICH, shift=1, says=
        "Every word is turned as if it stood one place further on: positions counted from 1. At position 0 nothing"
        " may move."),
    mistake(POSITIONS, counted=True, says=
        "You count 0, 1, 2, ... yourself and do not look at the positions that are given. Behind a cache they begin"
        " elsewhere."),
    mistake(POSITIONS, sort=True, says=
        "Your rows come in rising order. Each row belongs to the position that stands in its place, in any order."),
    mistake(SIGNS, factor=-1, says=
        "Rotated backwards: every cosine is right and every sine has the wrong sign. At position 1 all sines should"
        " be positive."),
    mistake(MATRIX, swapped=True, says=
        "Cosines and sines have changed places. At position 0 every cosine should be 1."),
    mistake(SPEEDS, factor=math.pi / 180, says=
        "Your angles are converted from degrees. The speeds are in rad per token already, and that is what torch.cos"
        " expects."),
    mistake(SPEEDS, factor=2 * math.pi, says=
        "Every angle is 2π times too large. The speeds are in rad per token, not in turns."),
    mistake(POSITIONS, factor=2, says=
        "Every angle is twice as large as it should be: is something turned twice?"),
    mistake(WHICH, factor=0, says=
        "All angles are 0: the positions are forgotten."),
]


def rotation_mistakes(interleaved: bool) -> list[Mistake]:
    """The known mistakes when one of the layouts is asked for."""
    neighbours, halves = "2i with its neighbour 2i + 1", "i with i + d/2"
    do, should = (halves, neighbours) if interleaved else (neighbours, halves)
    twice = "one half beside the other" if interleaved else "each column twice in a row"
    return [
        mistake(LAYOUTS, other=True, says=
            f"The other layout. Do you pair dimension {do}? This one pairs {should}. A silent mistake: lengths are"
            " kept, scores depend on the distance alone, and only at distance 0 are they right."),
        mistake(SIGNS, signs=((1, 1), (1, -1)), says=
            "Rotated backwards. A quarter turn (cosine 0, sine 1) takes the pair (1, 0) to (0, 1), and yours takes it"
            " to (0, -1). A minus at the wrong product does this, and so does a matrix that is transposed."),
        mistake(STACK, written=True, says=
            "The right numbers in the wrong places: you take pairs from one layout and put them back in the other."
            " Even at position 0 the vector changes. Look at the last step: stack or cat?"),
        mistake(FORMS, columns="other", says=
            "The two numbers of a pair meet different angles, so lengths are not kept. Do you repeat the tables as"
            f" the other layout does, {twice}?"),
        mistake(LAYOUTS, partner=True, says=
            "Every number meets the right angle and the wrong partner, so lengths are not kept. Does your swapped"
            " copy of x (`rotate_half`, perhaps) belong to the other layout?"),
        mistake(WHICH, signs=((1, 1), (1, 1)), says=
            "A plus in both numbers of each pair, so lengths are not kept. One of the four products needs a minus."),
        mistake(WHICH, signs=((1, -1), (1, -1)), says=
            "A minus in both numbers of each pair, so lengths are not kept. Only one of the four products has one."),
        mistake(MATRIX, signs=((1, 1), (-1, 1)), says=
            "A reflection: lengths are kept, and at position 0 the second number of each pair has changed its sign."),
        mistake(FORMS, afterwards=True, says=
            "The second number of each pair is computed from the first one after that was turned. It needs the old"
            " value."),
        mistake(BUFFER, signs=((1, 0), (1, 0)), says=
            "The sines have no effect: each pair is only multiplied by its cosine, and gets shorter. (A complex"
            " table that was cast to real does this.)"),
        mistake(MATRIX, swapped=True, says=
            "Cosines and sines have changed places. At position 0 nothing may move, and here it does."),
        mistake(POSITIONS, rows="first", says=
            "Every word is turned like the first one. Which row of the tables belongs to a word?"),
        mistake(FORMS, columns="first", says=
            "Every pair is turned by the angle of the first one. Which column of the tables belongs to a pair?"),
        mistake(HEADS, rows="heads", says=
            "Each head turned by its head number: the rows of the tables meet the axis of the heads. Words are the"
            " last axis but one."),
        mistake(POSITIONS, part=True, says=
            "Only the first half of the pairs is turned, the others stay."),
        mistake(MATRIX, added=True, says=
            "The tables are added to x, as a sinusoidal code is. A rotation multiplies: each new number of a pair"
            " mixes both old ones."),
        mistake(WHICH, signs=((1, 0), (1, 0)), rows="ones", says=
            "Nothing is turned: the vectors come back as they were."),
    ]


def conversion_mistakes(back: bool) -> list[Mistake]:
    """The known mistakes on the way from interleaved to half-split, or back."""
    there = "from interleaved to half-split" if back else "from half-split to interleaved"
    return [
        mistake(LAYOUTS, inverse=True, says=
            f"The other way round: this goes {there}. A test with few rows may not see it."),
        mistake(LAYOUTS, whole=True, says=
            "Rows wander from head to head: all rows are sorted at once. Each head keeps its own."),
        mistake(LAYOUTS, first=True, says=
            "Only the rows of the first head are sorted, and all others stay. Every head has rows of its own to sort."),
        mistake(LAYOUTS, alternating=True, says=
            "You read the rows as if the heads took turns. All rows of a head stand together, and then those of the"
            " next."),
        mistake(LAYOUTS, columns=True, says=
            "The columns are sorted. Each row makes one dimension of the queries or keys, and the rows change places. A"
            " column belongs to one dimension of what comes in, the vector of a word, and stays."),
        mistake(LAYOUTS, columns=True, whole=True, says=
            "The columns are sorted, all at once. Each row makes one dimension of the queries or keys, and the rows of"
            " a head change places. A column belongs to one dimension of what comes in, the vector of a word, and"
            " stays."),
        mistake(LAYOUTS, still=True, says=
            "The weight comes back as it was."),
        mistake(LAYOUTS, odd_first=True, says=
            "First and second number of each pair have changed places."),
    ]


CACHE_MISTAKES = [
    mistake(POSITIONS, query_starts=False, key_starts=False, says=
        "Each call begins again at position 0. With one new word in each call, nothing is turned at all. How many"
        " words came before?"),
    mistake(POSITIONS, query_starts=False, says=
        "The keys go on counting, and the queries begin again at position 0 in each call."),
    mistake(POSITIONS, key_starts=False, says=
        "The queries go on counting, and the keys begin again at position 0 in each call."),
    mistake(POSITIONS, same=True, says=
        "All words of a call get the same position. That is right for one new word at a time, and wrong for a"
        " prompt."),
    mistake(POSITIONS, length="heads", says=
        "New words begin at the number of heads: you read the length of the cache off its first axis. Which axis"
        " counts the words?"),
    mistake(POSITIONS, length="dim", says=
        "New words begin at the dimension of a head: you read the length of the cache off its last axis. Which axis"
        " counts the words?"),
    mistake(POSITIONS, length="one less", says=
        "Behind a cache all positions are one too small. The first word has position 0: which one is the next after"
        " n words?"),
    mistake(POSITIONS, length="one more", says=
        "Behind a cache all positions are one too large. The first word has position 0: which one is the next after"
        " n words?"),
    mistake(WHICH, late=1, says=
        "The scores are right and the keys in the cache are not: positions counted from 1. Keys of other code do not"
        " fit to them."),
    mistake(POSITIONS, again=True, says=
        "Keys of the cache are turned again in each call. They were turned when they came, and their positions do"
        " not change."),
    mistake(POSITIONS, stored="before", says=
        "The cache keeps keys from before their rotation, and later queries meet them so."),
    mistake(METHODS, stored="before, turned", says=
        "The scores are right, and the cache keeps keys from before their rotation. That is a design in its own"
        " right (dynamic scaling needs it); here the cache holds turned keys."),
    mistake(POSITIONS, front=True, says=
        "New keys are put in front of the old ones. Words stand in their order."),
    mistake(POSITIONS, still="queries", says=
        "The queries are not turned."),
    mistake(POSITIONS, still="keys", says=
        "The keys are not turned."),
    mistake(POSITIONS, forgets=True, says=
        "The new cache holds the new keys only: those of earlier words are lost."),
    mistake(POSITIONS, recent=True, says=
        "The scores are those with the new keys only. A query meets the keys of the cache as well."),
    mistake(POSITIONS, scaled=True, says=
        "The scores are divided by the root of the dimension. Plain products are wanted here."),
    mistake(POSITIONS, masked=True, says=
        "The scores are masked. Plain products are wanted here, all of them."),
]

WRONG_ONES = (  # rotations that a student's own test should refuse
    ("it turns backwards", {"signs": ((1, 1), (1, -1))}),
    ("it pairs i with i + d/2", {"other": True}),
    ("it has a plus in both numbers of each pair", {"signs": ((1, 1), (1, 1))}),
    ("it puts the numbers back in the order of the other layout", {"written": True}),
    ("all its pairs take the angles of the first one", {"columns": "first"}),
    ("it turns every word like the first one", {"rows": "first"}),
    ("it turns nothing", {"signs": ((1, 0), (1, 0)), "rows": "ones"}),
)
