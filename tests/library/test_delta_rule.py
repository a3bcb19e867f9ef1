import pytest
import torch

from rope_lib.delta_rule import delta_rule_chunk, delta_rule_step


def inputs(generator, *lead, tokens=11, key_dim=6, value_dim=4):
    """State, then q, k, v, and then beta and gate."""
    q, k = torch.randn(2, *lead, tokens, key_dim, generator=generator, dtype=torch.float64)
    v = torch.randn(*lead, tokens, value_dim, generator=generator, dtype=torch.float64)
    state = torch.randn(*lead, key_dim, value_dim, generator=generator, dtype=torch.float64)
    beta, gate = torch.rand(2, *lead, tokens, generator=generator, dtype=torch.float64)
    return state, (q, torch.nn.functional.normalize(k, dim=-1), v), (2 * beta, gate)


def by_loop(state, q, k, v, beta, gate):
    """One head, by numbers: what the key reads is compared with the value, and the difference written."""
    rows, columns = range(len(state)), range(len(state[0]))
    outputs = []
    for t in range(len(q)):
        state = [[gate[t] * state[i][j] for j in columns] for i in rows]
        read = [sum(k[t][i] * state[i][j] for i in rows) for j in columns]
        write = [beta[t] * (v[t][j] - read[j]) for j in columns]
        state = [[state[i][j] + k[t][i] * write[j] for j in columns] for i in rows]
        outputs.append([sum(q[t][i] * state[i][j] for i in rows) for j in columns])
    return outputs, state


def test_steps_and_chunks_are_the_plain_loop(generator):
    state, vectors, numbers = inputs(generator)
    wanted = by_loop(*(x.tolist() for x in (state, *vectors, *numbers)))
    chunk = delta_rule_chunk(state, *vectors, beta=numbers[0], gate=numbers[1])
    outputs = []
    for *token, beta, gate in zip(*vectors, *numbers, strict=True):
        output, state = delta_rule_step(state, *token, beta=beta, gate=gate)
        outputs.append(output)
    for found in (chunk, (torch.stack(outputs), state)):
        for one, other in zip(found, wanted, strict=True):
            torch.testing.assert_close(one, torch.tensor(other, dtype=torch.float64), rtol=1e-12, atol=1e-12)


def test_two_chunks_are_one_and_heads_are_apart(generator):
    state, vectors, (beta, gate) = inputs(generator, 2, 3)
    outputs, end = delta_rule_chunk(state, *vectors, beta=beta, gate=gate)
    parts, carried = [], state
    for cut in (slice(0, 4), slice(4, None)):
        pieces = (x[..., cut, :] for x in vectors)
        part, carried = delta_rule_chunk(carried, *pieces, beta=beta[..., cut], gate=gate[..., cut])
        parts.append(part)
    torch.testing.assert_close(torch.cat(parts, dim=-2), outputs)
    torch.testing.assert_close(carried, end)
    alone, _ = delta_rule_chunk(state[1, 2], *(x[1, 2] for x in vectors), beta=beta[1, 2], gate=gate[1, 2])
    torch.testing.assert_close(alone, outputs[1, 2])


def test_a_key_is_read_as_it_was_written(generator):
    state, (_, k, v), (beta, gate) = inputs(generator, tokens=1)
    read, _ = delta_rule_chunk(state, k, k, v, beta=torch.ones_like(beta), gate=gate)
    torch.testing.assert_close(read, v)


def test_small_gates_keep_gradients_finite(generator):
    """The quotient of two products of gates overflows above the diagonal, and is constant on it."""
    state, vectors, (beta, gate) = inputs(generator, tokens=64)
    gate = torch.full_like(gate, 1e-20, requires_grad=True)
    outputs, end = delta_rule_chunk(state, *vectors, beta=beta, gate=gate)
    (outputs.sum() + end.sum()).backward()
    assert gate.grad.isfinite().all()
    assert gate.grad[0] != 0


@pytest.mark.parametrize("function", [delta_rule_step, delta_rule_chunk])
def test_one_gate_for_all_tokens_is_refused(function, generator):
    state, vectors, (beta, _) = inputs(generator, 2)
    if function is delta_rule_step:
        vectors, beta = [x[:, 0] for x in vectors], beta[:, 0]
    with pytest.raises(ValueError, match=r"gate \(\); .*one number for all heads\? expand it"):
        function(state, *vectors, beta=beta, gate=torch.tensor(1.0, dtype=torch.float64))
    with pytest.raises(ValueError, match=r"shapes are: state \(2, 4, 6\)"):
        function(state.mT, *vectors, beta=beta, gate=beta)
    with pytest.raises(TypeError, match="have dtypes"):
        function(state.float(), *vectors, beta=beta, gate=beta)
