"""What real engines said behind the prompts: llama.cpp's server, healthy and with mistakes; and bfloat16.

tools/record_engines.py recorded it. The program does not read it: thresholds come from it (lab/doctor/trials.py), and
the tests and the page on the doctor try the judge on it.
"""

import io
import pkgutil
from dataclasses import dataclass

import numpy as np

import lab
from lab.doctor.servers import Answer

STORED = "published_models/engines.npz"  # below lab
KEPT = 8  # of the likeliest tokens
NONE = 65535  # in place of a token

# USUAL: the published file, or its weights in eight bits or more; a cache in eight or more. WORST: its weights rounded
# once more, to five or four bits, or a cache in so few.
# For each engine: the format of its weights, None for those of the published file; and the server's settings.
Setting = tuple[str | None, dict]


def cache(keys: str, values: str) -> dict:
    """Settings of a cache in these formats; flash attention can read values in few bits."""
    return {"cache_type_k": keys, "cache_type_v": values, "flash_attn_type": "ENABLED"}


YARN = {"rope_scaling_type": "YARN", "yarn_orig_ctx": 8192}
USUAL: dict[str, Setting] = {
    "as it is": (None, {}),
    "a context of 1,024": (None, {"n_ctx": 1024}),
    "weights Q8_0": ("Q8_0", {}),
    "cache Q8_0": (None, cache("Q8_0", "Q8_0")),
    "bfloat16": ("bfloat16", {}),  # not llama.cpp: the book's own code
}
WORST: dict[str, Setting] = {
    "weights Q4_0": ("Q4_0", {}),
    "weights Q5_0": ("Q5_0", {}),
    "cache Q4_0": (None, cache("Q4_0", "Q4_0")),
    "weights Q4_0, cache Q4_0": ("Q4_0", cache("Q4_0", "Q4_0")),
}
HEALTHY = USUAL | WORST
MISTAKEN: dict[str, Setting] = {
    "rope_freq_base 10,000": (None, {"rope_freq_base": 10_000.0}),
    "rope_freq_scale 0.5": (None, {"rope_freq_scale": 0.5}),
    "YaRN by 4": (None, {**YARN, "rope_freq_scale": 0.25}),
    "called qwen2": ("called qwen2", {}),
    "rows not reordered": ("rows not reordered", {}),
    "rope_freq_base 50,000": (None, {"rope_freq_base": 50_000.0}),
    "rope_freq_base 10,000, cache Q4_0": (None, {"rope_freq_base": 10_000.0, **cache("Q4_0", "Q4_0")}),
    "yarn_attn_factor 1.139": (None, {"yarn_attn_factor": 1.1386}),
    "rope_freq_base 70,000": (None, {"rope_freq_base": 70_000.0}),
    "a token in front": (None, {"before": (1,)}),
}
WHOLE = {
    "as it is",
    "a context of 1,024",
    "bfloat16",
    *[*MISTAKEN][:5],
}  # were asked all prompts, the others a part of them


@dataclass
class Engines:
    """Answers by the name of the engine.

    Attributes:
        runs: for each engine what it said behind each prompt, None where it refused.
        shifts: for so many first tokens kept, what it wrote over the border of a context of 512, with its
            log-probabilities.
    """

    runs: dict[str, list[Answer | None]]
    shifts: dict[int, list[tuple[int, float]]]

    @classmethod
    def stored(cls) -> "Engines":
        """As tools/record_engines.py made it."""
        found = np.load(io.BytesIO(pkgutil.get_data(lab.__name__, STORED)))
        runs = {
            str(name): [
                [
                    {int(t): x / 1000 for t, x in zip(*row, strict=True) if t != NONE}
                    for row in zip(*one, strict=True)
                    if (row[0] != NONE).any()
                ]
                or None
                for one in zip(tokens, values.astype(np.float64), strict=True)
            ]
            for name, tokens, values in zip(found["names"], found["tokens"], found["values"], strict=True)
        }
        written = zip(found["keep"], found["written"], found["written_values"] / 1000, strict=True)
        shifts = {int(keep): [*zip(tokens.tolist(), x.tolist(), strict=True)] for keep, tokens, x in written}
        return cls(runs, shifts)

    def as_bytes(self) -> bytes:
        """The file: thousandths of a nat, of the likeliest tokens."""
        count = max((len(run) for run in self.runs.values()), default=0)
        tokens = np.full((len(self.runs), count, 2, KEPT), NONE, dtype=np.uint16)
        values = np.zeros(tokens.shape, dtype=np.int16)
        for r, run in enumerate(self.runs.values()):
            for p, answer in enumerate(run):
                for place, likely in enumerate((answer or [])[:2]):
                    kept = sorted(likely.items(), key=lambda item: -item[1])[:KEPT]
                    tokens[r, p, place, : len(kept)] = [token for token, _ in kept]
                    values[r, p, place, : len(kept)] = [round(1000 * x) for _, x in kept]
        buffer = io.BytesIO()
        np.savez_compressed(
            buffer,
            names=np.array([*self.runs]),
            tokens=tokens,
            values=values,
            keep=np.array([*self.shifts], dtype=np.uint16),
            written=np.array([[token for token, _ in run] for run in self.shifts.values()], dtype=np.uint16),
            written_values=np.array(
                [[round(1000 * x) for _, x in run] for run in self.shifts.values()], dtype=np.int16
            ),
        )
        return buffer.getvalue()
