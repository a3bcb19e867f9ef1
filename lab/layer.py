"""Layers that are complete, and small enough to read: the sinusoidal code, and attention with rotary positions."""

import torch
from torch import Tensor, nn

from rope_lib import RotaryEmbedding, attention

Cache = tuple[Tensor, Tensor]  # keys, rotated, and values: (batch, kv_heads, words, head_dim)


class SinusoidalEncoding(nn.Module):
    """Add to each word the code of its place, as in the first transformer.

    Raises:
        ValueError: a word stands beyond max_len.
    """

    def __init__(self, dim: int, *, max_len: int, dropout: float):
        super().__init__()
        speeds = 10000 ** (-torch.arange(0, dim, 2).double() / dim)
        angles = torch.arange(max_len)[:, None] * speeds
        codes = torch.stack((angles.sin(), angles.cos()), dim=-1).flatten(1)
        self.register_buffer("codes", codes.float())  # rounded once
        self.dropout = nn.Dropout(dropout)

    def forward(self, x: Tensor, start: int = 0) -> Tensor:
        """Words (batch, words, dim), the first one at place start."""
        codes = self.codes[start : start + x.shape[1]].to(x.dtype)
        if len(codes) < x.shape[1]:
            end = f"the last place is {start + x.shape[1] - 1}"
            raise ValueError(f"{end}; max_len is {len(self.codes)}")
        return self.dropout(x + codes)


class RotaryAttention(nn.Module):
    """Causal self-attention: projections, rotation, cache, grouped queries.

    Args:
        width: of the word vectors; a multiple of heads.
        heads: of queries; a multiple of kv_heads.
        kv_heads: of keys and values.
        interleaved: the layout of the pairs.

    Raises:
        ValueError: heads do not divide width, or kv_heads not heads.
    """

    def __init__(
        self,
        width: int,
        heads: int,
        kv_heads: int,
        *,
        interleaved: bool,
    ):
        super().__init__()
        if width % heads or heads % kv_heads:
            given = f"width is {width}, heads {heads}, kv_heads {kv_heads}"
            wanted = "each must be a multiple of the next"
            raise ValueError(f"{given}; {wanted}")
        self.head_dim = width // heads
        kv_width = kv_heads * self.head_dim
        self.to_q = nn.Linear(width, width, bias=False)
        self.to_k = nn.Linear(width, kv_width, bias=False)
        self.to_v = nn.Linear(width, kv_width, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)
        self.rope = RotaryEmbedding(self.head_dim, interleaved=interleaved)

    def forward(
        self,
        x: Tensor,
        cache: Cache | None = None,
    ) -> tuple[Tensor, Cache]:
        """New words (batch, words, width) and the cache of all before them.

        Returns:
            The outputs of the new words, shaped like x, and the new cache.
        """
        past = 0 if cache is None else cache[0].shape[-2]
        q, k, v = (
            project(x).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for project in (self.to_q, self.to_k, self.to_v)
        )  # (batch, heads, words, head_dim)
        positions = torch.arange(past, past + x.shape[1], device=x.device)
        q, k = self.rope(q, k, positions=positions)
        if cache is not None:
            k = torch.cat((cache[0], k), dim=-2)
            v = torch.cat((cache[1], v), dim=-2)
        out = attention(q, k, v, causal=True)  # the new words are the last
        return self.to_out(out.transpose(1, 2).flatten(-2)), (k, v)
