"""Published language models that were trained on longer texts with a larger base: lengths, bases, tokens, sources.

Only what was read in a source stands here; where that was a third party's transcription and not the text itself,
`transcribed` says so. Extensions by another method (YaRN, shorter positions, no rotation) are left out, and those whose
first base or length no source names.
"""

import math
from dataclasses import dataclass
from statistics import median

from lab.table import Table

PLACE = 0.62  # where the pair that turns once stands in the median of the published ones, as a share of the pairs


@dataclass(frozen=True)
class Extension:
    """One model.

    Args:
        name: of the model.
        source: a key of the bibliography.
        stages: (tokens of a training text, base) of each stage, in order.
        tokens: how many were spent behind the first stage, in words; "" if no source says it.
        transcribed: whether the source was read in a transcription.
    """

    name: str
    source: str
    stages: tuple[tuple[int, float], ...]
    tokens: str = ""
    transcribed: bool = False

    @property
    def places(self) -> list[float]:
        """For each stage where the pair lies that turns once in a text: 0 is the fastest, 1 behind the slowest."""
        return [turns_once(length, base) for length, base in self.stages]

    @property
    def used_over_rule(self) -> float:
        """The last base over the one that the rule foretells from the first stage."""
        (length, base), (longer, used) = self.stages[0], self.stages[-1]
        return used / base_by_rule(base, length, longer)


def base_by_rule(base: float, length: int, longer: int) -> float:
    """The base with which the pair that turns once in `length` tokens turns once in `longer` ones.

    In a head of any size that pair is number `(head_dim / 2) ln(length / 2 pi) / ln(base)`.
    """
    return base ** (math.log(longer / (2 * math.pi)) / math.log(length / (2 * math.pi)))


def turns_once(length: int, base: float) -> float:
    """The number of the pair that turns once in `length` tokens, as a share of the pairs."""
    return math.log(length / (2 * math.pi)) / math.log(base)


K = 1024
EXTENSIONS = (
    Extension("SmolLM2 1.7B", "allal2025", ((2 * K, 1e4), (8 * K, 1.3e5)), "less than 75 G", transcribed=True),
    Extension("SmolLM2 135M", "smollm2files", ((2 * K, 1e4), (8 * K, 1e5))),
    Extension("SmolVLM 2.2B", "smolvlm2025", ((2 * K, 1e4), (16 * K, 2.73e5))),
    Extension("SmolLM3 3B", "smollm3files", ((4 * K, 5e4), (32 * K, 2e6), (64 * K, 5e6)), "47 G and 52 G"),
    Extension("Instella 3B", "instella2025", ((4 * K, 1e4), (64 * K, 514_640), (256 * K, 3_691_950)), "20 G and 20 G"),
    Extension("Apple AFM", "afm2024", ((8 * K, 5e5), (32 * K, 6_315_089)), "100 G", transcribed=True),
    Extension(
        "Apertus 8B, 70B",
        "apertus2025",
        ((4 * K, 5e5), (8 * K, 1e6), (16 * K, 2e6), (32 * K, 4e6), (64 * K, 12e6)),
        transcribed=True,
    ),
    Extension("InternLM2", "internlm2024", ((4 * K, 5e4), (32 * K, 1e6)), "9 % of the steps"),
    Extension("Kimi-VL", "kimivl2025", ((8 * K, 5e4), (128 * K, 8e5)), "0.3 T"),
    Extension("ProLong 8B", "prolong2024", ((8 * K, 5e5), (64 * K, 8e6), (512 * K, 128e6)), "20 G and 20 G"),
    Extension(
        "Gradient 8B",
        "gradient2024",
        ((8 * K, 5e5), (64 * K, 15_296_098), (256 * K, 207_112_184), (512 * K, 1_062_356_830), (1024 * K, 2.8e9)),
        "1.4 G",
    ),
    Extension(
        "LWM 7B",
        "lwm2024",
        ((4 * K, 1e4), (32 * K, 1e6), (128 * K, 1e7), (256 * K, 1e7), (512 * K, 25e6), (1024 * K, 5e7)),
        "34 G",
        transcribed=True,
    ),
    Extension(
        "EasyContext 7B", "easycontext2024", ((4 * K, 1e4), (32 * K, 1e6), (64 * K, 5e6), (512_000, 2.5e8)), "4 G"
    ),
    Extension("Llama 2 Long, 7B, 13B", "xiong2023", ((4 * K, 1e4), (32 * K, 5e5)), "400 G", transcribed=True),
    Extension("Llama 2 Long, 34B, 70B", "xiong2023", ((4 * K, 1e4), (16 * K, 5e5)), "400 G", transcribed=True),
    Extension("Code Llama", "codellama2023", ((4 * K, 1e4), (16 * K, 1e6))),
    Extension("Qwen2, Qwen2.5, Qwen3", "qwen2024", ((4 * K, 1e4), (32 * K, 1e6)), "hundreds of G (Qwen3)"),
    Extension("Qwen2.5-1M", "qwen1m2025", ((4 * K, 1e4), (32 * K, 1e6), (64 * K, 1e6), (128 * K, 5e6), (256 * K, 1e7))),
    Extension("Qwen2.5-Coder", "qwencoder2024", ((8 * K, 1e4), (32 * K, 1e6)), "300 G"),
    Extension("GLM-4.5", "glm45", ((4 * K, 1e4), (32 * K, 1e6), (128 * K, 1e6)), "1 T and 100 G"),
    Extension(
        "MiniMax-Text-01", "minimax2025", ((8 * K, 1e4), (128 * K, 5e6), (512 * K, 1e7), (1024 * K, 1e7)), "358 G"
    ),
    Extension("YuLan-Mini 2.4B", "yulan2024", ((4 * K, 1e4), (28 * K, 4.9e5)), "80 G"),
    Extension("LongAlign 7B, 13B", "longalign2024", ((4 * K, 1e4), (64 * K, 2e6)), "10 G", transcribed=True),
    Extension("ModernBERT, far layers", "modernbert2024", ((K, 1e4), (8 * K, 1.6e5)), "300 G"),
    Extension("360Zhinao, from Llama 3", "zhinao2024", ((8 * K, 5e5), (360_000, 5e8))),
    Extension("360Zhinao2 7B", "zhinao2024", ((32 * K, 1e6), (360_000, 5e7))),
    Extension("OpenR1-Qwen 7B", "openr12025", ((4 * K, 1e4), (32 * K, 3e5))),
    Extension("Phi-4-reasoning", "phi42025", ((16 * K, 2.5e5), (32 * K, 5e5)), transcribed=True),
)


def table() -> Table:
    """All of them: what was used, what the rule foretells, and where the pair that turns once stands."""
    heads = ("model", "tokens of a text", "base", "by the rule", "used / rule", "turns once at", "tokens spent")
    rows = []
    for extension in EXTENSIONS:
        (first, base), (last, used) = extension.stages[0], extension.stages[-1]
        foretold = base_by_rule(base, first, last)
        link = f'<a href="bibliography.html#{extension.source}">{extension.name}</a>'
        rows.append(
            (
                link + " °" * extension.transcribed,
                f"{first:,} to {last:,}",
                f"{_short(base)} to {_short(used)}",
                _short(foretold),
                f"{used / foretold:.2f}",
                f"{extension.places[0]:.2f} to {extension.places[-1]:.2f}",
                extension.tokens,
            )
        )
    return Table(heads, rows)


def errors() -> dict[str, float]:
    """The median factor, at least 1, by which each way to choose misses the bases that were used at the end."""
    ways = {
        "this rule": lambda length, base, longer: base_by_rule(base, length, longer),
        f"one turn at {PLACE}": lambda length, base, longer: (longer / (2 * math.pi)) ** (1 / PLACE),
        "NTK-aware, head of 128": lambda length, base, longer: base * (longer / length) ** (128 / 126),
    }
    found = {}
    for name, way in ways.items():
        misses = []
        for extension in EXTENSIONS:
            (length, base), (longer, used) = extension.stages[0], extension.stages[-1]
            misses.append(math.exp(abs(math.log(used / way(length, base, longer)))))
        found[name] = median(misses)
    return found


def _short(base: float) -> str:
    for unit, name in ((1e9, " G"), (1e6, " M")):
        if base >= unit:
            return f"{base / unit:.3g}{name}"
    return f"{base:,.0f}"
