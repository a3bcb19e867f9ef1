"""Sixty wrong answers by a writer who had the students' sheet only, neither the check nor its list.

A language model wrote them, and for each what is wrong with it; a program of its own saw each of them fail. The third
column, what the check says, was added afterwards, and the page counts how often that is true.
"""

import math
from typing import NamedTuple

import torch


class Answer(NamedTuple):
    task: str
    truth: str
    says: str
    function: object


def into(answers):
    """What puts a function into a list."""

    def wrong(task, truth, says):
        def put(function):
            answers.append(Answer(task, truth, says, function))
            return function

        return put

    return wrong


ANSWERS: list[Answer] = []
wrong = into(ANSWERS)


def tables(positions, head_dim, base=10000.0):  # this one is right, and so are the two below
    i = torch.arange(head_dim // 2, dtype=torch.float64)
    angles = positions.double()[:, None] * float(base) ** (-2 * i / head_dim)
    return torch.cos(angles), torch.sin(angles)


def rotate_interleaved(x, cos, sin):
    a, b = x[..., 0::2].double(), x[..., 1::2].double()
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


# -- Task 1: tables (18) -----------------------------------------------------------------------------------------------


@wrong(
    "tables",
    "Everything is computed in float32, so the angles of large positions are off by up to 0.03 rad.",
    "Angles rounded to float32",
)
def tables_01(positions, head_dim, base=10000.0):
    inv_freq = 1.0 / (base ** (torch.arange(0, head_dim, 2, dtype=torch.int64).float() / head_dim))
    freqs = torch.outer(positions.float(), inv_freq)
    return freqs.cos(), freqs.sin()


@wrong(
    "tables",
    "The speeds are computed in float32 and only then made float64, which is too late for large positions.",
    "Speeds rounded to float32",
)
def tables_02(positions, head_dim, base=10000.0):
    i = torch.arange(head_dim // 2)
    theta = torch.pow(base, -2 * i / head_dim)
    angles = positions.double()[:, None] * theta.double()[None, :]
    return torch.cos(angles), torch.sin(angles)


@wrong("tables", "The exponent is -i/d, the factor 2 is missing.", "half as fast")
def tables_03(positions, head_dim, base=10000.0):
    N = head_dim // 2
    i = torch.arange(N, dtype=torch.float64)
    theta = base ** (-i / head_dim)
    angles = positions[:, None].to(torch.float64) * theta
    return angles.cos(), angles.sin()


@wrong(
    "tables",
    "The factor 2 is in the exponent twice, once in the step of arange and once in front: -4i/d.",
    "twice as fast",
)
def tables_04(positions, head_dim, base=10000.0):
    i = torch.arange(0, head_dim, 2, dtype=torch.float64)
    theta = base ** (-2 * i / head_dim)
    angles = torch.outer(positions.double(), theta)
    return torch.cos(angles), torch.sin(angles)


@wrong(
    "tables",
    "The minus in the exponent is missing, so the speeds grow with i in the place of falling.",
    "Your pairs get faster",
)
def tables_05(positions, head_dim, base=10000.0):
    inv_freq = base ** (torch.arange(0, head_dim, 2).double() / head_dim)
    freqs = torch.einsum("i,j->ij", positions.double(), inv_freq)
    return freqs.cos(), freqs.sin()


@wrong(
    "tables",
    "The two tables are returned in the wrong order, the sines first.",
    "Cosines and sines have changed places",
)
def tables_06(positions, head_dim, base=10000.0):
    i = torch.arange(head_dim // 2, dtype=torch.float64)
    theta = base ** (-2.0 * i / head_dim)
    angles = positions.unsqueeze(-1).double() * theta.unsqueeze(0)
    return torch.sin(angles), torch.cos(angles)


@wrong("tables", "The values of positions are not used, the rows are always those of 0, 1, 2, ...", "You count 0, 1, 2")
def tables_07(positions, head_dim, base=10000.0):
    seq_len = positions.shape[0]
    theta = 1.0 / base ** (torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    m = torch.arange(seq_len, dtype=torch.float64)
    angles = torch.outer(m, theta)
    return torch.cos(angles), torch.sin(angles)


@wrong(
    "tables",
    "The angles are put behind one another twice, so the tables have head_dim columns in the place of head_dim // 2.",
    "a column for each dimension",
)
def tables_08(positions, head_dim, base=10000.0):
    inv_freq = 1.0 / (base ** (torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim))
    freqs = torch.outer(positions.to(inv_freq.dtype), inv_freq)
    emb = torch.cat((freqs, freqs), dim=-1)
    return emb.cos(), emb.sin()


@wrong(
    "tables",
    "The base is fixed at 10000 whatever is passed, and everything is float32, so large positions are wrong too.",
    "Right for base 10000 only",
)
def tables_09(positions, head_dim, base=10000.0):
    position = positions.unsqueeze(1)
    div_term = torch.exp(torch.arange(0, head_dim, 2).float() * (-math.log(10000.0) / head_dim))
    return torch.cos(position * div_term), torch.sin(position * div_term)


@wrong(
    "tables",
    "The pairs are counted from 1, so every column has the speed of the next one and speed 1 is missing.",
    "pairs counted from 1",
)
def tables_10(positions, head_dim, base=10000.0):
    theta = torch.tensor([base ** (-2 * i / head_dim) for i in range(1, head_dim // 2 + 1)], dtype=torch.float64)
    angles = positions.double().reshape(-1, 1) @ theta.reshape(1, -1)
    return torch.cos(angles), torch.sin(angles)


@wrong(
    "tables",
    "One complex table cos + i sin is returned in the place of two real ones.",
    "got (5, 6) in torch.complex128",
)
def tables_11(positions, head_dim, base=10000.0):
    freqs = 1.0 / (base ** (torch.arange(0, head_dim, 2)[: (head_dim // 2)].double() / head_dim))
    freqs = torch.outer(positions.double(), freqs)
    return torch.polar(torch.ones_like(freqs), freqs)


@wrong(
    "tables",
    "The exponent is a float32 quotient made float64 afterwards: right for a head_dim that is a power of two, "
    "wrong at large positions for others.",
    "Speeds rounded to float32",
)
def tables_12(positions, head_dim, base=10000.0):
    exponent = torch.arange(0, head_dim, 2) / head_dim
    theta = base ** (-exponent.to(torch.float64))
    angles = positions.to(torch.float64)[:, None] * theta[None, :]
    return torch.cos(angles), torch.sin(angles)


@wrong(
    "tables",
    "Exact Python angles are stored in a float32 tensor before cosine and sine are taken, so large angles lose "
    "their digits.",
    "Angles rounded to float32",
)
def tables_13(positions, head_dim, base=10000.0):
    angles = torch.zeros(len(positions), head_dim // 2)
    for row, m in enumerate(positions.tolist()):
        for i in range(head_dim // 2):
            angles[row, i] = m * base ** (-2 * i / head_dim)
    return torch.cos(angles.double()), torch.sin(angles.double())


@wrong(
    "tables",
    "The angles are stored in an int64 tensor like positions, so they are cut to whole numbers.",
    "got angles of [1, 0] rad, wanted [1, 0.01]",
)
def tables_14(positions, head_dim, base=10000.0):
    N = head_dim // 2
    angles = positions.new_zeros(len(positions), N)
    for i in range(N):
        angles[:, i] = positions * base ** (-2 * i / head_dim)
    return torch.cos(angles), torch.sin(angles)


@wrong(
    "tables",
    "A table of only seq_len rows is made and then indexed by the positions, so a position of seq_len or more crashes.",
    "It stopped. IndexError",
)
def tables_15(positions, head_dim, base=10000.0):
    seq_len = len(positions)
    inv_freq = 1.0 / (base ** (torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim))
    t = torch.arange(seq_len, dtype=torch.float64)
    freqs = torch.outer(t, inv_freq)
    return freqs.cos()[positions], freqs.sin()[positions]


@wrong(
    "tables", "Only the first position is read, and the others are taken to follow it one by one.", "positions = [1, 0]"
)
def tables_16(positions, head_dim, base=10000.0):
    start = positions[0].item()
    m = torch.arange(start, start + positions.numel(), dtype=torch.float64)
    theta = base ** (-2 * torch.arange(head_dim // 2, dtype=torch.float64) / head_dim)
    angles = m[:, None] * theta
    return angles.cos(), angles.sin()


@wrong(
    "tables",
    "A squeeze at the end removes the axis of length 1 for one position or for head_dim 2.",
    "has the shape (4,); wanted (1, 4)",
)
def tables_17(positions, head_dim, base=10000.0):
    i = torch.arange(head_dim // 2).double()
    theta = base ** (-2 * i / head_dim)
    angles = (positions.double().view(-1, 1, 1) * theta.view(1, 1, -1)).squeeze()
    return torch.cos(angles), torch.sin(angles)


@wrong(
    "tables",
    "Brackets are missing: base ** -2 * i / head_dim is (base ** -2) * i / head_dim.",
    "Only a part of your exponent",
)
def tables_18(positions, head_dim, base=10000.0):
    i = torch.arange(0, head_dim // 2, dtype=torch.float64)
    theta = base**-2 * i / head_dim
    angles = positions.double()[:, None] * theta
    return torch.cos(angles), torch.sin(angles)


# -- Task 2: interleaved (9) -------------------------------------------------------------------------------------------


@wrong("interleaved", "The signs of the sines are exchanged, so the pairs turn clockwise.", "Rotated backwards")
def interleaved_01(x, cos, sin):
    x1 = x[..., 0::2]
    x2 = x[..., 1::2]
    out = torch.stack((x1 * cos + x2 * sin, x2 * cos - x1 * sin), dim=-1)
    return out.reshape(x.shape).to(x.dtype)


@wrong(
    "interleaved",
    "The right pairs are turned the right way, but the result is put together half behind half in the place of "
    "side by side.",
    "right numbers in the wrong places",
)
def interleaved_02(x, cos, sin):
    even, odd = x[..., ::2], x[..., 1::2]
    new_even = even * cos - odd * sin
    new_odd = even * sin + odd * cos
    return torch.cat([new_even, new_odd], dim=-1).to(x.dtype)


@wrong("interleaved", "The numbers are right, but they are written into x itself.", "changes the x that it is given")
def interleaved_03(x, cos, sin):
    a = x[..., 0::2].clone()
    b = x[..., 1::2].clone()
    x[..., 0::2] = a * cos - b * sin
    x[..., 1::2] = a * sin + b * cos
    return x


@wrong("interleaved", "The pairs are half a vector apart: this is the half-split rotation.", "The other layout")
def interleaved_04(x, cos, sin):
    def rotate_half(t):
        t1 = t[..., : t.shape[-1] // 2]
        t2 = t[..., t.shape[-1] // 2 :]
        return torch.cat((-t2, t1), dim=-1)

    cos = torch.cat((cos, cos), dim=-1)
    sin = torch.cat((sin, sin), dim=-1)
    return ((x * cos) + (rotate_half(x) * sin)).to(x.dtype)


@wrong(
    "interleaved",
    "The neighbours are exchanged rightly, but the tables are doubled by cat in the place of repeat_interleave, "
    "so most numbers get another pair's angle.",
    "one half beside the other",
)
def interleaved_05(x, cos, sin):
    def rotate_every_two(t):
        t1 = t[..., ::2]
        t2 = t[..., 1::2]
        return torch.stack((-t2, t1), dim=-1).flatten(-2)

    cos = torch.cat((cos, cos), dim=-1)
    sin = torch.cat((sin, sin), dim=-1)
    return (x * cos + rotate_every_two(x) * sin).to(x.dtype)


@wrong(
    "interleaved",
    "flatten(3) fits only an x of four axes: with three the shape is wrong, with two it crashes.",
    "Count axes from the right",
)
def interleaved_06(x, cos, sin):
    x_ = torch.view_as_complex(x.float().reshape(*x.shape[:-1], -1, 2))
    freqs_cis = torch.complex(cos, sin)
    x_out = torch.view_as_real(x_ * freqs_cis).flatten(3)
    return x_out.type_as(x)


@wrong(
    "interleaved",
    "The tables are rounded to the dtype of x first, so a bfloat16 result is rounded several times.",
    "the tables are rounded before they meet x",
)
def interleaved_07(x, cos, sin):
    cos = cos.to(x.dtype)
    sin = sin.to(x.dtype)
    x1, x2 = x[..., 0::2], x[..., 1::2]
    return torch.stack([x1 * cos - x2 * sin, x1 * sin + x2 * cos], dim=-1).flatten(start_dim=-2)


@wrong(
    "interleaved",
    "x is read as complex in its own dtype, which does not exist for bfloat16: it crashes there.",
    "It stopped. RuntimeError: view_as_complex is only supported for half",
)
def interleaved_08(x, cos, sin):
    z = torch.view_as_complex(x.reshape(*x.shape[:-1], x.shape[-1] // 2, 2).contiguous())
    z = z * torch.complex(cos, sin)
    return torch.view_as_real(z).reshape(x.shape).to(x.dtype)


@wrong(
    "interleaved",
    "The second number of each pair is computed from the already turned first number.",
    "after that was turned",
)
def interleaved_09(x, cos, sin):
    out = x.clone()
    for i in range(x.shape[-1] // 2):
        c, s = cos[:, i], sin[:, i]
        out[..., 2 * i] = out[..., 2 * i] * c - out[..., 2 * i + 1] * s
        out[..., 2 * i + 1] = out[..., 2 * i] * s + out[..., 2 * i + 1] * c
    return out


# -- Task 2: half-split (9) --------------------------------------------------------------------------------------------


@wrong(
    "half-split",
    "The minus in rotate_half is missing, so the first half gets + sin and nothing is turned.",
    "A plus in both",
)
def half_split_01(x, cos, sin):
    x1, x2 = x.chunk(2, dim=-1)
    rotated = torch.cat((x2, x1), dim=-1)
    cos = torch.cat((cos, cos), -1)
    sin = torch.cat((sin, sin), -1)
    return (x * cos + rotated * sin).to(x.dtype)


@wrong(
    "half-split", "The minus in rotate_half stands at the wrong half, so the pairs turn clockwise.", "Rotated backwards"
)
def half_split_02(x, cos, sin):
    def rotate_half(t):
        t1, t2 = t[..., : t.shape[-1] // 2], t[..., t.shape[-1] // 2 :]
        return torch.cat((t2, -t1), dim=-1)

    cos, sin = cos.repeat(1, 2), sin.repeat(1, 2)
    return (x * cos + rotate_half(x) * sin).type_as(x)


@wrong(
    "half-split",
    "The pairs are read half a vector apart, but the result is put side by side as in the interleaved layout.",
    "right numbers in the wrong places",
)
def half_split_03(x, cos, sin):
    half = x.shape[-1] // 2
    x1, x2 = x[..., :half], x[..., half:]
    y = torch.stack((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1)
    return y.flatten(-2).to(x.dtype)


@wrong(
    "half-split",
    "The tables are doubled by repeat_interleave in the place of cat, so most numbers get another pair's angle.",
    "each column twice in a row",
)
def half_split_04(x, cos, sin):
    cos = cos.repeat_interleave(2, dim=-1)
    sin = sin.repeat_interleave(2, dim=-1)
    x1, x2 = x.chunk(2, dim=-1)
    return (x * cos + torch.cat((-x2, x1), dim=-1) * sin).to(x.dtype)


@wrong("half-split", "The pairs are neighbours: this is the interleaved rotation once more.", "The other layout")
def half_split_05(x, cos, sin):
    pairs = x.reshape(*x.shape[:-1], -1, 2)
    R = torch.stack((torch.stack((cos, -sin), -1), torch.stack((sin, cos), -1)), -2)
    y = torch.einsum("snij,...snj->...sni", R, pairs.to(R.dtype))
    return y.reshape(x.shape).to(x.dtype)


@wrong(
    "half-split",
    "The tables of head_dim // 2 columns meet the whole x without being doubled: it crashes from head_dim 4 on.",
    "It stopped. RuntimeError: The size of tensor a (12) must match the size of tensor b (6)",
)
def half_split_06(x, cos, sin):
    x1 = x[..., : x.shape[-1] // 2]
    x2 = x[..., x.shape[-1] // 2 :]
    rotated = torch.cat((-x2, x1), dim=-1)
    return (x * cos + rotated * sin).to(x.dtype)


@wrong(
    "half-split", "The result is not brought back to the dtype of x: bfloat16 comes out as float32.", "wanted x's dtype"
)
def half_split_07(x, cos, sin):
    x1, x2 = torch.split(x, x.shape[-1] // 2, dim=-1)
    return torch.cat((x1 * cos - x2 * sin, x1 * sin + x2 * cos), dim=-1)


@wrong(
    "half-split",
    "x is changed in place by mul_ and add_, and because of it bfloat16 is rounded twice.",
    "changes the x that it is given",
)
def half_split_08(x, cos, sin):
    x1, x2 = x.chunk(2, dim=-1)
    rotated = torch.cat((-x2, x1), dim=-1)
    cos = torch.cat((cos, cos), dim=-1)
    sin = torch.cat((sin, sin), dim=-1)
    return x.mul_(cos).add_(rotated * sin)


@wrong(
    "half-split",
    "unsqueeze(1) puts the words of the tables on the axis of the heads, so shapes do not fit or words get "
    "another word's angle.",
    "turned by its head number",
)
def half_split_09(x, cos, sin):
    cos = torch.cat((cos, cos), dim=-1).unsqueeze(1)
    sin = torch.cat((sin, sin), dim=-1).unsqueeze(1)
    x1, x2 = x.chunk(2, dim=-1)
    return ((x * cos) + (torch.cat((-x2, x1), dim=-1) * sin)).to(x.dtype)


# -- Task 3: to half-split (6) -----------------------------------------------------------------------------------------


@wrong(
    "to half-split",
    "This is the way back, from half-split to interleaved; the two agree only up to head_dim 4.",
    "The other way round",
)
def to_half_split_01(weight, head_dim):
    heads = weight.shape[0] // head_dim
    w = weight.view(heads, 2, head_dim // 2, -1)
    return w.transpose(1, 2).reshape(weight.shape)


@wrong(
    "to half-split",
    "All even rows of the whole matrix come first and then all odd ones, so the heads are mixed as soon as there "
    "are two.",
    "from head to head",
)
def to_half_split_02(weight, head_dim):
    return torch.cat((weight[0::2], weight[1::2]), dim=0)


@wrong(
    "to half-split",
    "head_dim is used as if it were the number of heads: wrong order for an even number of heads, a crash for an "
    "odd one.",
    "It stopped. RuntimeError: shape",
)
def to_half_split_03(weight, head_dim):
    dim1, dim2 = weight.shape
    n_heads = head_dim
    return weight.view(n_heads, dim1 // n_heads // 2, 2, dim2).transpose(1, 2).reshape(dim1, dim2)


@wrong(
    "to half-split",
    "The rows are right, but the result is always float32, whatever the dtype of weight.",
    "wanted the weight's dtype",
)
def to_half_split_04(weight, head_dim):
    out = torch.zeros(weight.shape)
    N = head_dim // 2
    for h in range(weight.shape[0] // head_dim):
        for i in range(N):
            out[h * head_dim + i] = weight[h * head_dim + 2 * i]
            out[h * head_dim + N + i] = weight[h * head_dim + 2 * i + 1]
    return out


@wrong(
    "to half-split",
    "The rows are right, but they are written into weight itself, and weight is returned.",
    "changes the weight",
)
def to_half_split_05(weight, head_dim):
    for start in range(0, len(weight), head_dim):
        head = weight[start : start + head_dim]
        head[:] = torch.cat([head[0::2], head[1::2]])
    return weight


@wrong(
    "to half-split",
    "The columns (the width) are put in another order in the place of the rows.",
    "The columns are sorted",
)
def to_half_split_06(weight, head_dim):
    return torch.cat((weight[..., 0::2], weight[..., 1::2]), dim=-1)


# -- Task 3: to interleaved (6) ----------------------------------------------------------------------------------------


@wrong(
    "to interleaved",
    "This is the way there once more, as if it were its own inverse; that is so only up to head_dim 4.",
    "The other way round",
)
def to_interleaved_01(weight, head_dim):
    w = weight.reshape(-1, head_dim, weight.shape[1])
    return torch.cat((w[:, 0::2], w[:, 1::2]), dim=1).reshape(weight.shape)


@wrong(
    "to interleaved",
    "The upper half of the whole matrix is mixed with the lower half in the place of the halves of each head.",
    "from head to head",
)
def to_interleaved_02(weight, head_dim):
    first, second = weight.chunk(2, dim=0)
    return torch.stack((first, second), dim=1).flatten(0, 1)


@wrong(
    "to interleaved",
    "The order is right, but the heads keep an axis of their own: the result has three axes in the place of two.",
    "has the shape (3, 6, 18); wanted (18, 18)",
)
def to_interleaved_03(weight, head_dim):
    heads = weight.shape[0] // head_dim
    w = weight.view(heads, 2, head_dim // 2, weight.shape[1])
    return w.permute(0, 2, 1, 3).reshape(heads, head_dim, weight.shape[1])


@wrong("to interleaved", "It goes by numpy, which has no bfloat16: it crashes for such weights.", "")
def to_interleaved_04(weight, head_dim):
    w = weight.detach().numpy()
    rows, width = w.shape
    w = w.reshape(rows // head_dim, 2, head_dim // 2, width).swapaxes(1, 2).reshape(rows, width)
    return torch.from_numpy(w.copy())


@wrong(
    "to interleaved",
    "The order of one head is used as an index of the whole matrix, so only the first head comes out.",
    "has the shape (6, 18); wanted (18, 18)",
)
def to_interleaved_05(weight, head_dim):
    perm = torch.arange(head_dim).view(2, head_dim // 2).t().reshape(-1)
    return weight[perm]


@wrong(
    "to interleaved",
    "weight is changed in place, and rows are overwritten before they are read.",
    "rows got in the order [0, 2, 2, 3]",
)
def to_interleaved_06(weight, head_dim):
    N = head_dim // 2
    for h in range(weight.shape[0] // head_dim):
        for i in range(N):
            weight[h * head_dim + 2 * i] = weight[h * head_dim + i]
            weight[h * head_dim + 2 * i + 1] = weight[h * head_dim + N + i]
    return weight


# -- Task 4: cached_scores (12) ----------------------------------------------------------------------------------------


@wrong(
    "cache",
    "The positions begin at 0 in each call, the length of the cache is not added.",
    "Each call begins again at position 0",
)
def cache_01(q, k, cache):
    _, new, head_dim = q.shape
    cos, sin = tables(torch.arange(new), head_dim)
    q = rotate_interleaved(q, cos, sin)
    k = rotate_interleaved(k, cos, sin)
    if cache is not None:
        k = torch.cat([cache, k], dim=1)
    return q @ k.transpose(1, 2), k


@wrong(
    "cache",
    "The keys of the cache, which are turned already, are turned again in each call.",
    "are turned again in each call",
)
def cache_02(q, k, cache):
    past = cache.shape[1] if cache is not None else 0
    if cache is not None:
        k = torch.cat((cache, k), dim=1)
    cos, sin = tables(torch.arange(k.shape[1]), k.shape[2])
    k = rotate_interleaved(k, cos, sin)
    q = rotate_interleaved(q, cos[past:], sin[past:])
    return torch.matmul(q, k.transpose(-2, -1)), k


@wrong(
    "cache",
    "The scores are right, but the cache holds the keys unturned and they are turned anew in each call.",
    "a design in its own right",
)
def cache_03(q, k, cache):
    all_k = k if cache is None else torch.cat((cache, k), dim=-2)
    total, new = all_k.shape[-2], q.shape[-2]
    cos, sin = tables(torch.arange(total), q.shape[-1])
    q_rot = rotate_interleaved(q, cos[-new:], sin[-new:])
    k_rot = rotate_interleaved(all_k, cos, sin)
    scores = torch.einsum("hqd,hkd->hqk", q_rot, k_rot)
    return scores, all_k


@wrong(
    "cache",
    "The positions begin at cache.shape[0], the number of heads, in the place of the number of past words.",
    "New words begin at the number of heads",
)
def cache_04(q, k, cache):
    past = 0 if cache is None else cache.shape[0]
    positions = torch.arange(past, past + q.shape[1])
    cos, sin = tables(positions, q.shape[-1])
    q, k = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    if cache is not None:
        k = torch.cat((cache, k), dim=1)
    return q @ k.mT, k


@wrong(
    "cache",
    "The new queries meet only the new keys: the scores with the keys of the cache are missing.",
    "with the new keys only",
)
def cache_05(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    new = k.shape[1]
    cos, sin = tables(torch.arange(past, past + new), k.shape[2])
    q = rotate_interleaved(q, cos, sin)
    k = rotate_interleaved(k, cos, sin)
    scores = torch.einsum("hid,hjd->hij", q, k)
    new_cache = k if cache is None else torch.cat([cache, k], dim=1)
    return scores, new_cache


@wrong(
    "cache",
    "The scores are divided by the root of head_dim and masked with -inf for later words; neither is wanted.",
    "Two mistakes at once, it seems. First: The scores are divided by the root",
)
def cache_06(q, k, cache):
    past = 0 if cache is None else cache.size(1)
    new, d = q.size(1), q.size(2)
    cos, sin = tables(torch.arange(past, past + new), d)
    q, k = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    keys = k if cache is None else torch.cat((cache, k), 1)
    scores = q @ keys.transpose(-2, -1) / math.sqrt(d)
    mask = torch.triu(torch.ones(new, past + new, dtype=torch.bool), diagonal=past + 1)
    return scores.masked_fill(mask, float("-inf")), keys


@wrong("cache", "The queries are not turned.", "The queries are not turned")
def cache_07(q, k, cache):
    offset = 0 if cache is None else cache.shape[-2]
    cos, sin = tables(torch.arange(k.shape[-2]) + offset, k.shape[-1])
    k = rotate_interleaved(k, cos, sin)
    if cache is not None:
        k = torch.cat([cache, k], dim=-2)
    return q @ k.transpose(-1, -2), k


@wrong(
    "cache",
    "After the first call all new words get one and the same position, so it is right only for one new word at a time.",
    "new words in each call: [1, 2]",
)
def cache_08(q, k, cache):
    if cache is None:
        cos, sin = tables(torch.arange(k.shape[1]), k.shape[-1])
        q, keys = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    else:
        cos, sin = tables(torch.tensor([cache.shape[1]]), k.shape[-1])
        q = rotate_interleaved(q, cos, sin)
        keys = torch.cat((cache, rotate_interleaved(k, cos, sin)), dim=1)
    return q @ keys.transpose(1, 2), keys


@wrong(
    "cache",
    "The keys get their right positions, but those of the queries begin at 0 in each call.",
    "the queries begin again at position 0",
)
def cache_09(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    new, head_dim = q.shape[1], q.shape[2]
    cos_q, sin_q = tables(torch.arange(new), head_dim)
    cos_k, sin_k = tables(torch.arange(past, past + new), head_dim)
    q_rot = rotate_interleaved(q, cos_q, sin_q)
    k_rot = rotate_interleaved(k, cos_k, sin_k)
    keys = torch.cat([cache, k_rot], dim=1) if cache is not None else k_rot
    return torch.bmm(q_rot, keys.transpose(1, 2)), keys


@wrong(
    "cache",
    "`if cache:` asks a tensor of many numbers for its truth: it crashes from the second call on.",
    "one that gets a cache stops",
)
def cache_10(q, k, cache):
    past = 0
    if cache:
        past = cache.shape[1]
    cos, sin = tables(torch.arange(past, past + k.shape[1]), k.shape[-1])
    q, k = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    if cache:
        k = torch.cat((cache, k), dim=1)
    return q @ k.transpose(-1, -2), k


_words_seen = 0


@wrong(
    "cache",
    "The position is counted in a global variable that is never set back, so a second text begins where the first "
    "one ended.",
    "another result the second time",
)
def cache_11(q, k, cache):
    global _words_seen
    new = k.shape[1]
    positions = torch.arange(_words_seen, _words_seen + new)
    _words_seen += new
    cos, sin = tables(positions, k.shape[-1])
    q, k = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    if cache is not None:
        k = torch.cat((cache, k), dim=1)
    return q @ k.transpose(-1, -2), k


@wrong(
    "cache", "After the first call the positions begin one too late, at past + 1.", "all positions are one too large"
)
def cache_12(q, k, cache):
    if cache is None:
        positions = torch.arange(q.shape[1])
    else:
        past = cache.shape[1]
        positions = torch.arange(past + 1, past + 1 + q.shape[1])
    cos, sin = tables(positions, q.shape[-1])
    q, k = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    if cache is not None:
        k = torch.cat((cache, k), dim=1)
    return torch.einsum("hnd,hmd->hnm", q, k), k
