"""One text over several processes, each with its own stretch of it: what RoPE and linear attention have to exchange.

    torchrun --nproc-per-node 2 -m bench.sharded        (on GPUs: with --device cuda, which takes nccl)

RoPE exchanges nothing: a rank needs the positions of its own tokens. Linear attention exchanges one state per rank, a
head_dim x value_dim matrix and a vector, whatever the length of the text. Run as a program, it compares outputs and
gradients with those of one process.
"""

import argparse
import os

import torch
import torch.distributed as dist
from torch import Tensor
from torch.autograd.function import FunctionCtx, once_differentiable

from rope_lib import cos_sin, inverse_frequencies
from rope_lib.linear import Rotation, State, linear_attention, linear_attention_step


def sharded_linear_attention(q: Tensor, k: Tensor, v: Tensor, positions: Tensor) -> Tensor:
    """Causal linear attention with a rotated numerator over a text whose stretches lie on the ranks, in order.

    Args:
        q, k: (..., seq_len of this rank, head_dim).
        v: (..., seq_len of this rank, value_dim).
        positions: (seq_len of this rank,) counted over the whole text.

    Returns:
        (..., seq_len of this rank, value_dim). Gradients flow to the other ranks.
    """
    cos, sin = cos_sin(positions, inverse_frequencies(q.shape[-1], device=q.device), dtype=q.dtype)
    rotation = Rotation(cos, sin, interleaved=True, denominator=False)
    _, own = linear_attention_step(None, q, k, v, rotation=rotation)
    before = State(*(_SumOfRanksBefore.apply(part) for part in own))
    return linear_attention_step(before, q, k, v, rotation=rotation)[0]


class _SumOfRanksBefore(torch.autograd.Function):
    """Of one tensor on each rank. Ranks behind have added ours, so its gradient is the sum of theirs."""

    @staticmethod
    def forward(ctx: FunctionCtx, part: Tensor) -> Tensor:
        return _everyones(part)[: dist.get_rank()].sum(dim=0)

    @staticmethod
    @once_differentiable
    def backward(ctx: FunctionCtx, gradient: Tensor) -> Tensor:
        return _everyones(gradient)[dist.get_rank() + 1 :].sum(dim=0)


def _everyones(part: Tensor) -> Tensor:
    """(ranks, ...) of a tensor that has the same shape on each rank."""
    parts = [torch.empty_like(part, memory_format=torch.contiguous_format) for _ in range(dist.get_world_size())]
    dist.all_gather(parts, part.contiguous())
    return torch.stack(parts)


def main() -> None:
    """Compare with one process; any difference beyond rounding raises."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    device = torch.device(parser.parse_args().device)
    if device.type == "cuda":
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("nccl" if device.type == "cuda" else "gloo")
    generator = torch.Generator().manual_seed(0)  # the same text on every rank
    text = torch.randn(4, 2, 301, 16, generator=generator, dtype=torch.float64).to(
        device if device.index else device.type
    )
    *whole, target = (x.requires_grad_() for x in text.detach().unbind())
    positions = torch.arange(301, device=device)
    tables = cos_sin(positions, inverse_frequencies(16), dtype=torch.float64)
    rotation = Rotation(*tables, interleaved=True, denominator=False)
    expected = linear_attention(*whole, causal=True, rotation=rotation)
    gradients = torch.autograd.grad((expected * target).sum(), whole)

    mine = positions.tensor_split(dist.get_world_size())[dist.get_rank()]
    shards = [x.detach()[:, mine].requires_grad_() for x in whole]
    output = sharded_linear_attention(*shards, mine)
    (output * target[:, mine]).sum().backward()
    torch.testing.assert_close(output, expected[:, mine])
    for shard, gradient in zip(shards, gradients, strict=True):
        torch.testing.assert_close(shard.grad, gradient[:, mine])
    error = (output - expected[:, mine]).abs().max().item()
    print(f"rank {dist.get_rank()}: positions {mine[0]} to {mine[-1]}, output and gradients agree, error {error:.0e}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
