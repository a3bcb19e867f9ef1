"""A small causal language model over bytes, with one of five encodings; the tables of its rotation can be swapped."""

import torch
from torch import Tensor, nn
from torch.nn.functional import cross_entropy, gelu

from rope_lib import RotaryEmbedding, apply_rotary_pos_emb, cos_sin
from rope_lib.linear import Rotation, linear_attention
from rope_lib.softmax import attention, attention_from_scores
from rope_lib.theory.relative import alibi_bias, alibi_slopes, relative_distances
from rope_lib.theory.sinusoidal import sinusoidal_encoding

ENCODINGS = ("none", "learned", "sinusoidal", "alibi", "rope")
LINEAR = {"linear": (False, None), "linear, rope": (True, None), "linear, decay": (False, 0.9),
          "linear, both": (True, 0.9)}  # without softmax: rotated or not, decay per step  # fmt: skip
Tables = tuple[Tensor, Tensor]


class Block(nn.Module):
    """Attention and a feed-forward layer, each behind a normalization and beside a residual connection."""

    def __init__(self, width: int, heads: int):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.RMSNorm(width) for _ in range(2))
        self.to_qkv = nn.Linear(width, 3 * width, bias=False)
        self.to_out = nn.Linear(width, width, bias=False)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def qkv(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Each (batch, heads, n, head_dim), before any rotation."""
        parts = self.to_qkv(self.norms[0](x)).chunk(3, dim=-1)
        q, k, v = (part.unflatten(-1, (self.heads, -1)).transpose(1, 2) for part in parts)
        return q, k, v

    def forward(
        self, x: Tensor, tables: Tables | None, bias: Tensor | None, interleaved: bool, linear: tuple | None = None
    ) -> Tensor:
        """(batch, n, width) -> (batch, n, width)."""
        q, k, v = self.qkv(x)
        if linear is not None:
            rotation = None if tables is None else Rotation(*tables, interleaved=interleaved, denominator=False)
            attended = linear_attention(q, k, v, causal=True, rotation=rotation, decay=linear[1])
        else:
            if tables is not None:
                q, k = apply_rotary_pos_emb(q, k, *tables, interleaved=interleaved)
            attended = attention(q, k, v, causal=True, bias=bias)
        x = x + self.to_out(attended.transpose(1, 2).flatten(-2))
        return x + self.down(gelu(self.up(self.norms[1](x))))


class Model(nn.Module):
    """The model.

    Args:
        encoding: one of ENCODINGS, or of LINEAR: linear attention, rotated in the numerator or not, with decay or not.
        layers, width, heads: its size; heads divide width.
        longest: texts of more tokens have no learned position.
        symbols: bytes below this number are known.
        base: that of the rotation's speeds.
        learn_speeds: the speeds of the rotation are trained, too (as logarithms).
    """

    def __init__(
        self,
        *,
        encoding: str = "rope",
        layers: int = 3,
        width: int = 128,
        heads: int = 4,
        longest: int = 128,
        symbols: int = 128,
        base: float = 10000.0,
        learn_speeds: bool = False,
    ):
        super().__init__()
        self.encoding, self.heads, self.width = encoding, heads, width
        self.words = nn.Embedding(symbols, width)
        self.places = nn.Embedding(longest, width) if encoding == "learned" else None
        self.blocks = nn.ModuleList(Block(width, heads) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.rope = RotaryEmbedding(width // heads, base=base, interleaved=True)
        self.log_speeds = nn.Parameter(self.rope.inv_freq.log()) if learn_speeds else None
        for weight in self.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=0.02)
        nn.init.normal_(self.words.weight, std=width**-0.5)

    def hidden(
        self, text: Tensor, *, tables: Tables | None = None, window: int | None = None, interleaved: bool = True
    ) -> Tensor:
        """(batch, n) bytes -> (batch, n, width).

        Args:
            text: whole numbers below `symbols`.
            tables: cosines and sines in the place of the model's own, for n positions or more.
            window: each position sees so many positions, itself included, and no earlier one.
            interleaved: False reads the rotation in the wrong layout.
        """
        n = text.shape[1]
        positions = torch.arange(n, device=text.device)
        x = self.words(text) * self.width**0.5  # of the size of a sinusoidal code
        if self.encoding == "learned":
            x = x + self.places(positions)
        if self.encoding == "sinusoidal":
            x = x + sinusoidal_encoding(positions, self.width)
        tables = self.tables(positions) if tables is None else tuple(table[:n] for table in tables)
        bias = self.bias(positions, window)
        for block in self.blocks:
            x = block(x, tables, bias, interleaved, LINEAR.get(self.encoding))
        return self.norm(x)

    def tables(self, positions: Tensor) -> Tables | None:
        """The model's own, if it rotates."""
        if self.log_speeds is not None:
            return cos_sin(positions, self.log_speeds.exp())
        rotates = self.encoding == "rope" or LINEAR.get(self.encoding, (False,))[0]
        return self.rope.tables(positions) if rotates else None

    def bias(self, positions: Tensor, window: int | None) -> Tensor | None:
        """What is added to the scores: ALiBi's slopes, and minus infinity outside of the window."""
        distance = relative_distances(positions, positions)
        slopes = alibi_slopes(self.heads).to(positions.device)
        bias = alibi_bias(distance, slopes) if self.encoding == "alibi" else None
        if window is None:
            return bias
        bias = torch.zeros(distance.shape, device=distance.device) if bias is None else bias
        return bias.masked_fill(distance >= window, -torch.inf)

    @torch.no_grad()
    def queries_keys(self, text: Tensor) -> list[Tables]:
        """For each layer, q and k before any rotation: (batch, heads, n, head_dim) each."""
        found = []
        hooks = [
            block.register_forward_pre_hook(lambda block, inputs: found.append(block.qkv(inputs[0])[:2]))
            for block in self.blocks
        ]
        self.hidden(text)
        for hook in hooks:
            hook.remove()
        return found

    @torch.no_grad()
    def attention_maps(self, text: Tensor) -> Tensor:
        """(batch, n) -> (layers, batch, heads, n, n): how each position spreads its attention."""
        n = text.shape[1]
        positions = torch.arange(n, device=text.device)
        tables, bias, maps = self.tables(positions), self.bias(positions, window=n), []
        for q, k in self.queries_keys(text):
            if tables is not None:
                q, k = apply_rotary_pos_emb(q, k, *tables, interleaved=True)
            scores = q @ k.mT / q.shape[-1] ** 0.5 + bias.to(q)
            maps.append(attention_from_scores(scores, torch.eye(n).to(q), causal=True))
        return torch.stack(maps)

    def forward(self, text: Tensor, **options) -> Tensor:
        """(batch, n) -> (batch, n, symbols): what comes next, as logits; options as `hidden`."""
        return self.hidden(text, **options) @ self.words.weight.T

    def losses(self, text: Tensor, **options) -> Tensor:
        """(batch, n) -> (batch, n - 1): nats for each byte but the first, given those before it."""
        logits = self(text[:, :-1], **options)
        return cross_entropy(logits.transpose(1, 2), text[:, 1:], reduction="none")
