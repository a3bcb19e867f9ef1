"""Wrong answers that the list of mistakes was not made from, each with the name that is true of it.

The name is a piece of the check's sentence; "" where no mistake of the list was made. They were written, with their
names, before the check was run on them, and nobody may tune the check to them: then they would measure nothing.
"""

import math
from typing import NamedTuple

import torch


class Answer(NamedTuple):
    task: str
    name: str
    function: object


ANSWERS: list[Answer] = []


def wrong(task, name=""):
    def put(function):
        ANSWERS.append(Answer(task, name, function))
        return function

    return put


def tables(positions, head_dim, base=10000.0):  # this one is right
    speeds = base ** (-torch.arange(0, head_dim, 2, dtype=torch.float64) / head_dim)
    angles = torch.outer(positions.double(), speeds)
    return angles.cos(), angles.sin()


def rotate_interleaved(x, cos, sin):  # so is this
    first, second = x[..., ::2], x[..., 1::2]
    return torch.stack((first * cos - second * sin, first * sin + second * cos), -1).flatten(-2).to(x.dtype)


# -- Task 1 ------------------------------------------------------------------------------------------------------------


@wrong("tables", "the last point included")
def one_pair_too_few(positions, head_dim, base=10000.0):
    i = torch.arange(head_dim // 2, dtype=torch.float64)
    angles = torch.outer(positions.double(), 1 / base ** (2 * i / (head_dim - 2)))
    return torch.cos(angles), torch.sin(angles)


@wrong("tables", "pairs counted from 1")
def a_loop_from_one(positions, head_dim, base=10000.0):
    columns = [positions.double() / base ** (2 * i / head_dim) for i in range(1, head_dim // 2 + 1)]
    angles = torch.stack(columns, dim=1)
    return angles.cos(), angles.sin()


@wrong("tables", "half as fast")
def steps_of_one(positions, head_dim, base=10000.0):
    exponents = torch.arange(0, head_dim // 2).double() / head_dim
    angles = positions.unsqueeze(1).double() * torch.exp(-exponents * math.log(base))
    return angles.cos(), angles.sin()


@wrong("tables", "Your pairs get faster")
def divided_twice(positions, head_dim, base=10000.0):
    speeds = 1 / base ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    angles = positions[:, None] * speeds
    return angles.cos(), angles.sin()


@wrong("tables", "have changed places. At position 0 every cosine")
def imaginary_first(positions, head_dim, base=10000.0):
    cos, sin = tables(positions, head_dim, base)
    turns = torch.complex(cos, sin)
    return turns.imag, turns.real


@wrong("tables", "rounded to float32")
def float_all_along(positions, head_dim, base=10000.0):
    theta = 1.0 / (base ** (torch.arange(0, head_dim, 2)[: head_dim // 2].float() / head_dim))
    angles = torch.outer(positions.float(), theta)
    return angles.cos(), angles.sin()


@wrong("tables")
def as_far_from_the_first(positions, head_dim, base=10000.0):
    return tables(positions[0] + torch.arange(len(positions)), head_dim, base)


@wrong("tables")
def turns_cut_off_by_a_coarse_number(positions, head_dim, base=10000.0):
    angles = positions.double()[:, None] * base ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    angles = angles % 6.28
    return angles.cos(), angles.sin()


@wrong("tables")
def logarithm_to_the_base_ten(positions, head_dim, base=10000.0):
    speeds = torch.exp(-torch.arange(0, head_dim, 2).double() / head_dim * math.log10(base))
    angles = positions.double()[:, None] * speeds
    return angles.cos(), angles.sin()


@wrong("tables")
def slow_pairs_first(positions, head_dim, base=10000.0):
    cos, sin = tables(positions, head_dim, base)
    return cos.flip(1), sin.flip(1)


@wrong("tables")
def into_degrees(positions, head_dim, base=10000.0):
    angles = positions.double()[:, None] * base ** (-torch.arange(0, head_dim, 2).double() / head_dim)
    angles = torch.rad2deg(angles)
    return angles.cos(), angles.sin()


@wrong("tables")
def sines_twice(positions, head_dim, base=10000.0):
    _, sin = tables(positions, head_dim, base)
    return sin, sin


# -- Task 2 ------------------------------------------------------------------------------------------------------------


@wrong("interleaved", "A minus in both")
def minus_twice(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    y = torch.empty(x.shape, dtype=torch.promote_types(x.dtype, cos.dtype))
    y[..., ::2] = a * cos - b * sin
    y[..., 1::2] = b * cos - a * sin
    return y.to(x.dtype)


@wrong("interleaved", "right numbers in the wrong places")
def stacked_one_axis_too_early(x, cos, sin):
    a, b = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-2).flatten(-2).to(x.dtype)


@wrong("interleaved", "The other layout")
def reshaped_into_two_rows(x, cos, sin):
    a, b = x.reshape(*x.shape[:-1], 2, -1).unbind(-2)
    return torch.cat((a * cos - b * sin, b * cos + a * sin), dim=-1).to(x.dtype)


@wrong("half-split", "Rotated backwards")
def the_conjugate(x, cos, sin):
    a, b = x.double().chunk(2, dim=-1)
    z = torch.complex(a, b) * torch.complex(cos.double(), sin.double()).conj()
    return torch.cat((z.real, z.imag), dim=-1).to(x.dtype)


@wrong("half-split", "A plus in both")
def no_minus_in_the_other_half(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    cos, sin = torch.cat((cos, cos), -1), torch.cat((sin, sin), -1)
    return (x * cos + torch.cat((b, a), dim=-1) * sin).to(x.dtype)


@wrong("interleaved", "meet different angles")
def tables_side_by_side(x, cos, sin):
    half = torch.stack((-x[..., 1::2], x[..., ::2]), dim=-1).flatten(-2)
    cos, sin = cos.repeat(1, 2), sin.repeat(1, 2)
    return (x * cos + half * sin).to(x.dtype)


@wrong("interleaved")
def first_and_second_exchanged(x, cos, sin):
    b, a = x[..., ::2], x[..., 1::2]
    return torch.stack((a * cos - b * sin, a * sin + b * cos), dim=-1).flatten(-2).to(x.dtype)


@wrong("interleaved")
def each_number_by_one_table(x, cos, sin):
    return torch.stack((x[..., ::2] * cos, x[..., 1::2] * sin), dim=-1).flatten(-2).to(x.dtype)


@wrong("interleaved")
def turned_twice(x, cos, sin):
    return rotate_interleaved(rotate_interleaved(x, cos, sin), cos, sin)


@wrong("half-split")
def words_from_the_end(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    cos, sin = cos.flip(0), sin.flip(0)
    return torch.cat((a * cos - b * sin, a * sin + b * cos), dim=-1).to(x.dtype)


@wrong("half-split")
def the_second_half_forgotten(x, cos, sin):
    a, b = x.chunk(2, dim=-1)
    return torch.cat((a * cos - b * sin, b), dim=-1).to(x.dtype)


# -- Task 3 ------------------------------------------------------------------------------------------------------------


@wrong("to half-split", "The other way round")
def two_rows_for_each_column(weight, head_dim):
    heads = weight.reshape(-1, 2, head_dim // 2, weight.shape[1])
    return heads.permute(0, 2, 1, 3).reshape(weight.shape)


@wrong("to half-split", "from head to head")
def every_second_row_of_all(weight, head_dim):
    return torch.cat((weight[0::2], weight[1::2]))


@wrong("to half-split", "First and second number")
def odd_rows_on_top(weight, head_dim):
    heads = weight.split(head_dim)
    return torch.cat([torch.cat((head[1::2], head[0::2])) for head in heads])


@wrong("to half-split")
def heads_from_the_end(weight, head_dim):
    heads = weight.unflatten(0, (-1, head_dim // 2, 2)).transpose(1, 2)
    return heads.flip(0).flatten(0, 2)


@wrong("to interleaved")
def neighbours_exchanged(weight, head_dim):
    return weight.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)


@wrong("to interleaved")
def the_second_half_backwards(weight, head_dim):
    heads = weight.unflatten(0, (-1, head_dim))
    first, second = heads[:, : head_dim // 2], heads[:, head_dim // 2 :].flip(1)
    return torch.stack((first, second), dim=2).flatten(0, 2)


# -- Task 4 ------------------------------------------------------------------------------------------------------------


def joined(cache, k):
    return k if cache is None else torch.cat((cache, k), dim=1)


def at(positions, x):
    return rotate_interleaved(x, *tables(positions, x.shape[-1]))


@wrong("cache", "New words begin at the number of heads")
def length_by_len(q, k, cache):
    start = 0 if cache is None else len(cache)
    positions = torch.arange(start, start + q.shape[1])
    keys = joined(cache, at(positions, k))
    return at(positions, q) @ keys.transpose(1, 2), keys


@wrong("cache", "are turned again in each call")
def joined_before_turning(q, k, cache):
    keys = joined(cache, k)
    positions = torch.arange(keys.shape[1])
    keys = at(positions, keys)
    return at(positions[-q.shape[1] :], q) @ keys.transpose(1, 2), keys


@wrong("cache", "The scores are divided by the root")
def scaled_as_in_a_model(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    positions = past + torch.arange(q.shape[1])
    keys = joined(cache, at(positions, k))
    return torch.einsum("hid,hjd->hij", at(positions, q), keys) / math.sqrt(q.shape[-1]), keys


@wrong("cache", "The keys are not turned")
def queries_alone(q, k, cache):
    keys = joined(cache, k)
    positions = torch.arange(keys.shape[1])[-q.shape[1] :]
    return at(positions, q) @ keys.mT, keys


@wrong("cache")
def a_softmax_at_the_end(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    positions = past + torch.arange(q.shape[1])
    keys = joined(cache, at(positions, k))
    return (at(positions, q) @ keys.mT).softmax(dim=-1), keys


@wrong("cache")
def length_of_what_will_be(q, k, cache):
    past = joined(cache, k).shape[1]
    positions = past + torch.arange(q.shape[1])
    keys = joined(cache, at(positions, k))
    return at(positions, q) @ keys.mT, keys


@wrong("cache")
def all_queries_stand_last(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    positions = past + torch.arange(q.shape[1])
    keys = joined(cache, at(positions, k))
    return at(positions[-1:].expand(q.shape[1]), q) @ keys.mT, keys


@wrong("cache")
def masked_by_zeros(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    positions = past + torch.arange(q.shape[1])
    keys = joined(cache, at(positions, k))
    return (at(positions, q) @ keys.mT).tril(past), keys


@wrong("cache")
def counted_down(q, k, cache):
    past = 0 if cache is None else cache.shape[1]
    positions = past + torch.arange(q.shape[1] - 1, -1, -1)
    keys = joined(cache, at(positions, k))
    return at(positions, q) @ keys.mT, keys
