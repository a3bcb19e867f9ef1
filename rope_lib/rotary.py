"""Rotary position embedding: rotate pairs of dimensions by angles proportional to the position."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from rope_lib._checks import check_dim, check_inv_freq, check_layout, check_number, check_rotation, check_tensor
from rope_lib._fast import rotate
from rope_lib.frequencies import cos_sin, inverse_frequencies


def apply_rotary_emb(x: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> Tensor:
    """Rotate each pair of x by its angle, as `~rope_lib.formula.rotate_pairs` does.

    Args:
        x: (..., seq_len, head_dim), queries or keys; float32, float64, bfloat16 or float16.
        cos, sin: (seq_len, rotary_dim // 2) for all rows alike, or with as many axes as x and sizes equal or 1 in
            front, e.g. (batch, 1, seq_len, rotary_dim // 2) when each row has positions of its own. One column per
            pair: `cos_sin` makes them. Float32 or float64, for any x; no result is more precise than its tables.
        interleaved: which dimensions form pair i. True: 2i and 2i + 1 (the papers, Meta's Llama, GPT-J).
            False: i and i + rotary_dim // 2 (GPT-NeoX, Hugging Face's Llama).

    Returns:
        A new tensor of x's shape, dtype and device. Half-precision x is rotated in float32 and rounded once.
        Dimensions from rotary_dim on are passed through.

    Raises:
        TypeError: x, cos or sin is no dense tensor or has another dtype (half-precision tables would spoil the
            angles), or interleaved is neither True nor False.
        ValueError: x has fewer than two axes; cos and sin differ in shape or dtype; their device is not that of x;
            their seq_len is not that of x; they rotate more than head_dim, or nothing; their axes in front do not fit.

    Shapes cannot tell everything: cos and sin exchanged, axes of equal size swapped, and tables of twice the columns
    (each cosine twice, as some libraries keep them) beside a head_dim that has room for them, pass in silence.

    Source: Su et al. 2021, equations 15 and 34.

    Example:
        >>> cos, sin = cos_sin(torch.arange(6), inverse_frequencies(4))
        >>> x = torch.ones(2, 6, 8)  # four dimensions of eight are rotated
        >>> apply_rotary_emb(x, cos, sin, interleaved=False)[0, 1, :6]
        tensor([-0.3012,  0.9900,  1.3818,  1.0099,  1.0000,  1.0000])
    """
    check_rotation(cos, sin, interleaved, x=x)
    return _rotate_heads((x,), cos, sin, interleaved)[0]


def apply_rotary_pos_emb(q: Tensor, k: Tensor, cos: Tensor, sin: Tensor, *, interleaved: bool) -> tuple[Tensor, Tensor]:
    """Rotate queries and keys at the same positions: `apply_rotary_emb` of each, with its errors, which name q or k.

    Args:
        q, k: (..., seq_len, head_dim); they may differ in the number of heads, not in head_dim (ValueError).
        cos, sin, interleaved: as in `apply_rotary_emb`.

    Example:
        >>> q = torch.ones(8, 6, 4)  # eight query heads share two key heads
        >>> k = torch.ones(2, 6, 4)
        >>> cos, sin = cos_sin(torch.arange(6), inverse_frequencies(4))
        >>> q, k = apply_rotary_pos_emb(q, k, cos, sin, interleaved=True)
        >>> q.shape, k.shape
        (torch.Size([8, 6, 4]), torch.Size([2, 6, 4]))
    """
    check_rotation(cos, sin, interleaved, q=q, k=k)
    if q.shape[-1] != k.shape[-1]:
        raise ValueError(
            f"q has shape {tuple(q.shape)}, k {tuple(k.shape)}; head_dim must agree (were the heads split?)"
        )
    return _rotate_heads((q, k), cos, sin, interleaved)


def _rotate_heads(xs: tuple[Tensor, ...], cos: Tensor, sin: Tensor, interleaved: bool) -> tuple[Tensor, ...]:
    """Rotate the first dimensions of each head, as many as there are tables for, and pass the others through."""
    rotary_dim = 2 * cos.shape[-1]
    if xs[0].shape[-1] == rotary_dim:
        return rotate(xs, cos, sin, interleaved)
    rotated = rotate(tuple(x[..., :rotary_dim] for x in xs), cos, sin, interleaved)
    return tuple(torch.cat((y, x[..., rotary_dim:]), dim=-1) for x, y in zip(xs, rotated, strict=True))


class RotaryEmbedding(nn.Module):
    """Rotate queries and keys by their positions. It has no buffers, so casting the module cannot damage its angles.

    The tables are made anew at each call. A model of many layers makes them once, with `RotaryEmbedding.tables`, and
    hands them to `apply_rotary_pos_emb`. A checkpoint with buffers called `inv_freq` loads with strict=False.

    Args:
        rotary_dim: rotated dimensions per head; positive and even, at most head_dim. None: as many as inv_freq is for.
        interleaved: layout of the pairs, as in `apply_rotary_emb`; no default, because mixing layouts fails silently.
        base: sets the slowest pair; None means 10000, or what inv_freq says.
        inv_freq: (rotary_dim // 2,) float64 in rad per token, for other frequencies than base gives (see
            `rope_lib.scaling` and `frequencies_from_config`); not together with base.
        attention_factor: multiplies the rotated part of q and k, so that scores grow by its square if the whole head
            turns (YaRN). The frequencies of YaRN and LongRoPE need the factor that belongs to them; the module cannot
            know whether it was forgotten. Rotating a cached key again, to shift it, applies the factor again.
        head_dim: if given, q and k must have heads of this size. Without it a longer head is rotated in its first
            rotary_dim dimensions, as some models mean it; heads that were never split look the same.

    Raises:
        TypeError: a dimension that is no int, a base or factor that is no number, inv_freq that is no float64 tensor,
            interleaved that is neither True nor False.
        ValueError: rotary_dim is not positive and even, or above head_dim; base not above 1; both base and inv_freq are
            given, or neither it nor rotary_dim; inv_freq has another length, rises, is not finite, has no values, or
            requires a gradient (learned ones go to `cos_sin`); or attention_factor is not positive and finite.

    Example:
        >>> rope = RotaryEmbedding(4, interleaved=True)
        >>> q = k = torch.ones(2, 3, 4)  # (heads, seq_len, head_dim)
        >>> q, k = rope(q, k, positions=torch.arange(3))
        >>> rope
        RotaryEmbedding(4, interleaved=True, base=10000)
    """

    def __init__(
        self, rotary_dim: int | None = None, *, interleaved: bool, base: float | None = None,
        inv_freq: Tensor | None = None, attention_factor: float = 1.0, head_dim: int | None = None,
    ) -> None:  # fmt: skip
        super().__init__()
        check_layout(interleaved)
        if inv_freq is not None:
            check_inv_freq(inv_freq)
            rotary_dim = 2 * inv_freq.numel() if rotary_dim is None else rotary_dim
        elif rotary_dim is None:
            raise ValueError("neither rotary_dim nor inv_freq is given; pass one of them")
        rotary_dim = check_dim(rotary_dim, "rotary_dim")
        head_dim = None if head_dim is None else check_dim(head_dim, "head_dim")
        if head_dim is not None and rotary_dim > head_dim:
            raise ValueError(f"rotary_dim is {rotary_dim}; it must be at most head_dim, {head_dim}")
        if inv_freq is None:
            base = 10000.0 if base is None else base
            inv_freq = inverse_frequencies(rotary_dim, base=base, device="cpu")
        else:
            if base is not None:
                raise ValueError(
                    f"base is {base}, and inv_freq is given, too; give one of them. inv_freq has a base already: if it "
                    f"should be {base}, make it with that, inverse_frequencies({rotary_dim}, base={base})"
                )
            if inv_freq.shape != (rotary_dim // 2,):
                raise ValueError(f"inv_freq has shape {tuple(inv_freq.shape)}; it must be ({rotary_dim // 2},)")
            if inv_freq.is_meta:
                raise ValueError("inv_freq is on meta and has no values; make it with device='cpu'")
            if inv_freq.requires_grad:
                raise ValueError(
                    "inv_freq requires a gradient; learned frequencies go to cos_sin and apply_rotary_pos_emb"
                )
            inv_freq = inv_freq.to("cpu", copy=True)  # no buffer: .to(bfloat16) does not reach it
            has_values = type(inv_freq) is Tensor  # a fake tensor has none
            if has_values and not (inv_freq.isfinite().all() and (inv_freq.diff() <= 0).all()):
                ends = f"{inv_freq[0]:g} to {inv_freq[-1]:g}"
                others = "Are these wavelengths, or base**(2i / d)? inv_freq is 2 pi, or 1, over them"
                cause = others if inv_freq.max() > 1 else "Is it reversed?"
                raise ValueError(f"inv_freq goes from {ends}; it must be finite and not rise. {cause}")
        self.rotary_dim, self.interleaved, self.head_dim = rotary_dim, interleaved, head_dim
        self.base, self._inv_freq = base, inv_freq  # base is None if inv_freq was given
        self.attention_factor = check_number(attention_factor, "attention_factor", above=0)

    def __setattr__(self, name: str, value: object) -> None:
        """Settings are fixed, since a change of one would not reach the others."""
        fixed = ("rotary_dim", "interleaved", "head_dim", "base", "inv_freq", "attention_factor")
        if name in fixed and hasattr(self, name):
            raise AttributeError(f"{name} is fixed; make another RotaryEmbedding")
        super().__setattr__(name, value)

    @property
    def inv_freq(self) -> Tensor:
        """The inverse frequencies, as a copy, so that changing it does not change the rotation."""
        return self._inv_freq.clone()

    def tables(self, positions: Tensor, *, dtype: torch.dtype = torch.float32) -> tuple[Tensor, Tensor]:
        """`cos_sin`, times attention_factor, for `apply_rotary_pos_emb`: made once, used in every layer.

        Arguments and errors are those of `cos_sin`.

        Returns:
            cos, sin: each (..., rotary_dim // 2), on the device of positions.

        Example:
            >>> rope = RotaryEmbedding(4, interleaved=True, attention_factor=2.0)
            >>> rope.tables(torch.tensor([0]))[0]
            tensor([[2., 2.]])
        """
        cos, sin = cos_sin(positions, self.inv_freq, dtype=dtype)
        if self.attention_factor == 1:
            return cos, sin
        return self.attention_factor * cos, self.attention_factor * sin

    def __call__(self, q: Tensor, k: Tensor, *, positions: Tensor) -> tuple[Tensor, Tensor]:
        """`forward`, with the hooks of a module. Stated for its types: those of `nn.Module` say that anything comes."""
        return super().__call__(q, k, positions=positions)

    def forward(self, q: Tensor, k: Tensor, *, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Rotate q and k, with the errors of `cos_sin` and `apply_rotary_pos_emb`.

        Args:
            q, k: (..., seq_len, head_dim); k may have fewer heads.
            positions: (seq_len,) in tokens, or as many axes as q without head_dim, those in front equal or 1, e.g.
                (batch, 1, seq_len). No default, because counting along the wrong axis would turn each head by its
                number: with (batch, seq_len, heads, head_dim) transpose first.
        """
        for name, x in (("q", q), ("k", k)) if self.head_dim else ():
            check_tensor(x, name, "torch.zeros(seq_len, head_dim)")
            if x.shape[-1] != self.head_dim:
                raise ValueError(
                    f"{name} has shape {tuple(x.shape)}; head_dim must be {self.head_dim} (were the heads split?)"
                )
        double = any(getattr(x, "dtype", None) is torch.float64 for x in (q, k))
        tables = self.tables(positions, dtype=torch.float64 if double else torch.float32)
        return apply_rotary_pos_emb(q, k, *tables, interleaved=self.interleaved)

    def extra_repr(self) -> str:
        """What repr shows between the brackets."""
        first, last = self.inv_freq[0].item(), self.inv_freq[-1].item()
        frequencies = f"inv_freq={first:g} .. {last:.3g}" if self.base is None else f"base={float(self.base):g}"
        factor = "" if self.attention_factor == 1 else f", attention_factor={self.attention_factor:.12g}"
        head = "" if self.head_dim is None else f", head_dim={self.head_dim}"
        return f"{self.rotary_dim}, interleaved={self.interleaved}, {frequencies}{factor}{head}"
