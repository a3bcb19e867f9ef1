"""Results that others published, typed in from the places that are named: data for the chapter on reading evidence.

What the numbers do not say stands in the chapter. Keys of the bibliography are in square brackets.
"""

import math
from collections.abc import Iterable

# Su et al. 2021 [su2021], table 1: BLEU on WMT 2014 English to German.
BLEU = {"Transformer-base": 27.3, "RoFormer": 27.5}

# The same, table 2, and its metrics (section 4.3.1). The row of BERT is that of [devlin2019], table 1.
GLUE_TASKS = ("MRPC", "SST-2", "QNLI", "STS-B", "QQP", "MNLI-m", "MNLI-mm")
GLUE_METRICS = ("F1", "accuracy", "accuracy", "Spearman", "F1", "accuracy", "accuracy")
GLUE = {
    "BERT": (88.9, 93.5, 90.5, 85.8, 71.2, 84.6, 83.4),
    "RoFormer": (89.5, 90.7, 88.0, 87.0, 86.4, 80.2, 79.8),
}
# F1 of BERT base on the validation set of QQP, as others report it.
QQP_VALIDATION = {
    "BERT, median of 5": 84.31,  # [hfglue], an older version
    "BERT, mean of 3": 87.29,  # [deeppavlovglue]
    "BERT, one run": 87.49,  # [hfglue]
}

# The same, table 4: stage, maximum length, batch, steps, loss, accuracy in percent.
STAGES = (
    (1, 512, 256, 200_000, 1.73, 65.0),
    (2, 1536, 256, 12_500, 1.61, 66.8),
    (3, 256, 256, 120_000, 1.75, 64.6),
    (4, 128, 512, 80_000, 1.83, 63.4),
    (5, 1536, 256, 10_000, 1.58, 67.4),
    (6, 512, 512, 30_000, 1.66, 66.2),
)
# The same, table 5: percent right on the validation and test sets of CAIL2019-SCM; behind the name, the longest input.
CAIL = {
    "BERT-512": (64.13, 67.77),
    "WoBERT-512": (64.07, 68.10),
    "RoFormer-512": (64.13, 68.29),
    "RoFormer-1024": (66.07, 69.79),
}
# The paper of the data set, Xiao et al. 2019 [xiao2019], tables 1 and 2: its parts, and two other systems.
CAIL_SIZES = {"training": 5102, "validation": 1500, "test": 1536}
CAIL_OTHERS = {"CNN": (62.27, 69.53), "best team": (70.07, 72.66)}

# EleutherAI's blog [eleuther2021]: validation loss in nats per token, and perplexity.
OPENWEBTEXT2 = {"learned": (2.809, 16.59), "T5 bias": (2.801, 16.46), "RoPE": (2.759, 15.78)}
PILE = {"learned": (2.240, 9.393), "T5 bias": (2.223, 9.234), "RoPE": (2.173, 8.784)}
# Its sequel [gao2021downstream]: of 56 results on tasks, how many are better with which encoding.
DOWNSTREAM = {"RoPE": 22, "learned": 24, "equal": 10}

# Kazemnejad et al. 2023 [kazemnejad2023], figure 1: mean reciprocal rank over ten tasks.
RECIPROCAL_RANKS = {"none": 0.69, "T5 bias": 0.55, "ALiBi": 0.50, "RoPE": 0.33, "sinusoidal": 0.22}
# The same, appendix F: perplexity by the length of the context, trained at 1024, one run each.
CODE_LENGTHS = (512, 1024, 1200, 1800, 2560)
CODE = {
    "none": (2.850, 2.666, 2.620, 41.194, 536.225),
    "ALiBi": (2.830, 2.735, 2.742, 13.814, 150.322),
    "RoPE": (2.774, 2.607, 3.323, 674.506, 760.104),
}


def cases(percent: float, size: int) -> int | None:
    """How many of `size` cases are `percent`, which has two decimals; None if no whole number of cases is.

    Example:
        >>> cases(66.67, 3), cases(66.66, 3)
        (2, None)
    """
    hundredths = round(100 * percent)
    count = round(hundredths * size / 10_000)
    return count if 2 * abs(10_000 * count - hundredths * size) <= size else None


def sizes_that_fit(percents: Iterable[float], sizes: Iterable[int]) -> list[int]:
    """The sizes for which each percentage is a whole number of cases."""
    percents = list(percents)
    return [size for size in sizes if all(cases(percent, size) is not None for percent in percents)]


def standard_error(first: float, second: float, size: int) -> float:
    """Of the difference of two percentages, each measured on `size` cases of its own: in points."""
    return math.sqrt(sum(share * (100 - share) for share in (first, second)) / size)


def as_extreme(gap: float, percent: float, size: int) -> float:
    """How often two models that are both right in `percent` of all cases differ by `gap` points or more.

    Each is tested on `size` cases of its own; the difference is taken as normally distributed.
    """
    return math.erfc(gap / standard_error(percent, percent, size) / math.sqrt(2))
