"""Chapter 8: causal linear attention, rotated above the line only."""

from collections.abc import Callable
from functools import partial

import torch
from torch import Tensor
from torch.nn.functional import elu

from lab.practice import Exercise
from rope_lib import apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.linear import Rotation, elu_plus_one, linear_attention

Change = Callable[[Tensor], Tensor]
LAYOUTS = 'See chapter 6, "Two layouts, one rotation".'
FEATURES = 'See chapter 8, "What if the softmax were not there?".'
CAUSAL = 'See chapter 8, "The causal form is a recurrence".'
WHERE = 'See chapter 8, "Where can the rotation go?".'
ORDER = 'See chapter 8, "First the features, then the rotation".'
BELOW = 'See chapter 8, "Both: weights can be negative, and a sum of them zero".'
STATE = 'See chapter 8, "RoPE is a state that turns".'


def right(q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """Equation (8.10), each word with those up to it."""
    rotation = Rotation(cos, sin, interleaved=True, denominator=False)
    return linear_attention(q, k, v, causal=True, rotation=rotation)


def wrong(
    q: Tensor, k: Tensor, v: Tensor, cos: Tensor, sin: Tensor, *,
    features: Change = elu_plus_one, sides: str = "qk", sign: int = 1, interleaved: bool = True, early: bool = False,
    everywhere: bool = False, mask: Change = Tensor.tril, mask_below: Change = Tensor.tril, divided: str = "by sums",
) -> Tensor:  # fmt: skip
    """The same as tables of all weights; every keyword is a mistake."""
    turned = partial(apply_rotary_emb, cos=cos, sin=sign * sin, interleaved=interleaved)
    below = [features(x) for x in (q, k)]
    above = [features(turned(x)) if early else turned(features(x)) for x in (q, k)]
    above = [turn if side in sides else still for side, turn, still in zip("qk", above, below, strict=True)]
    weights = above[0] @ above[1].mT
    if divided == "by a softmax":
        later = mask(torch.ones_like(weights)) == 0
        return weights.masked_fill(later, -torch.inf).softmax(-1) @ v
    sums = mask_below(weights if everywhere else below[0] @ below[1].mT).sum(-1, keepdim=True)
    divisor = {"by sums": sums, "by words": torch.arange(1, len(v) + 1)[:, None], "not": 1}[divided]
    return mask(weights) @ v / divisor


def case(words: int, dim: int, value_dim: int, start: int) -> tuple[Tensor, ...]:
    """q, k, v, cos, sin."""
    generator = torch.Generator().manual_seed(words)
    q, k = torch.randn(2, words, dim, generator=generator)
    v = torch.randn(words, value_dim, generator=generator)
    return q, k, v, *cos_sin(torch.arange(start, start + words), inverse_frequencies(dim))


exercise = Exercise(
    asked="rotated_above(q, k, v, cos, sin)",
    right=right,
    cases=[case(1, 2, 1, 0), case(2, 2, 1, 0), case(3, 4, 2, 5), case(12, 8, 3, 0)],
    mistakes={
        f"Words see what comes later, above the line and below it. {CAUSAL}":
            partial(wrong, mask=Tensor.clone, mask_below=Tensor.clone),
        f"Above the line a word sees what came before it, below the line the whole text. {CAUSAL}":
            partial(wrong, mask_below=Tensor.clone),
        f"Each word sees itself and what comes later: the mask is the wrong way round. {CAUSAL}":
            partial(wrong, mask=Tensor.triu, mask_below=Tensor.triu),
        f"You rotate first and take features afterwards, so that weights do not see the distance alone. {ORDER}":
            partial(wrong, early=True, everywhere=True),
        f"Above the line you take features of what is turned already. {ORDER}":
            partial(wrong, early=True),
        f"The rotation is below the line, too: this is (8.9), whose denominator can be zero. {BELOW}":
            partial(wrong, everywhere=True),
        f"Nothing is turned: this is (8.1) with a mask. {WHERE}":
            partial(wrong, sides=""),
        f"Only queries are turned, so that a weight sees one position and no distance. {WHERE}":
            partial(wrong, sides="q"),
        f"Only keys are turned, so that a weight sees one position and no distance. {WHERE}":
            partial(wrong, sides="k"),
        f"Turned the wrong way, so that distances count as if texts were read backwards. {STATE}":
            partial(wrong, sign=-1),
        f"These are pairs of the other layout. {LAYOUTS}":
            partial(wrong, interleaved=False),
        f"There are no features: queries and keys themselves are multiplied. {FEATURES}":
            partial(wrong, features=Tensor.clone),
        f"Your features can be negative: is a constant missing? {FEATURES}":
            partial(wrong, features=elu),
        f"The numerator is right, and nothing divides it. {WHERE}":
            partial(wrong, divided="not"),
        f"You divide by the number of words. What stands below the line in (8.10)? {WHERE}":
            partial(wrong, divided="by words"),
        f"There is a softmax. It needs all weights of a row in a table, and that is what this form avoids. {FEATURES}":
            partial(wrong, divided="by a softmax"),
    },
)  # fmt: skip
