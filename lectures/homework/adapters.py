"""Your rotation in the signature that a well-known course asks for: not a part of homework 1.

Connect it, then run this file, with the folder check beside it: python adapters.py
"""

import torch
from torch import Tensor


def run_rope(d_k: int, theta: float, max_seq_len: int, in_query_or_key: Tensor, token_positions: Tensor) -> Tensor:
    """Turn queries or keys; pair i is dimensions 2i and 2i + 1.

    Args:
        d_k: dimension of a query or key.
        theta: the base.
        max_seq_len: all positions are below it.
        in_query_or_key: (..., seq_len, d_k).
        token_positions: (seq_len,), or (..., seq_len) with the same axes in front as in_query_or_key.

    Returns:
        Like in_query_or_key.
    """
    ### BEGIN SOLUTION
    speeds = theta ** (-torch.arange(0, d_k, 2, dtype=torch.float64) / d_k)
    angles = token_positions[..., None] * speeds
    pairs = torch.view_as_complex(in_query_or_key.double().unflatten(-1, (-1, 2)).contiguous())
    turned = torch.view_as_real(pairs * torch.polar(torch.ones_like(angles), angles))
    return turned.flatten(-2).to(in_query_or_key.dtype)
    ### END SOLUTION


if __name__ == "__main__":
    import check

    check.run_rope(run_rope)
