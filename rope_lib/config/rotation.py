"""How the layers of one kind turn: one record, which prints itself and computes the frequencies."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from torch import Tensor

from rope_lib import scaling
from rope_lib._checks import check_number
from rope_lib.config._spelling import MSCALES, YARN
from rope_lib.frequencies import inverse_frequencies


@dataclass(frozen=True)
class RotaryConfig:
    """How the layers of one kind turn, as `rotation_from_config` has understood it; `print` shows it.

    Attributes:
        head_dim: how many dimensions a head has, of those that its positions reach.
        rotary_dim: how many of them turn.
        base: called rope_theta in files.
        rope_type: the scaling; "default" is none.
        numbers: what belongs to the scaling, by the names of transformers.
        longest: the length of the model in tokens, or None where the file does not say it.
        trained: the length before it was stretched, or None where no scaling asks for it.
        interleaved: the layout of the pairs, or None where the file does not say it.
        layers: which layers turn, in words.
        model_type: the class; None where the file names none.
        layer_type: the kind of layers; None where all are alike.
        read: the keys of the file that were used.
        set_aside: the keys that speak of the rotation and change no frequency of these layers, and those that
            were ignored on request.

    Example:
        >>> RotaryConfig(head_dim=128, rotary_dim=64, base=500000.0).factor
        1.0
    """

    head_dim: int
    rotary_dim: int
    base: float
    rope_type: str = "default"
    numbers: Mapping[str, Any] = field(default_factory=dict, hash=False)
    longest: int | None = None
    trained: int | None = None
    interleaved: bool | None = None
    layers: str = "all"
    model_type: str | None = None
    layer_type: str | None = None
    read: tuple[str, ...] = ()
    set_aside: tuple[str, ...] = ()

    @property
    def factor(self) -> float:
        """By how much the scaling stretches: its own number, or else the ratio of the lengths; 1 without one."""
        if "factor" in self.numbers:
            return check_number(self.numbers["factor"], "factor", above=0)
        return self.longest / self.trained if self.longest and self.trained else 1.0

    def frequencies(self, seq_len: float | None = None) -> tuple[Tensor, float]:
        """The inverse frequencies and the attention factor.

        Args:
            seq_len: the length in use, for "dynamic" and "longrope"; None means the trained length.

        Returns:
            inv_freq, (rotary_dim // 2,) float64 on the CPU, in rad per token, and attention_factor: what
            `RotaryEmbedding` takes.

        Raises:
            ValueError: as the functions of `rope_lib.scaling`.

        Example:
            >>> RotaryConfig(head_dim=4, rotary_dim=4, base=100.0).frequencies()
            (tensor([1.0000, 0.1000], dtype=torch.float64), 1.0)
        """
        sizes: dict[str, Any] = {"rotary_dim": self.rotary_dim, "base": self.base}
        numbers, stretched = self.numbers, {"original_max_position_embeddings": self.trained}
        usual = 1.0
        match self.rope_type:
            case "default":
                return inverse_frequencies(self.rotary_dim, base=self.base, device="cpu"), 1.0
            case "linear":
                return scaling.linear_scaling(**sizes, factor=self.factor), 1.0
            case "dynamic":
                lengths = {"seq_len": seq_len or self.longest, "max_position_embeddings": self.longest}
                return scaling.dynamic_ntk_scaling(**sizes, factor=self.factor, **lengths), 1.0
            case "llama3":
                ramp = {"beta_fast": numbers["high_freq_factor"], "beta_slow": numbers["low_freq_factor"]}
                return scaling.ntk_by_parts_scaling(**sizes, factor=self.factor, **ramp, **stretched), 1.0
            case "proportional":
                share = numbers.get("partial_rotary_factor", 1.0)
                return scaling.proportional_scaling(**sizes, partial_rotary_factor=share) / self.factor, 1.0
            case "yarn":
                ramp = {name: numbers[name] for name in YARN if name in numbers}
                inv_freq = scaling.yarn_scaling(**sizes, factor=self.factor, **stretched, **ramp)
                scales = {name: numbers[name] for name in MSCALES if all(map(numbers.get, MSCALES))}  # one is not used
                usual = scaling.yarn_attention_factor(self.factor, **scales)
            case "longrope":
                factors = (numbers["short_factor"], numbers["long_factor"])  # both are checked, for any length
                both = [scaling.longrope_scaling(**sizes, factors=each) for each in factors]
                inv_freq = both[(seq_len or self.trained) > self.trained]
                usual = scaling.longrope_attention_factor(max(self.factor, 1), **stretched)
        return inv_freq, check_number(numbers.get("attention_factor", usual), "attention_factor", above=0)

    def __str__(self) -> str:
        kind = f", layers of {self.layer_type}" if self.layer_type else ""
        lines = {
            "model_type": f"{self.model_type or 'none'}{kind}",
            "turn": f"{self.rotary_dim} of {self.head_dim} dimensions of a head, {self.rotary_dim // 2} pairs",
            "base": f"{self.base:,.10g}",
            "scaling": "none" if self.rope_type == "default" else f"{self.rope_type} {self._shown_numbers()}",
            "lengths": f"model {_tokens(self.longest)}, trained {_tokens(self.trained, 'not needed')}",
            "layout": {None: "not said", True: "interleaved", False: "half-split"}[self.interleaved],
            "layers": self.layers,
            "read": ", ".join(self.read) or "nothing",
            "set aside": ", ".join(self.set_aside) or "nothing",
        }
        return "\n".join(f"{name + ':':12}{value}" for name, value in lines.items())

    def _shown_numbers(self) -> str:
        shown = (f"{name} {_short(value)}" for name, value in self.numbers.items() if value is not None)
        return ", ".join(shown)


def _tokens(length: int | None, none: str = "not said") -> str:
    return none if length is None else f"{length:,}"


def _short(value: Any) -> str:
    return f"({len(value)} numbers)" if isinstance(value, list | tuple) else f"{value}"
