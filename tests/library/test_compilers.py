"""Every public kernel under torch.compile and torch.export: one graph for all lengths, with the results of eager."""

import pytest
import torch
from torch import distributed
from torch.distributed.tensor import Replicate, Shard, distribute_tensor, init_device_mesh

from lab.layer import RotaryAttention
from rope_lib import RotaryEmbedding, apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.linear import Rotation, State, linear_attention, linear_attention_step
from rope_lib.softmax import attention, attention_from_scores
from tests.conftest import OF_NEW_COMPILERS

SPEEDS = inverse_frequencies(8)


class Attention(torch.nn.Module):
    def __init__(self, cached):
        super().__init__()
        self.cached = cached

    def forward(self, q, k):
        return attention(q[..., -3:, :] if self.cached else q, k, k, causal=True)


class Scores(torch.nn.Module):
    def forward(self, q, k):
        return attention_from_scores(q @ k.mT, k, causal=True)


class Linear(torch.nn.Module):
    def __init__(self, decay, rotates):
        super().__init__()
        self.settings = {"decay": decay, "causal": True, "chunk_size": 16}
        self.rotates = rotates

    def forward(self, q, k):
        tables = cos_sin(torch.arange(q.shape[-2]), SPEEDS)
        rotation = Rotation(*tables, interleaved=True, denominator=False) if self.rotates else None
        return linear_attention(q, k, k, rotation=rotation, **self.settings)


class Step(torch.nn.Module):
    def __init__(self, decay):
        super().__init__()
        self.decay = decay

    def forward(self, q, k):
        state = State(k[..., :8, :].mT @ k[..., :8, :], k.exp().sum(-2))
        output, (values, normalizer) = linear_attention_step(state, q, k, k, decay=self.decay, chunk_size=16)
        return torch.cat((output, values, normalizer[..., None, :]), dim=-2)


class Rotated(torch.nn.Module):
    def forward(self, q, k):
        return apply_rotary_emb(q, *cos_sin(torch.arange(q.shape[-2]), SPEEDS), interleaved=False) + k


class Embedding(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.rope = RotaryEmbedding(8, interleaved=True)

    def forward(self, q, k):
        return torch.cat(self.rope(q, k, positions=torch.arange(q.shape[-2]) + 3))


class Layer(torch.nn.Module):
    """A growing cache: half of the words first, then the rest."""

    def __init__(self):
        super().__init__()
        torch.manual_seed(0)
        self.layer = RotaryAttention(32, heads=4, kv_heads=2, interleaved=True)

    def forward(self, q, k):
        words = torch.cat((q, k), dim=1).transpose(1, 2).flatten(2)[..., :32]
        first, cache = self.layer(words[:, :-2])
        last, _ = self.layer(words[:, -2:], cache)
        return torch.cat((first, last), dim=1)


KERNELS = {
    "attention": lambda: Attention(False), "attention with a cache": lambda: Attention(True), "scores": Scores,
    "linear": lambda: Linear(None, False), "linear, rotated": lambda: Linear(None, True),
    "linear, decay": lambda: Linear(0.9, False), "linear, both": lambda: Linear(0.9, True),
    "step": lambda: Step(None), "step, decay": lambda: Step(0.9),
    "rotation": Rotated, "embedding": Embedding, "layer": Layer,
}  # fmt: skip


def inputs(batch, n):
    generator = torch.Generator().manual_seed(n)
    return torch.rand(2, batch, 2, n, 8, generator=generator).unbind()


QUICK = ("linear, both", "rotation", "layer")
kernels = pytest.mark.parametrize(
    "name", [name if name in QUICK else pytest.param(name, marks=pytest.mark.slow) for name in KERNELS]
)


@pytest.mark.slow
@OF_NEW_COMPILERS
@kernels
def test_no_third_length_compiles_anything(name):
    torch.compiler.reset()  # what other tests compiled counts towards a limit
    kernel, graphs = KERNELS[name](), []

    def backend(graph, _):
        graphs.append(graph)
        return graph

    compiled = torch.compile(kernel, fullgraph=True, backend=backend)
    for n in (33, 20, 100, 9, 48):
        torch.testing.assert_close(compiled(*inputs(2, n)), kernel(*inputs(2, n)), rtol=1e-5, atol=1e-5)
        assert len(graphs) <= 2


@pytest.mark.slow
@OF_NEW_COMPILERS
@kernels
def test_an_exported_kernel_takes_any_batch_and_length(name):
    kernel = KERNELS[name]()
    sizes = {0: torch.export.Dim("batch", min=2, max=64), 2: torch.export.Dim("length", min=9, max=4096)}
    exported = torch.export.export(kernel, inputs(3, 33), dynamic_shapes=(sizes, sizes)).module()
    for batch, n in ((3, 33), (2, 16), (5, 100)):
        torch.testing.assert_close(exported(*inputs(batch, n)), kernel(*inputs(batch, n)), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("kv_heads", [2, 4])
def test_attention_compiles_with_all_sizes_dynamic(kv_heads):
    torch.compiler.reset()
    compiled = torch.compile(attention, fullgraph=True, backend="aot_eager", dynamic=True)
    generator = torch.Generator().manual_seed(0)
    for length in (9, 12, 30):
        q, k = (torch.randn(2, heads, size, 8, generator=generator) for heads, size in ((4, 3), (kv_heads, length)))
        torch.testing.assert_close(compiled(q, k, k, causal=True), attention(q, k, k, causal=True))


@OF_NEW_COMPILERS
@pytest.mark.slow
@pytest.mark.parametrize("decay", [None, 0.9])
def test_gradients_of_compiled_linear_attention_are_those_of_eager(decay):
    torch.compiler.reset()
    kernel = Linear(decay, True)
    compiled = torch.compile(kernel, fullgraph=True, backend="aot_eager")
    for n in (37, 20):
        q, k = (x.requires_grad_() for x in inputs(2, n))
        for x in (q, k):
            torch._dynamo.mark_dynamic(x, 2)  # the length alone: with every size dynamic it takes a minute
        away = torch.rand(2, 2, n, 8, generator=torch.Generator().manual_seed(0))
        found, expected = (torch.autograd.grad((run(q, k) * away).sum(), (q, k)) for run in (compiled, kernel))
        torch.testing.assert_close(found, expected, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("decay", [None, 0.9])
def test_no_words_leave_the_state_as_it_is(decay):
    torch.compiler.reset()
    step = torch.compile(linear_attention_step, backend="eager", fullgraph=True)
    q, k = inputs(3, 7)
    none, state = step(None, q[..., :0, :], k[..., :0, :], k[..., :0, :5], decay=decay)
    assert none.shape == (3, 2, 0, 5)
    assert all(not part.any() for part in state)
    _, state = linear_attention_step(None, q, k, k, decay=decay)
    none, same = step(state, q[..., :0, :], k[..., :0, :], k[..., :0, :], decay=decay)
    assert none.shape == (3, 2, 0, 8)
    assert all(torch.equal(*parts) for parts in zip(state, same, strict=True))


@pytest.fixture
def mesh(tmp_path):
    distributed.init_process_group("gloo", store=distributed.FileStore(str(tmp_path / "store")), rank=0, world_size=1)
    yield init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


@OF_NEW_COMPILERS
@pytest.mark.parametrize("interleaved", [True, False])
def test_distributed_tensors_want_distributed_tables(interleaved, mesh):
    x, _ = inputs(2, 5)
    tables = cos_sin(torch.arange(5), SPEEDS)
    over_heads = distribute_tensor(x, mesh, [Shard(1)])
    with pytest.raises(TypeError, match=r"^x is a DTensor, cos a Tensor, sin a Tensor; .*distribute_tensor\(cos, mesh"):
        apply_rotary_emb(over_heads, *tables, interleaved=interleaved)
    copies = (distribute_tensor(table, mesh, [Replicate()]) for table in tables)
    turned = apply_rotary_emb(over_heads, *copies, interleaved=interleaved)
    assert turned.placements == (Shard(1),)
    expected = apply_rotary_emb(x, *tables, interleaved=interleaved)
    torch.testing.assert_close(turned.full_tensor(), expected, rtol=1e-6, atol=1e-6)


def test_what_is_distributed_in_part_is_named(mesh):
    x, positions = torch.ones(5, 8), torch.arange(5.0)
    cos, sin = cos_sin(positions, SPEEDS)
    x, cos, places = (distribute_tensor(tensor, mesh, [Replicate()]) for tensor in (x, cos, positions))
    with pytest.raises(TypeError, match=r"^x is a DTensor, cos a DTensor, sin a Tensor; either all three are DTensors"):
        apply_rotary_emb(x, cos, sin, interleaved=True)
    with pytest.raises(TypeError, match=r"^positions is a DTensor; make tables from positions\.full_tensor\(\)"):
        cos_sin(places, SPEEDS)
