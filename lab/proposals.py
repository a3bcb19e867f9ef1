"""Attention with what was proposed in the place of the rotation, or on top of it: one block for all of them."""

import math

import torch
from torch import Tensor, nn
from torch.nn.functional import gelu, softplus

from lab.model import Block, Model
from rope_lib import apply_rotary_pos_emb, attention, cos_sin, inverse_frequencies

KINDS = ("RoPE", "none", "ALiBi", "a quarter", "p-RoPE", "PoPE", "by the words")


class Mixer(Block):
    """A layer whose queries and keys get their place by one of KINDS; all have about the same number of weights.

    *A quarter* turns a quarter of the head, at speeds of its own; *p-RoPE* stops the slowest quarter of the pairs.
    *PoPE* has a length for each number, softplus of it, and a speed for each, twice as many as there are pairs; a shift
    of the angle is learned. *By the words* each word turns all that follow it by RoPE's step and by up to half a turn
    more, which depends on the word; steps that miss a whole number of half turns by less than `exact` are made whole.
    *ALiBi* adds a bias, which the model hands over.

    Source: PoPE, Gopalakrishnan et al. 2025; p-RoPE, Barbero et al. 2024; ALiBi, Press et al. 2021. *By the words* is
    the book's own, in the manner of Selective RoPE, Movahedi et al. 2025.
    """

    exact = 0.0  # in half turns

    def __init__(self, kind: str, width: int, heads: int):
        super().__init__(width, heads)
        self.kind, head_dim = kind, width // heads
        if kind == "PoPE":
            self.shift = nn.Parameter(torch.zeros(heads, 1, head_dim))
        if kind == "by the words":
            self.to_turns = nn.Linear(width, width // 2, bias=False)
            narrower = width // 4  # as many weights less as the turns have
            self.up, self.down = nn.Linear(width, 4 * width - narrower), nn.Linear(4 * width - narrower, width)

    def forward(self, x: Tensor, tables: None, bias: Tensor | None, interleaved: bool, linear: None) -> Tensor:
        """(batch, n, width) -> (batch, n, width). The model hands over no tables; each kind has its own."""
        q, k, v = self.qkv(x)
        q, k = self.placed(q, k, x)
        attended = attention(q, k, v, causal=True, bias=bias, scale=v.shape[-1] ** -0.5)
        x = x + self.to_out(attended.transpose(1, 2).flatten(-2))
        return x + self.down(gelu(self.up(self.norms[1](x))))

    def placed(self, q: Tensor, k: Tensor, x: Tensor) -> tuple[Tensor, Tensor]:
        """Queries and keys, (batch, heads, n, head_dim), with their places; x is what the layer was given."""
        head_dim, positions = q.shape[-1], torch.arange(q.shape[-2], device=q.device)
        if self.kind in ("none", "ALiBi"):
            return q, k
        if self.kind == "PoPE":
            angles = torch.outer(positions, inverse_frequencies(2 * head_dim)).to(q)
            shifted = angles + self.shift.clamp(-2 * math.pi, 0)
            return _polar(softplus(q), angles), _polar(softplus(k), shifted)
        speeds = inverse_frequencies(head_dim // 4 if self.kind == "a quarter" else head_dim)
        if self.kind == "p-RoPE":
            speeds[-(len(speeds) // 4) :] = 0
        if self.kind == "by the words":
            angles = self.steps(x).cumsum(-2)
            turned = angles.cos(), angles.sin()
        else:
            turned = cos_sin(positions, speeds)
        return apply_rotary_pos_emb(q, k, *turned, interleaved=True)

    def steps(self, x: Tensor) -> Tensor:
        """(batch, n, width) -> (batch, heads, n, head_dim / 2): by which angles each word turns what follows it."""
        more = torch.pi * self.to_turns(self.norms[0](x)).tanh().unflatten(-1, (self.heads, -1)).transpose(1, 2)
        steps = more + inverse_frequencies(2 * more.shape[-1]).to(more)
        halves = (steps / torch.pi).round()
        return torch.where((steps / torch.pi - halves).abs() < self.exact, torch.pi * halves, steps)


class Proposal(Model):
    """The small model with one of KINDS in each layer; sizes as those of Model."""

    def __init__(self, kind: str, *, layers: int = 2, width: int = 64, heads: int = 4, symbols: int = 128):
        super().__init__(
            encoding="alibi" if kind == "ALiBi" else "none", layers=layers, width=width, heads=heads, symbols=symbols
        )
        self.kind = kind
        self.blocks = nn.ModuleList(Mixer(kind, width, heads) for _ in range(layers))
        for weight in self.blocks.parameters():
            if weight.ndim == 2:
                nn.init.normal_(weight, std=0.02)


def dropped(model: Proposal) -> Proposal:
    """The same model without positions, in place."""
    model.kind = "none"
    for block in model.blocks:
        block.kind = "none"
    return model


def _polar(length: Tensor, angle: Tensor) -> Tensor:
    return torch.cat((length * angle.cos(), length * angle.sin()), dim=-1)
