"""The fast forms of the rotation are the formula: for each dtype, shape and order of memory, in each derivative."""

import itertools
import sys
import threading
import weakref

import pytest
import torch
from torch._subclasses import FakeTensorMode
from torch.autograd import forward_ad
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

from rope_lib import RotaryEmbedding, _fast, apply_rotary_emb, cos_sin, inverse_frequencies
from rope_lib.formula import rotate_pairs

layouts = pytest.mark.parametrize("interleaved", [True, False])
FULL, HALF = [torch.float64, torch.float32], [torch.bfloat16, torch.float16]
sizes = pytest.mark.parametrize("large", [False, True, "off the CPU"])


@pytest.fixture(autouse=True)
def small_is_large(request, monkeypatch):
    """Where a test asks for large inputs, more than two elements are large. The form for other devices is tested on
    the CPU, too."""
    large = "large" in request.fixturenames and request.getfixturevalue("large")
    if large:
        monkeypatch.setattr(_fast, "FEW", 2)
    if large == "off the CPU":
        monkeypatch.setattr(_fast, "_on_cpu", lambda x: False)


def normal(generator, *shape, dtype=torch.float64):
    return torch.randn(*shape, generator=generator, dtype=torch.float64).to(dtype)


def tables(positions, dim, dtype=torch.float32):
    return cos_sin(positions, inverse_frequencies(dim), dtype=dtype)


def assert_rounded_once(got, x, cos, sin, *, interleaved):
    """Against the formula in float64: three operations in the wider format of x and tables, one rounding to x's."""
    exact = rotate_pairs(x.double(), cos.double(), sin.double(), interleaved=interleaved)
    assert got.dtype == x.dtype
    assert got.shape == x.shape
    if x.numel():
        wide = torch.promote_types(torch.promote_types(x.dtype, torch.float32), cos.dtype)
        rounding, own = 2 * torch.finfo(wide).eps * x.abs().max().double(), torch.finfo(x.dtype)
        bound = own.eps / 2 * (exact.abs() + rounding).clamp(min=own.smallest_normal) + rounding
        assert ((got.double() - exact).abs() <= bound).all()


# -- Values ------------------------------------------------------------------------------------------------------------


def orders_of_memory(x):
    """The same numbers, (batch, heads, seq_len, head_dim), laid out in other ways; some parts of them."""
    wide, odd = torch.cat((x, x, x), dim=-1), torch.cat((x, x[..., :1]), dim=-1)
    yield from (x.clone(), x[0], x[0, 0], x[None])
    yield x.transpose(1, 2).contiguous().transpose(1, 2)  # as a projection leaves it
    yield x.mT.contiguous().mT
    yield from (wide[..., 3 : x.shape[-1] + 3], wide[..., 2 : x.shape[-1] + 2], wide[..., : 2 * x.shape[-1] : 2])
    yield from (odd[..., 1:], odd[..., :-1])  # pairs begin at odd places of the memory, or at odd ones too
    yield odd[:1, :1, :1, :-1]  # steps that are odd, though they are never taken
    yield from (x[:1, :1].expand_as(x), x[:, :, :1], x[:, :0], x[:0, 0], x.flip(2)[:, :, ::2])


@layouts
@sizes
@pytest.mark.parametrize("dtype", FULL + HALF, ids=str)
@pytest.mark.parametrize("mode", ["plain", "inference", "gradient"])
@pytest.mark.filterwarnings("error")  # torch calls complex numbers of half precision unfinished
def test_memory_may_be_in_any_order(interleaved, large, dtype, mode, generator):
    for head_dim, table in itertools.product((2, 6, 8), FULL):
        whole = normal(generator, 2, 3, 7, head_dim, dtype=dtype)
        for x in orders_of_memory(whole):
            before = x.clone()
            cos, sin = tables(torch.arange(x.shape[-2]) - 2, x.shape[-1], table)
            x = x.requires_grad_(mode == "gradient")
            with torch.inference_mode(mode == "inference"):
                got = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
            assert_rounded_once(got.detach(), before, cos, sin, interleaved=interleaved)
            if mode == "gradient":
                upstream = before.flip(0)  # a gradient is rotated back, and rounded as often
                [gradient] = torch.autograd.grad(got, x, upstream)
                assert_rounded_once(gradient, upstream, cos, -sin, interleaved=interleaved)
            assert torch.equal(x.detach(), before)


@layouts
@sizes
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_tables_may_be_in_any_order_and_differ_from_row_to_row(interleaved, large, dtype, generator):
    x = normal(generator, 2, 3, 5, 8, dtype=dtype)
    for shape in ((5,), (1, 1, 5), (2, 1, 5), (1, 3, 5), (2, 3, 5)):
        cos, sin = tables(torch.randint(1000, shape, generator=generator), 8)
        for c, s in ((cos, sin), (cos.mT.contiguous().mT, sin), (cos, torch.stack((sin, cos), dim=-1)[..., 0])):
            assert_rounded_once(
                apply_rotary_emb(x, c, s, interleaved=interleaved), x, cos, sin, interleaved=interleaved
            )
    none = tables(torch.arange(0), 8)
    assert apply_rotary_emb(x[:, :, :0], *none, interleaved=interleaved).shape == (2, 3, 0, 8)


@layouts
@sizes
@pytest.mark.parametrize("dtype", FULL + HALF, ids=str)
def test_float64_tables_count_to_their_last_digit(interleaved, large, dtype):
    """1024 - 1024 (1 - 2^-30) is 2^-20 in every format, and nothing where tables or products become float32."""
    x, one = torch.full((80, 2), 1024.0, dtype=dtype), torch.ones(80, 1, dtype=torch.float64)
    less = one - 2.0**-30
    for grad in (False, True):
        for cos, sin, difference in ((one, less, 2.0**-20), (less, one, -(2.0**-20))):
            turned = apply_rotary_emb(x.requires_grad_(grad), cos, sin, interleaved=interleaved)
            assert (turned[:, 0] == difference).all()


@layouts
@pytest.mark.parametrize("dtype", HALF, ids=str)
def test_a_long_text_in_half_precision(interleaved, dtype, generator):
    x = normal(generator, 2, 2**13 + 3, 136, dtype=dtype)[..., 4:132]
    cos, sin = tables(torch.arange(2**13 + 3), 128)
    turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    assert_rounded_once(turned, x, cos, sin, interleaved=interleaved)
    rows = x.transpose(0, 1)[..., None, :]  # a batch of 8195 with one word each
    turned = apply_rotary_emb(rows, cos[7:8], sin[7:8], interleaved=interleaved)
    assert_rounded_once(turned, rows, cos[7:8], sin[7:8], interleaved=interleaved)


@layouts
@sizes
@pytest.mark.parametrize("dtype", FULL + HALF, ids=str)
@pytest.mark.parametrize("grad", [False, True])
def test_the_result_may_be_changed_in_place(interleaved, large, dtype, grad, generator):
    x, (cos, sin) = normal(generator, 2, 5, 8, dtype=dtype).requires_grad_(grad), tables(torch.arange(5), 8)
    turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    twice = 2 * turned.detach()
    assert torch.equal(turned.mul_(2).detach(), twice)


@layouts
def test_threads_do_not_disturb_derivatives_of_others(interleaved):
    """Whether forward mode is on must be asked without switching it on, which is for all threads at once."""
    x, (cos, sin) = torch.ones(40, 128, 16), tables(torch.arange(128), 16)
    stop, failed = threading.Event(), []

    def derive():
        try:
            while not stop.is_set():
                torch.func.jvp(torch.sin, (torch.ones(2),), (torch.ones(2),))
        except RuntimeError as error:
            failed.append(error)

    thread, interval = threading.Thread(target=derive), sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    try:
        for _ in range(300):
            apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    finally:
        stop.set()
        thread.join()
        sys.setswitchinterval(interval)
    assert not failed


@layouts
@sizes
@pytest.mark.parametrize("grad", [False, True])
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # tracing is
@pytest.mark.filterwarnings("ignore::torch.jit.TracerWarning")
def test_a_trace_can_be_stored(interleaved, large, grad, generator, tmp_path):
    x, (cos, sin) = normal(generator, 2, 5, 8, dtype=torch.float32).requires_grad_(grad), tables(torch.arange(5), 8)
    traced = torch.jit.trace(lambda x: apply_rotary_emb(x, cos, sin, interleaved=interleaved), x)
    torch.jit.save(traced, str(tmp_path / "rotation.pt"))
    again = torch.jit.load(str(tmp_path / "rotation.pt"))(2 * x)
    assert_rounded_once(again.detach(), 2 * x.detach(), cos, sin, interleaved=interleaved)


@layouts
@pytest.mark.filterwarnings("error")  # torch warns when one of them is asked for its address
def test_tensors_that_only_pretend_to_be_there(interleaved):
    with FakeTensorMode():
        x, (cos, sin) = torch.ones(2**14, 256), torch.ones(2, 2**14, 128)
        turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    assert turned.shape == x.shape
    assert type(turned) is type(x)


@layouts
@sizes
@pytest.mark.parametrize("dtype", FULL + HALF, ids=str)
def test_default_device_and_type_change_nothing(interleaved, large, dtype, generator, request):
    x, away = normal(generator, 2, 2, 3, 5, 8, dtype=dtype).unbind()
    cos, sin = tables(torch.arange(5), 8)

    def rotated_and_back():
        leaf = x.clone().requires_grad_()
        turned = apply_rotary_emb(leaf, cos, sin, interleaved=interleaved)
        with torch.no_grad():
            alone = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
        return turned, alone, *torch.autograd.grad(turned, leaf, away)

    expected = rotated_and_back()
    with torch.device("meta"):
        assert all(map(torch.equal, rotated_and_back(), expected))
    request.addfinalizer(lambda: torch.set_default_dtype(torch.float32))
    for default in (torch.float64, torch.bfloat16):
        torch.set_default_dtype(default)
        assert all(map(torch.equal, rotated_and_back(), expected))


@layouts
@sizes
def test_autocast_and_inference_tables_change_nothing(interleaved, large, generator):
    with torch.inference_mode():
        cos, sin = tables(torch.arange(5), 8)
    for dtype in (torch.float32, torch.bfloat16):
        x = normal(generator, 2, 2, 5, 8, dtype=dtype)
        with torch.autocast("cpu", dtype=torch.bfloat16):
            turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
        assert_rounded_once(turned, x, cos, sin, interleaved=interleaved)


@layouts
@sizes
@pytest.mark.parametrize("which", ["both", "cos", "sin"])
def test_tables_of_inference_mode_can_be_trained_with(interleaved, large, which, generator):
    """A model evaluates, keeps its tables, and trains on."""
    with torch.inference_mode():
        kept = tables(torch.arange(5), 8)
    if which != "both":
        usual = tables(torch.arange(5), 8)
        kept = (kept[0], usual[1]) if which == "cos" else (usual[0], kept[1])
    x, away = (normal(generator, 2, 2, 5, 8, dtype=torch.float32).requires_grad_() for _ in range(2))
    found, expected = (
        torch.autograd.grad((apply_rotary_emb(x, *each, interleaved=interleaved) * away).sum(), x, create_graph=True)[0]
        for each in (kept, tables(torch.arange(5), 8))
    )
    assert torch.equal(found, expected)
    assert torch.equal(*(torch.autograd.grad(gradient.sum(), away)[0] for gradient in (found, expected)))


class NoComplexNumbers(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **kwargs or {})
        assert not any(x.is_complex() for x in tree_leaves(results) if isinstance(x, torch.Tensor))
        return results


@layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_an_apple_gpu_is_asked_for_no_complex_numbers(interleaved, dtype):
    """It has none. The tensors only pretend to be there, and have no values."""
    with FakeTensorMode(), NoComplexNumbers():
        x, (cos, sin) = torch.ones(2, 5, 8, dtype=dtype, device="mps"), torch.ones(2, 5, 4, device="mps").unbind()
        turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    assert turned.device.type == "mps"
    assert turned.dtype == dtype


class NewMemory(TorchDispatchMode):
    """Keeps every tensor that is made, so that no memory is used twice; total says how many bytes they have."""

    def __init__(self, *given):
        super().__init__()
        self.made, self.given = [], {x.untyped_storage().data_ptr() for x in given}

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        results = function(*args, **kwargs or {})
        self.made += [x.untyped_storage() for x in tree_leaves(results) if isinstance(x, torch.Tensor)]
        return results

    @property
    def total(self):
        sizes = {storage.data_ptr(): storage.nbytes() for storage in self.made}
        return sum(size for place, size in sizes.items() if place not in self.given)


@layouts
@pytest.mark.parametrize(("dtype", "times"), [(torch.float32, 1), (torch.bfloat16, 3)], ids=str)
def test_new_memory_is_the_result_and_what_is_widened(interleaved, dtype, times, generator):
    """The system clears new memory first, which takes longer than to rotate."""
    x, (cos, sin) = normal(generator, 64, 32, 64, dtype=dtype), tables(torch.arange(32), 64)
    with NewMemory(x, cos, sin) as memory:
        turned = _fast._rotate_new(x, cos, sin, interleaved)
    assert times * x.nbytes <= memory.total <= times * x.nbytes + 4 * cos.nbytes
    assert_rounded_once(turned, x, cos, sin, interleaved=interleaved)


@layouts
@pytest.mark.parametrize(("dtype", "times"), [(torch.float32, 1), (torch.bfloat16, 3), (torch.float16, 3)], ids=str)
@pytest.mark.parametrize("mode", ["plain", "tracked", "inference"])
def test_every_way_to_the_rotation_takes_as_little(mode, interleaved, dtype, times, generator):
    """Forward and backward, whoever asks; beside that, tables of the shape of cos and sin, at most four times."""
    x, (cos, sin) = normal(generator, 64, 32, 64, dtype=dtype), tables(torch.arange(32), 64)
    x.requires_grad_(mode == "tracked")
    with torch.inference_mode(mode == "inference"), NewMemory(x, cos, sin) as memory:
        turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    assert memory.total <= times * x.nbytes + 4 * cos.nbytes
    if mode == "tracked":
        away = torch.ones_like(turned)
        with NewMemory(x, cos, sin, turned, away) as memory:
            turned.backward(away)
        assert memory.total <= times * x.nbytes + 4 * cos.nbytes


# -- Gradients ---------------------------------------------------------------------------------------------------------


@layouts
@pytest.mark.parametrize("rotary_dim", [6, 4])
def test_gradients_of_all_that_goes_in(interleaved, rotary_dim, generator):
    x = normal(generator, 2, 4, 6).requires_grad_()
    angles = normal(generator, 4, rotary_dim // 2).requires_grad_()  # learned ones, say

    def rotate(x, angles):
        return apply_rotary_emb(x, angles.cos(), angles.sin(), interleaved=interleaved)

    for inputs in ((x, angles), (x, angles.detach()), (x.detach(), angles)):
        assert torch.autograd.gradcheck(rotate, inputs, check_forward_ad=True, check_batched_grad=True)
        assert torch.autograd.gradgradcheck(rotate, inputs)


SPEEDS = inverse_frequencies(8) + 0.1


def losses(x, interleaved, *, fast):
    """A number that depends on scales of x and on speeds, both in curves: `fast`, or by the formula in float64.

    It is the scalar product with x turned by 45 degrees less, so that the parts of a derivative hardly cancel.
    """
    dtype, rotate = (x.dtype, apply_rotary_emb) if fast else (torch.float64, rotate_pairs)
    table = torch.promote_types(dtype, torch.float32)
    m = torch.arange(x.shape[-2])[:, None]
    less = m * SPEEDS - torch.pi / 4
    away = rotate_pairs(x.double(), less.cos(), less.sin(), interleaved=interleaved)

    def loss(scale, cos_speeds, sin_speeds):
        y, cos, sin = (
            (x.double() * scale**2).to(dtype),
            (m * cos_speeds).cos().to(table),
            (m * sin_speeds).sin().to(table),
        )
        return (rotate(y, cos, sin, interleaved=interleaved).double() * away).sum()

    return loss


def assert_same_derivatives(got, expected, dtype):
    """What is lost is off by all of it; what is rounded, by half an eps for each of at most five roundings.

    They are of parts that may be larger than the whole, so 8 eps; and sums of some hundred numbers add 1e-13.
    """
    largest = expected.abs().max()
    assert largest > 0.1
    torch.testing.assert_close(got, expected, rtol=0, atol=((8 * torch.finfo(dtype).eps + 1e-13) * largest).item())


kinds = pytest.mark.parametrize(
    ("dtype", "large"),
    [
        (torch.float64, False),
        (torch.float64, True),
        (torch.float32, False),
        (torch.bfloat16, False),
        (torch.bfloat16, True),
    ],
)


@layouts
@kinds
@pytest.mark.parametrize("wanted", [(0,), (1,), (2,), (0, 1, 2)])
def test_backward_reaches_all_that_wants_a_gradient(interleaved, dtype, large, wanted, generator):
    x = normal(generator, 2, 2, 5, 8, dtype=dtype)
    found = []
    for fast in (True, False):
        at = [torch.full((2, 1, 1, 1), 1.5).double(), SPEEDS.clone(), SPEEDS.clone()]
        leaves = [at[i].requires_grad_() for i in wanted]
        found.append(torch.autograd.grad(losses(x, interleaved, fast=fast)(*at), leaves))
    for got, expected in zip(*found, strict=True):
        assert_same_derivatives(got, expected, dtype)


@layouts
@kinds
def test_every_derivative_of_a_derivative(interleaved, dtype, large, generator):
    """Forward or backward over forward or backward, of x or of the angles: a zero would be the worst of answers."""
    x = normal(generator, 2, 5, 8, dtype=dtype)
    fast, plain = (losses(x, interleaved, fast=fast) for fast in (True, False))
    at = torch.full((2, 1, 1), 1.5, dtype=torch.float64), SPEEDS, SPEEDS
    ways = (torch.func.jacfwd, torch.func.jacrev)
    for way, i in itertools.product((*ways, torch.func.grad), range(3)):
        assert_same_derivatives(way(fast, i)(*at), way(plain, i)(*at), dtype)
    for outer, inner, (i, j) in itertools.product(ways, ways, ((0, 0), (0, 1), (1, 0), (1, 1), (0, 2), (2, 0), (2, 2))):
        got, expected = (outer(inner(loss, i), j)(*at) for loss in (fast, plain))
        assert_same_derivatives(got, expected, dtype)


@layouts
@kinds
@pytest.mark.parametrize("parts", [(0,), (1,), (2,), (0, 1, 2)])
@pytest.mark.parametrize("requires_grad", [False, True])
def test_forward_mode_alone(interleaved, dtype, large, parts, requires_grad, generator):
    """A tangent of x is rotated like x; those of the tables rotate x."""
    x, x_tangent = normal(generator, 2, 2, 2, 5, 8, dtype=dtype)
    table = torch.promote_types(dtype, torch.float32)
    cos, sin, cos_tangent, sin_tangent = normal(generator, 4, 5, 4, dtype=table)
    primals, tangents = (x.requires_grad_(requires_grad), cos, sin), (x_tangent, cos_tangent, sin_tangent)
    none = torch.zeros_like(x), torch.zeros_like(cos), torch.zeros_like(sin)
    dx, dc, ds = (t.double() if i in parts else n.double() for i, (t, n) in enumerate(zip(tangents, none, strict=True)))
    with forward_ad.dual_level():
        duals = [
            forward_ad.make_dual(p, t) if i in parts else p
            for i, (p, t) in enumerate(zip(primals, tangents, strict=True))
        ]
        value, tangent = forward_ad.unpack_dual(apply_rotary_emb(*duals, interleaved=interleaved))
    assert_rounded_once(value.detach(), x.detach(), cos, sin, interleaved=interleaved)
    moved = rotate_pairs(dx, cos.double(), sin.double(), interleaved=interleaved)
    turned = rotate_pairs(x.double(), dc, ds, interleaved=interleaved)
    assert_same_derivatives(tangent.detach().double(), (moved + turned).detach(), dtype)


@layouts
@kinds
def test_vmap_over_any_of_the_three(interleaved, dtype, large, generator):
    x = normal(generator, 3, 2, 5, 8, dtype=dtype)
    cos, sin = tables(torch.arange(15).view(3, 5), 8, torch.promote_types(dtype, torch.float32))

    def rotate(x, cos, sin):
        return apply_rotary_emb(x, cos, sin, interleaved=interleaved)

    for batched in itertools.product((True, False), repeat=3):
        if any(batched):
            inputs = [t if b else t[0] for t, b in zip((x, cos, sin), batched, strict=True)]
            loop = [
                rotate_pairs(*(t[i] if b else t for t, b in zip(inputs, batched, strict=True)), interleaved=interleaved)
                for i in range(3)
            ]
            got = torch.vmap(rotate, in_dims=tuple(0 if b else None for b in batched))(*inputs)
            assert_same_derivatives(got.double(), torch.stack(loop).double(), dtype)
            with torch.inference_mode():
                again = torch.vmap(rotate, in_dims=tuple(0 if b else None for b in batched))(*inputs)
            assert_same_derivatives(again.double(), torch.stack(loop).double(), dtype)
    elsewhere = torch.vmap(rotate, in_dims=(2, 1, None), out_dims=1)(x.movedim(0, 2), cos.movedim(0, 1), sin[0])
    loop = torch.stack([rotate_pairs(x[i], cos[i], sin[0], interleaved=interleaved) for i in range(3)], dim=1)
    assert_same_derivatives(elsewhere.double(), loop.double(), dtype)


@layouts
@kinds
@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_a_batch_of_gradients_at_once(interleaved, dtype, large, generator):
    x, away = normal(generator, 2, 5, 8, dtype=dtype).requires_grad_(), normal(generator, 3, 2, 5, 8, dtype=dtype)
    cos, sin = tables(torch.arange(5), 8, torch.promote_types(dtype, torch.float32))
    turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    [got] = torch.vmap(lambda gradient: torch.autograd.grad(turned, x, gradient, retain_graph=True))(away)
    expected = rotate_pairs(away.double(), cos.double(), -sin.double(), interleaved=interleaved)
    assert_same_derivatives(got.double(), expected, dtype)


@layouts
@kinds
def test_gradients_of_samples(interleaved, dtype, large, generator):
    x = normal(generator, 3, 5, 8, dtype=dtype)
    at, dims = (torch.tensor([0.5, 1.5]).double(), SPEEDS, SPEEDS), (0, None, None)
    for i in range(3):
        got, expected = (
            torch.vmap(torch.func.grad(losses(x, interleaved, fast=fast), i), in_dims=dims)(*at)
            for fast in (True, False)
        )
        assert_same_derivatives(got, expected, dtype)


@layouts
@kinds
def test_what_is_kept_for_the_gradient_is_the_tables(interleaved, dtype, large, generator):
    """Not x, which in a long text is as large as the model's activations."""
    leaf = normal(generator, 2, 16, 5, 8, dtype=dtype).requires_grad_()
    cos, sin = tables(torch.arange(5), 8)
    x, kept = leaf * 2, []
    with torch.autograd.graph.saved_tensors_hooks(lambda t: kept.append(t.numel()) or t, lambda t: t):
        turned = apply_rotary_emb(x, cos, sin, interleaved=interleaved)
    assert turned.requires_grad
    assert 0 < max(kept) <= 2 * cos.numel()
    alive = weakref.ref(x)
    del x
    assert alive() is None


# -- Compilers ---------------------------------------------------------------------------------------------------------


@pytest.mark.slow
@layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
@pytest.mark.parametrize("gradients", [True, False])
def test_another_length_compiles_nothing_again(interleaved, dtype, gradients, generator):
    torch.compiler.reset()  # what other tests compiled counts towards a limit
    compiled_graphs = []

    def backend(graph, inputs):
        compiled_graphs.append(graph)
        return graph

    rope = RotaryEmbedding(8, interleaved=interleaved)
    compiled = torch.compile(rope, fullgraph=True, backend=backend, dynamic=True)
    for length in (5, 300, 2**15 + 7):  # of which the last is large for half precision, if nothing is compiled
        q, k = normal(generator, 2, 1, 4, length, 8, dtype=dtype).requires_grad_(gradients)
        positions = torch.arange(length)
        close = {"rtol": 2 * torch.finfo(dtype).eps, "atol": 2 * torch.finfo(dtype).eps}
        torch.testing.assert_close(compiled(q, k, positions=positions), rope(q, k, positions=positions), **close)
        assert len(compiled_graphs) == 1


@pytest.mark.slow
@layouts
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16], ids=str)
def test_compiled_transforms_of_functions(interleaved, dtype, generator):
    torch.compiler.reset()
    cos, sin = tables(torch.arange(5), 8)
    x, tangent = (normal(generator, 3, 2, 5, 8, dtype=dtype) for _ in range(2))

    def rotate(x, cos=cos):
        return apply_rotary_emb(x, cos, sin, interleaved=interleaved)

    transforms = (
        torch.vmap(rotate),
        lambda x: torch.func.jvp(rotate, (x,), (tangent,))[1],
        torch.vmap(torch.func.grad(lambda x: (rotate(x) * tangent[0]).sum())),
        lambda x: torch.func.grad(lambda cos: (rotate(x, cos) * tangent).float().sum())(cos),
    )
    for transform in transforms:
        compiled = torch.compile(transform, fullgraph=True, backend="aot_eager")
        assert_same_derivatives(compiled(x).double(), transform(x).double(), dtype)


@pytest.mark.parametrize("interleaved", [True, False])
def test_third_derivatives_in_every_order(interleaved):
    """Of c s^4 it is 24 c s: forward over forward over reverse is where torch loses tangents of functions like ours."""
    x, away = torch.randn(2, 3, 8, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cos, sin = cos_sin(torch.arange(3), inverse_frequencies(8), dtype=torch.float64)
    one = torch.ones((), dtype=torch.float64)

    def forward(f):
        return lambda s: torch.func.jvp(f, (s,), (one,))[1]

    def loss(s):
        return (apply_rotary_emb(x * s**2, cos, sin, interleaved=interleaved) ** 2 * away).sum()

    for ways in itertools.product((forward, torch.func.grad), repeat=3):
        derivative = loss
        for way in ways:
            derivative = way(derivative)
        assert derivative(one).item() == pytest.approx(24 * loss(one).item(), rel=1e-12)


@pytest.mark.slow
@pytest.mark.parametrize("interleaved", [True, False])
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_compiled_it_is_one_kernel(dtype, interleaved):
    from torch._inductor import metrics

    torch.compiler.reset()
    metrics.reset()
    x, tables = torch.randn(1, 8, 256, 128).to(dtype), cos_sin(torch.arange(256), inverse_frequencies(128))
    torch.compile(apply_rotary_emb, fullgraph=True)(x, *tables, interleaved=interleaved)
    assert metrics.generated_kernel_count == 1
