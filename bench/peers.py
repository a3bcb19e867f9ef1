"""Other libraries' rotations, each called as its own documentation calls it, for the benchmark.

A peer takes q and k of shape (batch, heads, seq_len, head_dim) and inv_freq, prepares its tables for positions
0 .. seq_len - 1 and its order of axes, neither of which is timed, and returns its inputs and the function to time.
"""

import importlib.machinery
import importlib.util
import sys
from collections.abc import Callable

import torch
from torch import Tensor

from rope_lib import apply_rotary_pos_emb, cos_sin
from rope_lib.linear import elu_plus_one

Prepared = tuple[tuple[Tensor, ...], Callable[..., tuple[Tensor, ...]]]


def ours(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """The library of the book."""
    cos, sin = cos_sin(torch.arange(q.shape[-2], device=q.device), inv_freq)
    return (q, k), lambda q, k: apply_rotary_pos_emb(q, k, cos, sin, interleaved=interleaved)


def clone(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """The copy limit, allocation included: the unit of all ratios."""
    return (q, k), lambda q, k: (q.clone(), k.clone())


def copy(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """A copy into memory that is there already: what of the clone is not page faults."""
    ready = torch.empty_like(q), torch.empty_like(k)
    return (q, k), lambda q, k: (ready[0].copy_(q), ready[1].copy_(k))


def llama(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Tables in q's dtype, as the model makes them."""
    from transformers.models.llama.modeling_llama import apply_rotary_pos_emb

    cos, sin = (table[None].to(q.dtype) for table in _doubled(q, inv_freq, interleaved=False))
    return (q, k), lambda q, k: apply_rotary_pos_emb(q, k, cos, sin)


def gptj(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Axes (batch, seq_len, heads, head_dim)."""
    from transformers.models.gptj.modeling_gptj import apply_rotary_pos_emb

    cos, sin = (table[None].to(q.dtype) for table in _tables(q, inv_freq))
    return _seq_first(q, k), lambda q, k: tuple(apply_rotary_pos_emb(x, sin, cos) for x in (q, k))


def roformer(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """The port of the original model."""
    from transformers.models.roformer.modeling_roformer import RoFormerSelfAttention

    cos, sin = _tables(q, inv_freq)
    sinusoidal = torch.cat((sin, cos), dim=-1)[None, None].to(q.dtype)
    return (q, k), lambda q, k: RoFormerSelfAttention.apply_rotary_position_embeddings(sinusoidal, q, k)


def torchtune(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Axes (batch, seq_len, heads, head_dim)."""
    _without_init("torchtune", "torchtune.modules")
    from torchtune.modules.position_embeddings import RotaryPositionalEmbeddings

    rope = RotaryPositionalEmbeddings(q.shape[-1], q.shape[-2]).to(q.device)
    return _seq_first(q, k), lambda q, k: (rope(q), rope(k))


def rotary_embedding_torch(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Its class caches the angles and takes their cosines at each call."""
    from rotary_embedding_torch import RotaryEmbedding

    rope = RotaryEmbedding(q.shape[-1]).to(q.device)
    return (q, k), lambda q, k: (rope.rotate_queries_or_keys(q), rope.rotate_queries_or_keys(k))


def x_transformers(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """The angles are handed over; their cosines are taken at each call."""
    from x_transformers.x_transformers import RotaryEmbedding, apply_rotary_pos_emb

    freqs, scale = RotaryEmbedding(q.shape[-1]).to(q.device).forward_from_seq_len(q.shape[-2])
    return (q, k), lambda q, k: tuple(apply_rotary_pos_emb(x, freqs, scale) for x in (q, k))


def litgpt(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Tables in float32."""
    from litgpt.model import apply_rope

    cos, sin = (table[None] for table in _doubled(q, inv_freq, interleaved=False))
    return (q, k), lambda q, k: (apply_rope(q, cos, sin), apply_rope(k, cos, sin))


def timm(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """One table, sines before cosines."""
    _without_init("timm", "timm.layers")
    from timm.layers.pos_embed_sincos import apply_rot_embed_cat

    cos, sin = _doubled(q, inv_freq, interleaved)
    table = torch.cat((sin, cos), dim=-1)
    return (q, k), lambda q, k: tuple(apply_rot_embed_cat(x, table, half=not interleaved) for x in (q, k))


def diffusers(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """The real form."""
    from diffusers.models.embeddings import apply_rotary_emb as rotate

    tables, dim = _doubled(q, inv_freq, interleaved), -1 if interleaved else -2
    return (q, k), lambda q, k: tuple(rotate(x, tables, use_real_unbind_dim=dim) for x in (q, k))


def diffusers_complex(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """The complex form, axes (batch, seq_len, heads, head_dim)."""
    from diffusers.models.embeddings import apply_rotary_emb as rotate

    factors = torch.complex(*_tables(q, inv_freq))[None]
    return _seq_first(q, k), lambda q, k: tuple(rotate(x, factors, use_real=False) for x in (q, k))


def labml_nn(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Axes (seq_len, batch, heads, head_dim)."""
    _without_init("labml_nn.transformers")
    from labml_nn.transformers.rope import RotaryPositionalEmbeddings

    rope = RotaryPositionalEmbeddings(q.shape[-1])
    return tuple(x.permute(2, 0, 1, 3).contiguous() for x in (q, k)), lambda q, k: (rope(q), rope(k))


def onnx(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """torch's own operator for export, run eagerly."""
    import torch.onnx.ops

    cos, sin = (table[None].expand(len(q), -1, -1).to(q.dtype) for table in _tables(q, inv_freq))
    rotate = torch.onnx.ops.rotary_embedding
    return (q, k), lambda q, k: tuple(rotate(x, cos, sin, interleaved=interleaved) for x in (q, k))


def liger(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Triton, in place; NVIDIA GPUs only."""
    from liger_kernel.ops.rope import LigerRopeFunction

    cos, sin = (table[None].to(q.dtype) for table in _doubled(q, inv_freq, interleaved=False))
    return (q, k), lambda q, k: LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin)


def fla(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Flash-linear-attention's Triton kernel, axes (batch, seq_len, heads, head_dim); NVIDIA GPUs only."""
    from fla.modules.rotary import rotary_embedding

    cos, sin = (table.to(q.dtype) for table in _tables(q, inv_freq))
    return _seq_first(q, k), lambda q, k: tuple(rotary_embedding(x, cos, sin, interleaved) for x in (q, k))


def flash_attention(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """Its Triton kernel, axes (batch, seq_len, heads, head_dim); of the package only its Python is needed."""
    _without_init("flash_attn", "flash_attn.ops", "flash_attn.ops.triton")
    from flash_attn.ops.triton.rotary import apply_rotary

    cos, sin = (table.to(q.dtype) for table in _tables(q, inv_freq))

    class Turned(torch.autograd.Function):  # as its own layer has it
        @staticmethod
        def forward(ctx, x: Tensor) -> Tensor:
            return apply_rotary(x, cos, sin, interleaved=interleaved)

        @staticmethod
        def backward(ctx, gradient: Tensor) -> Tensor:
            return apply_rotary(gradient, cos, sin, interleaved=interleaved, conjugate=True)

    return _seq_first(q, k), lambda q, k: (Turned.apply(q), Turned.apply(k))


def own_kernel(q: Tensor, k: Tensor, inv_freq: Tensor, interleaved: bool) -> Prepared:
    """The kernel that the page on costs shows."""
    from lab.kernel import rotated

    cos, sin = _tables(q, inv_freq)
    return (q, k), lambda q, k: tuple(rotated(x, cos, sin, interleaved=interleaved) for x in (q, k))


def fla_naive_chunk(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
    """Flash-linear-attention's chunked form in plain torch, with the feature map and the denominator."""
    _without_init("fla", "fla.ops", "fla.ops.linear_attn")
    from fla.ops.linear_attn.naive import naive_chunk_linear_attn

    q, k = (elu_plus_one(x).transpose(1, 2) for x in (q, k))
    return naive_chunk_linear_attn(q, k, v.transpose(1, 2), scale=1, normalize=True).transpose(1, 2)


# Name in the tables -> (function, layouts it has, True for interleaved).
PEERS = {
    "rope_lib": (ours, (True, False)),
    "clone": (clone, (True, False)),
    "copy_": (copy, (True, False)),
    "transformers Llama": (llama, (False,)),
    "transformers GPT-J": (gptj, (True,)),
    "transformers RoFormer": (roformer, (True,)),
    "torchtune": (torchtune, (True,)),
    "rotary-embedding-torch": (rotary_embedding_torch, (True,)),
    "x-transformers": (x_transformers, (True,)),
    "litgpt": (litgpt, (False,)),
    "timm": (timm, (True, False)),
    "diffusers": (diffusers, (True, False)),
    "diffusers complex": (diffusers_complex, (True,)),
    "labml-nn": (labml_nn, (False,)),
    "torch.onnx.ops": (onnx, (True, False)),
    "liger-kernel": (liger, (False,)),
    "flash-linear-attention": (fla, (True, False)),
    "flash-attention": (flash_attention, (True, False)),
    "lab.kernel": (own_kernel, (True, False)),
}
ON_A_CARD = ("rope_lib", "clone", "transformers Llama", "liger-kernel", "flash-attention", "lab.kernel")


def _tables(q: Tensor, inv_freq: Tensor) -> tuple[Tensor, Tensor]:
    return cos_sin(torch.arange(q.shape[-2], device=q.device), inv_freq)


def _doubled(q: Tensor, inv_freq: Tensor, interleaved: bool) -> tuple[Tensor, Tensor]:
    """Tables of the full width, as most libraries keep them."""
    tables = _tables(q, inv_freq)
    return tuple(t.repeat_interleave(2, -1) if interleaved else torch.cat((t, t), dim=-1) for t in tables)


def _seq_first(*inputs: Tensor) -> tuple[Tensor, ...]:
    return tuple(x.transpose(1, 2).contiguous() for x in inputs)


def _without_init(*packages: str) -> None:
    """Let modules of these packages be imported without the packages' own imports (data sets, vision, ...)."""
    for name in packages:
        if name not in sys.modules:
            spec = importlib.machinery.ModuleSpec(name, None, is_package=True)
            spec.submodule_search_locations = importlib.util.find_spec(name).submodule_search_locations
            sys.modules[name] = importlib.util.module_from_spec(spec)
