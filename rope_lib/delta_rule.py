"""The delta rule with a gate: a state that replaces what it holds for a key, in steps and in chunks.

    S_t = gate_t S_{t-1} + k_t w_t^T,    w_t = beta_t (v_t - gate_t S_{t-1}^T k_t) is what is written,

and the output S_t^T q_t. Keys are expected to have length 1. Nothing rotates; to rotate, turn q and k before.

Errors: TypeError where an argument is no dense tensor of one floating-point dtype; ValueError where shapes or devices
do not match.
"""

from __future__ import annotations

import torch
from torch import Tensor

from rope_lib._checks import check_same_dtype


def delta_rule_step(
    state: Tensor, q: Tensor, k: Tensor, v: Tensor, *, beta: Tensor, gate: Tensor
) -> tuple[Tensor, Tensor]:
    """One token.

    Args:
        state: (..., key_dim, value_dim), zeros at the beginning of a text.
        q, k: (..., key_dim).
        v: (..., value_dim).
        beta: (...), how much is replaced: 0 nothing, 1 all; 2 makes of what the state held for the key, x,
            the mirror image 2 v - x.
        gate: (...), what is left of the state before the token is written, 1 for all.

    Returns:
        The output, (..., value_dim), and the new state.

    Source: Yang et al. 2024, section 2.2, without the gate; with it Yang et al. 2025, section 3.1.

    Example:
        >>> key, value = torch.eye(4)[0], torch.tensor([3.0, 5.0])
        >>> all_of_it = {"beta": torch.tensor(1.0), "gate": torch.tensor(1.0)}
        >>> delta_rule_step(torch.ones(4, 2), key, key, value, **all_of_it)[0]
        tensor([3., 5.])
    """
    _check(state, q, k, v, beta, gate, "(..., key_dim)", state.ndim - 1)
    state = gate[..., None, None] * state
    write = beta[..., None] * (v - (k[..., None, :] @ state)[..., 0, :])
    state = state + k[..., :, None] * write[..., None, :]
    return (q[..., None, :] @ state)[..., 0, :], state


def delta_rule_chunk(
    state: Tensor, q: Tensor, k: Tensor, v: Tensor, *, beta: Tensor, gate: Tensor
) -> tuple[Tensor, Tensor]:
    """A stretch of tokens at once, with the results of `delta_rule_step` one after the other.

    A text is cut into stretches of 64 tokens or so, and the state goes from each to the next.

    Args:
        state: (..., key_dim, value_dim), before the first of the tokens.
        q, k: (..., tokens, key_dim).
        v: (..., tokens, value_dim).
        beta, gate: (..., tokens). A gate is above 0.

    Returns:
        The outputs, (..., tokens, value_dim), and the state behind the last token.

    Source: Yang et al. 2024, section 3, without the gate; with it Yang et al. 2025, section 3.3.

    Example:
        >>> q = k = torch.eye(4)[None]  # one head, four tokens
        >>> empty, v = torch.zeros(1, 4, 2), torch.ones(1, 4, 2)
        >>> settings = {"beta": torch.ones(1, 4), "gate": torch.ones(1, 4)}
        >>> outputs, state = delta_rule_chunk(empty, q, k, v, **settings)
        >>> outputs.shape, state.shape
        (torch.Size([1, 4, 2]), torch.Size([1, 4, 2]))
    """
    _check(state, q, k, v, beta, gate, "(..., tokens, key_dim)", state.ndim)
    strength, logs = beta[..., None], gate.log().cumsum(-1)
    since = logs[..., :, None] - logs[..., None, :]
    kept = since.tril(-1).exp().tril()  # [i, j]: at token i of what j wrote
    first = logs.exp()[..., None]  # [i]: of the state before the stretch
    inside = (strength * (k @ k.mT) * kept).tril(-1)
    wanted = strength * (v - first * (k @ state))
    # (I + inside) writes = wanted
    options = {"upper": False, "unitriangular": True}
    writes = torch.linalg.solve_triangular(inside, wanted, **options)
    outputs = first * (q @ state) + ((q @ k.mT) * kept) @ writes
    written = (kept[..., -1, :, None] * k).mT @ writes
    return outputs, first[..., -1:, :] * state + written


def _check(state: Tensor, q: Tensor, k: Tensor, v: Tensor, beta: Tensor, gate: Tensor, form: str, axes: int) -> None:
    check_same_dtype(state=state, q=q, k=k, v=v, beta=beta, gate=gate)
    lead = q.shape[:-1]
    fits = q.ndim == axes and q.shape == k.shape and v.shape[:-1] == beta.shape == gate.shape == lead
    if not fits or state.shape != (*q.shape[: state.ndim - 2], q.shape[-1], v.shape[-1]):
        shapes = ", ".join(f"{name} {tuple(x.shape)}" for name, x in (("state", state), ("q", q), ("k", k), ("v", v)))
        raise ValueError(
            f"shapes are: {shapes}, beta {tuple(beta.shape)}, gate {tuple(gate.shape)}; q and k must be {form}, v the "
            "same with value_dim, beta and gate without the last axis, state (..., key_dim, value_dim) (one number for "
            "all heads? expand it)"
        )
