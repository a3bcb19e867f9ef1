"""Forty more by another writer who had the sheet only, after the check had been mended by the first sixty.

Half of them are mistakes that a list would hardly contain, chosen so that they look like one that it does.
"""

import itertools

import numpy as np
import torch

from tests.teaching.sheet_only import Answer, into, rotate_interleaved, tables

ANSWERS: list[Answer] = []
wrong = into(ANSWERS)


# Task 1: common mistakes in an unusual dress.


@wrong("tables", "The exponent is -i/d in place of -2i/d: the speeds fall half as fast as they should.", "half as fast")
def exponent_halved_in_complex_powers(positions, head_dim, base=10000.0):
    pair = torch.arange(head_dim // 2, dtype=torch.float64)
    phasor = torch.exp(1j * float(base) ** (-pair / head_dim))
    turned = phasor[None, :] ** positions[:, None]
    return turned.real, turned.imag


@wrong("tables", "The given positions are not used: row r gets the angles of position r.", "You count 0, 1, 2")
def rows_counted_by_running_product(positions, head_dim, base=10000.0):
    speeds = float(base) ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    step = torch.polar(torch.ones_like(speeds), speeds)
    walk = itertools.accumulate(positions[1:], lambda z, _: z * step, initial=torch.ones_like(step))
    turned = torch.stack(list(walk))
    return turned.real, turned.imag


@wrong(
    "tables", "The angles are computed in float32, which is too coarse at large positions.", "Angles rounded to float32"
)
def numpy_outer_in_single_precision(positions, head_dim, base=10000.0):
    speeds = np.power(np.float64(base), -np.arange(0, head_dim, 2) / head_dim).astype(np.float32)
    angles = np.multiply.outer(positions.numpy().astype(np.float32), speeds).astype(np.float64)
    return torch.from_numpy(np.cos(angles)), torch.from_numpy(np.sin(angles))


@wrong("tables", "The base is not used: the speeds always are those of base 10000.", "Right for base 10000 only")
def logspace_with_base_fixed(positions, head_dim, base=10000.0):
    speeds = torch.logspace(0, -4, head_dim // 2 + 1, dtype=torch.float64)[:-1]
    turned = torch.exp(1j * torch.einsum("m,i->mi", positions.double(), speeds))
    return turned.real, turned.imag


@wrong("tables", "The sines have the wrong sign: they are those of the angles -m theta_i.", "Rotated backwards")
def sine_from_upper_corner_of_matrix_exponential(positions, head_dim, base=10000.0):
    speeds = float(base) ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=torch.float64)
    angles = torch.remainder(positions.double()[:, None] * speeds, 2 * torch.pi)
    blocks = torch.matrix_exp(angles[..., None, None] * quarter)
    return blocks[..., 0, 0], blocks[..., 0, 1]


@wrong("tables", "The exponents run from 0 to -1 with both ends, i/(N-1) in place of 2i/d.", "the last point included")
def linspace_that_reaches_its_end(positions, head_dim, base=10000.0):
    exponents = torch.linspace(0, -1, head_dim // 2, dtype=torch.float64)
    angles = torch.einsum("m,i->mi", positions.double(), float(base) ** exponents)
    return angles.cos(), angles.sin()


# Task 1: unusual mistakes.


@wrong("tables", "Whole turns of 2 * 3.14159 are taken off the angles: pi has too few digits.", "positions = [257]")
def whole_turns_removed_with_a_short_pi(positions, head_dim, base=10000.0):
    speeds = float(base) ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    angles = (positions.double()[:, None] * speeds) % (2 * 3.14159)
    return angles.cos(), angles.sin()


@wrong("tables", "From position 2048 on the base is enlarged, as for long contexts.", "positions = [4097]")
def base_stretched_for_long_texts(positions, head_dim, base=10000.0):
    longest = int(positions.max()) + 1
    if longest > 2048:
        base = base * (longest / 2048) ** (head_dim / max(head_dim - 2, 1))
    speeds = float(base) ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    angles = torch.outer(positions.double(), speeds)
    return angles.cos(), angles.sin()


@wrong(
    "tables",
    "Positions are counted from the first one given: positions - positions[0] is turned.",
    "positions = [1], head_dim = 2",
)
def distance_from_the_first_row(positions, head_dim, base=10000.0):
    speeds = float(base) ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    angles = torch.outer((positions - positions[0]).double(), speeds)
    return angles.cos(), angles.sin()


@wrong(
    "tables", "The sine is the root of 1 - cos^2 and so never negative: wrong beyond half a turn.", "positions = [10]"
)
def sine_by_pythagoras(positions, head_dim, base=10000.0):
    speeds = float(base) ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    cos = torch.outer(positions.double(), speeds).cos()
    return cos, (1 - cos * cos).clamp(min=0).sqrt()


@wrong(
    "tables",
    "-2i/d is an integer division, rounded down: all pairs but the first get 1/base.",
    "All pairs but the first",
)
def exponent_by_floor_division(positions, head_dim, base=10000.0):
    exponents = -2 * torch.arange(head_dim // 2) // head_dim
    angles = positions.double()[:, None] * float(base) ** exponents.double()
    return angles.cos(), angles.sin()


@wrong(
    "tables",
    "The speeds are rounded to four decimals, which is exact only if they are 1, 0.1, 0.01, ...",
    "got angles of [3, 0.1392, 0.0066] rad",
)
def speeds_rounded_to_four_decimals(positions, head_dim, base=10000.0):
    speeds = [round(float(base) ** (-2 * i / head_dim), 4) for i in range(head_dim // 2)]
    angles = torch.outer(positions.double(), torch.tensor(speeds, dtype=torch.float64))
    return angles.cos(), angles.sin()


# Task 2, interleaved: common mistakes in an unusual dress.


@wrong("interleaved", "It turns clockwise.", "Rotated backwards")
def multiplied_by_the_conjugate(x, cos, sin):
    wide = torch.promote_types(x.dtype, cos.dtype)
    points = torch.view_as_complex(x.to(wide).unflatten(-1, (-1, 2)).contiguous())
    turned = points * torch.complex(cos, sin).conj()
    return torch.view_as_real(turned).flatten(-2).to(x.dtype)


@wrong(
    "interleaved",
    "Neighbours are turned rightly, but come out one half behind the other.",
    "right numbers in the wrong places",
)
def einsum_with_axes_left_in_half_order(x, cos, sin):
    turn = torch.stack((torch.stack((cos, -sin)), torch.stack((sin, cos))))
    pairs = x.to(torch.promote_types(x.dtype, cos.dtype)).unflatten(-1, (-1, 2))
    return torch.einsum("abmi,...mib->...mai", turn, pairs).flatten(-2).to(x.dtype)


@wrong(
    "interleaved",
    "The tables are rounded to the dtype of x before the product: too coarse in bfloat16.",
    "the tables are rounded before they meet x",
)
def tables_rounded_then_columns_in_double(x, cos, sin):
    wide, c, s = x.double(), cos.to(x.dtype).double(), sin.to(x.dtype).double()
    columns = [
        wide[..., j] * c[:, j // 2]
        + (wide[..., j + 1] * -s[:, j // 2] if j % 2 == 0 else wide[..., j - 1] * s[:, j // 2])
        for j in range(x.shape[-1])
    ]
    return torch.stack(columns, dim=-1).to(x.dtype)


@wrong(
    "interleaved",
    "Numbers 2i and 2i + 1 form a pair, but dimension j gets the angle of pair j mod N.",
    "one half beside the other",
)
def neighbours_with_tables_laid_end_to_end(x, cos, sin):
    index = torch.arange(x.shape[-1])
    wide = x.to(torch.promote_types(x.dtype, cos.dtype))
    partner = wide.gather(-1, (index ^ 1).expand(x.shape)) * (2 * (index % 2) - 1)
    return (wide * cos.repeat(1, 2) + partner * sin.repeat(1, 2)).to(x.dtype)


# Task 2, interleaved: unusual mistakes.


@wrong(
    "interleaved",
    "The direction is right, but each pair comes out with length 1: its own length is lost.",
    "got [1, 0, 1, 0], wanted [1, 0, 0, 0]",
)
def length_lost_in_polar_form(x, cos, sin):
    wide = torch.promote_types(x.dtype, cos.dtype)
    points = torch.view_as_complex(x.to(wide).unflatten(-1, (-1, 2)).contiguous())
    angle = points.angle() + torch.atan2(sin, cos)
    return torch.view_as_real(torch.polar(torch.ones_like(angle), angle)).flatten(-2).to(x.dtype)


@wrong(
    "interleaved",
    "With axes before the words, words get the table rows of other words.",
    "row 1 got [-1.74498, 4.68562]",
)
def table_rows_repeated_in_the_wrong_order(x, cos, sin):
    rows = x.to(torch.promote_types(x.dtype, cos.dtype)).reshape(-1, x.shape[-1])
    times = rows.shape[0] // cos.shape[0]
    c, s = cos.repeat_interleave(times, dim=0), sin.repeat_interleave(times, dim=0)
    even, odd = rows[:, 0::2], rows[:, 1::2]
    return torch.stack((even * c - odd * s, even * s + odd * c), dim=-1).reshape(x.shape).to(x.dtype)


@wrong(
    "interleaved",
    "Shears with sin/(1 + cos): where the cosine is -1 it divides by 0 (nan).",
    "in a way that I do not know",
)
def three_shears_that_fail_at_half_a_turn(x, cos, sin):
    even, odd = x[..., 0::2].double(), x[..., 1::2].double()
    slope = sin.double() / (1 + cos.double())
    even = even - slope * odd
    odd = odd + sin.double() * even
    even = even - slope * odd
    return torch.stack((even, odd), dim=-1).flatten(-2).to(x.dtype)


# Task 2, half-split: common mistakes in an unusual dress.


@wrong(
    "half-split",
    "It turns neighbours, that is interleaved pairs, in place of dimensions i and i + N.",
    "The other layout",
)
def neighbours_turned_by_matrix_exponential(x, cos, sin):
    wide = torch.promote_types(x.dtype, cos.dtype)
    quarter = torch.tensor([[0.0, -1.0], [1.0, 0.0]], dtype=wide)
    blocks = torch.matrix_exp(torch.atan2(sin, cos).to(wide)[..., None, None] * quarter)
    pairs = x.to(wide).unflatten(-1, (-1, 2))
    return torch.einsum("miab,...mib->...mia", blocks, pairs).flatten(-2).to(x.dtype)


@wrong(
    "half-split",
    "The numbers are right, but they are written into x, which the caller finds changed.",
    "changes the x that it is given",
)
def written_back_into_the_argument(x, cos, sin):
    pairs = x.unflatten(-1, (2, -1)).to(torch.promote_types(x.dtype, cos.dtype)).unbind(-2)
    turned = torch.complex(*pairs) * torch.complex(cos, sin).to(torch.complex(*pairs).dtype)
    for half, part in zip(x.chunk(2, dim=-1), (turned.real, turned.imag), strict=True):
        half.copy_(part)
    return x


@wrong(
    "half-split",
    "In bfloat16 each product is rounded before the sum, and the sum again.",
    "products are rounded before they are added",
)
def products_rounded_before_the_sum(x, cos, sin):
    doubled = torch.arange(x.shape[-1]) % cos.shape[-1]
    wide = x.to(torch.promote_types(x.dtype, cos.dtype))
    other = torch.cat((-wide, wide), dim=-1)[..., cos.shape[-1] : 3 * cos.shape[-1]]
    terms = [(a * b).to(x.dtype) for a, b in ((wide, cos[:, doubled]), (other, sin[:, doubled]))]
    return terms[0] + terms[1]


# Task 2, half-split: unusual mistakes.


@wrong(
    "half-split",
    "Dimension i is paired with d - 1 - i, its mirror image, in place of i + N.",
    "got [0.540302, 0, 0, 0.841471]",
)
def partner_in_the_mirror(x, cos, sin):
    wide = x.to(torch.promote_types(x.dtype, cos.dtype))
    half = x.shape[-1] // 2
    first, second = wide[..., :half], wide.flip(-1)[..., :half]
    turned = torch.complex(first, second) * torch.complex(cos, sin)
    return torch.cat((turned.real, turned.imag.flip(-1)), dim=-1).to(x.dtype)


@wrong(
    "half-split",
    "The partners are right, but the minus stands at even dimensions, not in the first half.",
    "got [0.540302, 0, -0.841471, 0]",
)
def minus_at_every_second_dimension(x, cos, sin):
    wide = x.to(torch.promote_types(x.dtype, cos.dtype))
    partner = wide.roll(x.shape[-1] // 2, dims=-1).clone()
    partner[..., 0::2] *= -1
    return (wide * torch.cat((cos, cos), -1) + partner * torch.cat((sin, sin), -1)).to(x.dtype)


@wrong(
    "half-split",
    "The angle is atan(sin/cos): where the cosine is negative, half a turn is lost.",
    "got [0.416147, -0.909297]",
)
def angle_found_without_its_quadrant(x, cos, sin):
    angle = torch.atan(sin.double() / cos.double())
    first, second = x.double().chunk(2, dim=-1)
    turned = torch.complex(first, second) * torch.exp(1j * angle)
    return torch.cat((turned.real, turned.imag), dim=-1).to(x.dtype)


@wrong(
    "half-split",
    "bfloat16 is computed in float16: rounded more than once, and large numbers overflow.",
    "rounded more than once",
)
def half_precision_in_between(x, cos, sin):
    wide = torch.float16 if x.dtype == torch.bfloat16 else torch.promote_types(x.dtype, cos.dtype)
    (first, second), c, s = x.to(wide).chunk(2, dim=-1), cos.to(wide), sin.to(wide)
    return torch.cat((first * c - second * s, first * s + second * c), dim=-1).to(x.dtype)


# Task 3.


@wrong(
    "to half-split",
    "It is the way back in place of the way there (the same for head_dim 2 and 4).",
    "The other way round",
)
def scattered_in_place_of_gathered(weight, head_dim):
    source = torch.arange(head_dim).reshape(-1, 2).T.reshape(-1)
    heads = weight.reshape(-1, head_dim, weight.shape[-1])
    index = source[None, :, None].expand_as(heads)
    return torch.empty_like(heads).scatter_(1, index, heads).reshape(weight.shape)


@wrong("to half-split", "Rows h, h + heads, h + 2 heads, ... are treated as one head.", "as if the heads took turns")
def heads_read_as_strided_rows(weight, head_dim):
    heads = weight.shape[0] // head_dim
    result = weight.clone()
    for head in range(heads):
        rows = weight[head::heads]
        result[head::heads] = torch.cat((rows[0::2], rows[1::2]))
    return result


@wrong(
    "to half-split",
    "Even rows before odd ones, but again within each half: bit-reversed order.",
    "rows got in the order [0, 4, 2, 1, 5, 3]",
)
def unshuffled_again_and_again(weight, head_dim):
    def order(rows):
        return rows if len(rows) < 3 else order(rows[0::2]) + order(rows[1::2])

    starts = range(0, weight.shape[0], head_dim)
    return weight[[start + row for start in starts for row in order(list(range(head_dim)))]]


@wrong(
    "to interleaved", "The heads are not kept apart: the whole weight is treated as one long head.", "from head to head"
)
def numpy_halves_of_the_whole_weight(weight, head_dim):
    half = weight.shape[0] // 2
    order = np.ravel(np.column_stack((np.arange(half), np.arange(half) + half)))
    return weight[torch.from_numpy(order)]


@wrong("to interleaved", "The order is right, but the rows are moved inside of weight itself.", "changes the weight")
def rows_moved_inside_the_weight(weight, head_dim):
    target = torch.arange(head_dim).reshape(-1, 2).T.reshape(-1)
    for head in weight.split(head_dim):
        head.index_copy_(0, target, head.clone())
    return weight


@wrong("to interleaved", "A float64 weight goes through float32 and loses digits.", "has other numbers")
def permutation_matrix_in_single_precision(weight, head_dim):
    source = torch.arange(head_dim).reshape(2, -1).T.reshape(-1)
    matrix = torch.eye(head_dim, dtype=torch.float32)[source]
    heads = weight.to(torch.float32).reshape(-1, head_dim, weight.shape[-1])
    return torch.einsum("ij,hjw->hiw", matrix, heads).reshape(weight.shape).to(weight.dtype)


# Task 4: common mistakes in an unusual dress.


@wrong(
    "cache",
    "The keys are right, but the new queries are always turned from position 0 on.",
    "the queries begin again at position 0",
)
def queries_turned_from_zero(q, k, cache):
    old = k[:, :0] if cache is None else cache
    cos, sin = tables(torch.arange(old.shape[1] + k.shape[1]), k.shape[-1])
    points = torch.view_as_complex(k.double().unflatten(-1, (-1, 2)).contiguous())
    turned = points * torch.complex(cos, sin)[old.shape[1] :]
    keys = torch.cat((old, torch.view_as_real(turned).flatten(-2).to(k.dtype)), dim=1)
    q = rotate_interleaved(q, cos[: q.shape[1]], sin[: q.shape[1]])
    return torch.einsum("hqd,hkd->hqk", q, keys), keys


@wrong("cache", "Old keys, turned already, are turned once more in each call.", "are turned again in each call")
def cache_turned_in_each_call(q, k, cache):
    keys = torch.hstack([part for part in (cache, k) if part is not None])
    turned = [
        rotate_interleaved(word[:, None], *tables(torch.tensor([m]), k.shape[-1]))
        for m, word in enumerate(keys.unbind(1))
    ]
    first = keys.shape[1] - k.shape[1]
    keys = torch.cat(turned, dim=1)
    q = rotate_interleaved(q, *tables(torch.arange(first, keys.shape[1]), q.shape[-1]))
    return torch.einsum("hqd,hkd->hqk", q, keys), keys


@wrong(
    "cache",
    "All new words of a call get the same position, that of the first of them.",
    "All words of a call get the same position",
)
def one_position_for_all_words_of_a_call(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    where = torch.tensor([past for _ in range(k.shape[1])])
    q, k = (rotate_interleaved(part, *tables(where, part.shape[-1])) for part in (q, k))
    keys = k if cache is None else torch.cat((cache, k), dim=1)
    return torch.bmm(q, keys.mT), keys


@wrong("cache", "The scores are right, but the cache holds keys that are not turned.", "a design in its own right")
def cache_kept_unturned(q, k, cache):
    keys = k if cache is None else torch.cat((cache, k), dim=1)
    cos, sin = tables(torch.arange(keys.shape[1]), k.shape[-1])
    new = slice(keys.shape[1] - k.shape[1], None)
    turned = rotate_interleaved(keys, cos, sin)
    return torch.einsum("hqd,hkd->hqk", rotate_interleaved(q, cos[new], sin[new]), turned), keys


# Task 4: unusual mistakes.


@wrong(
    "cache",
    "A counter outlives the text: a second text goes on where the first ended.",
    "another result the second time",
)
def counter_that_outlives_the_text(q, k, cache, seen=[0]):  # noqa: B006
    where = torch.arange(seen[0], seen[0] + k.shape[1])
    seen[0] += k.shape[1]
    cos, sin = tables(where, k.shape[-1])
    q, k = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    keys = k if cache is None else torch.cat((cache, k), dim=1)
    return q @ keys.mT, keys


@wrong(
    "cache",
    "The past is counted in calls of this size (cache.numel() // k.numel()), not in words.",
    "new words in each call: [1, 2]",
)
def past_counted_in_calls_of_this_size(q, k, cache):
    past = 0 if cache is None else cache.numel() // k.numel()
    cos, sin = tables(torch.arange(past, past + k.shape[1]), k.shape[-1])
    q, k = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    keys = k if cache is None else torch.cat((cache, k), dim=1)
    return q @ keys.mT, keys


@wrong(
    "cache",
    "Scores are right, but position 0 is always the newest word, so cached keys are wrong.",
    "call 2, cache row 0",
)
def newest_word_is_always_zero(q, k, cache):
    new, dim = k.shape[1], k.shape[-1]
    cos, sin = tables(torch.arange(1 - new, 1), dim)
    q, keys = rotate_interleaved(q, cos, sin), rotate_interleaved(k, cos, sin)
    if cache is not None:
        back = tables(torch.full((cache.shape[1],), -new), dim)
        keys = torch.cat((rotate_interleaved(cache, *back), keys), dim=1)
    return q @ keys.mT, keys


@wrong("cache", "Each query is multiplied with the keys of all heads, summed.", "call 1, scores got")
def einsum_that_adds_all_heads(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    cos, sin = tables(torch.arange(past, past + k.shape[1]), k.shape[-1])
    k = rotate_interleaved(k, cos, sin)
    keys = k if cache is None else torch.cat((cache, k), dim=1)
    return torch.einsum("hqd,gkd->hqk", rotate_interleaved(q, cos, sin), keys), keys
