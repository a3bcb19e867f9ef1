"""What was measured on the published model: python -m lab smollm2 (four hours on two cores, five minutes on a GPU)

Each module is one experiment of the chapter "A published model, opened", or two that share their code, and gives
numbers for each stretch of text, so that the chapter can tell an effect from the spread between texts. `runs` lists
them, and `lab.experiments` stores what they find. Named here is what chapters, figures and the doctor use.
"""

from lab.opened.break_it import CAPITAL, mistakes
from lab.opened.each_head import BACK
from lab.opened.found import header, heads, line, second, stored, tensors
from lab.opened.long_text import CONTEXTS, EDGES, long_texts
from lab.opened.one_token import FAR, dropped
from lab.opened.reach import GAPS
from lab.opened.rescue import FAR_GAPS, FIRST, LAST, NEAR_GAPS, far_copies
from lab.opened.runs import opened
from lab.opened.shared import (
    KINDS,
    losses,
    methods,
    model,
    random_words,
    rounded,
    slowed,
    stretches,
    texts,
    with_gap,
    without,
)

__all__ = [
    "BACK",
    "CAPITAL",
    "CONTEXTS",
    "EDGES",
    "FAR",
    "FAR_GAPS",
    "FIRST",
    "GAPS",
    "KINDS",
    "LAST",
    "NEAR_GAPS",
    "dropped",
    "far_copies",
    "header",
    "heads",
    "line",
    "long_texts",
    "losses",
    "methods",
    "mistakes",
    "model",
    "opened",
    "random_words",
    "rounded",
    "second",
    "slowed",
    "stored",
    "stretches",
    "tensors",
    "texts",
    "with_gap",
    "without",
]
