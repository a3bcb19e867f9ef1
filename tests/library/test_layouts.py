import pytest
import torch

from rope_lib import (
    RotaryEmbedding,
    apply_rotary_pos_emb,
    cos_sin,
    half_split_to_interleaved,
    interleaved_to_half_split,
    inverse_frequencies,
)

conversions = pytest.mark.parametrize("convert", [interleaved_to_half_split, half_split_to_interleaved])


def test_both_conversions_by_hand():
    """Two heads of eight side by side: all of each, or the first four."""
    x = torch.arange(16)
    half = interleaved_to_half_split(x, head_dim=8, dim=0)
    assert half.tolist() == [0, 2, 4, 6, 1, 3, 5, 7, 8, 10, 12, 14, 9, 11, 13, 15]
    part = interleaved_to_half_split(x, head_dim=8, dim=0, rotary_dim=4)
    assert part.tolist() == [0, 2, 1, 3, 4, 5, 6, 7, 8, 10, 9, 11, 12, 13, 14, 15]
    neighbours = half_split_to_interleaved(x, head_dim=8, dim=0)
    assert neighbours.tolist() == [0, 4, 1, 5, 2, 6, 3, 7, 8, 12, 9, 13, 10, 14, 11, 15]
    part = half_split_to_interleaved(x, head_dim=8, dim=0, rotary_dim=6)
    assert part.tolist() == [0, 3, 1, 4, 2, 5, 6, 7, 8, 11, 9, 12, 10, 13, 14, 15]


@pytest.mark.parametrize("rotary_dim", [2, 4, 6, None])
@pytest.mark.parametrize("dim", [0, 1, -1, -3])
def test_one_is_the_inverse_of_the_other_along_any_axis(rotary_dim, dim):
    x = torch.arange(18 * 18 * 18).view(18, 18, 18)
    settings = {"head_dim": 6, "dim": dim, "rotary_dim": rotary_dim}
    there = interleaved_to_half_split(x, **settings)
    assert torch.equal(half_split_to_interleaved(there, **settings), x)
    assert torch.equal(interleaved_to_half_split(half_split_to_interleaved(x, **settings), **settings), x)
    lines = x.movedim(dim, -1)  # each line along the axis is reordered by itself, as a vector is
    first, last = (interleaved_to_half_split(line, **{**settings, "dim": 0}) for line in (lines[0, 0], lines[-1, -1]))
    assert torch.equal(there.movedim(dim, -1)[0, 0], first)
    assert torch.equal(there.movedim(dim, -1)[-1, -1], last)


@pytest.mark.parametrize("rotary_dim", [4, 8])
def test_converted_weights_give_the_same_scores(rotary_dim, generator):
    """Six query heads and two key heads from a model of width five, with biases: other rows, the same scores."""
    words = torch.randn(7, 5, generator=generator, dtype=torch.float64)
    weights = [torch.randn(heads * 8, 5, generator=generator, dtype=torch.float64) for heads in (6, 2)]
    biases = [torch.randn(heads * 8, generator=generator, dtype=torch.float64) for heads in (6, 2)]
    settings = {"head_dim": 8, "dim": 0, "rotary_dim": rotary_dim}

    def scores(interleaved, weights, biases):
        q, k = ((words @ w.T + b).unflatten(-1, (-1, 8)).transpose(0, 1) for w, b in zip(weights, biases, strict=True))
        q, k = RotaryEmbedding(rotary_dim, interleaved=interleaved)(q, k, positions=torch.arange(7) * 13)
        return q @ k.repeat_interleave(3, 0).mT

    for convert, trained in ((interleaved_to_half_split, True), (half_split_to_interleaved, False)):
        converted = ([convert(tensor, **settings) for tensor in tensors] for tensors in (weights, biases))
        torch.testing.assert_close(scores(not trained, *converted), scores(trained, weights, biases))
        assert not torch.allclose(scores(not trained, weights, biases), scores(trained, weights, biases))


@conversions
def test_the_result_is_a_new_tensor_where_the_weight_is(convert, device):
    weight = torch.arange(1, 25, dtype=torch.bfloat16, device=device).view(8, 3)
    expected = convert(weight, head_dim=4, dim=0)
    with torch.device("meta"):  # while a model is built without memory, say
        converted = convert(weight, head_dim=4, dim=0)
    assert torch.equal(converted, expected)
    assert converted.device == weight.device
    assert converted.dtype == weight.dtype
    converted.zero_()
    assert weight.all()


@conversions
def test_no_heads_are_reordered_to_no_heads(convert):
    assert convert(torch.zeros(0, 3), head_dim=8, dim=0).shape == (0, 3)


@conversions
@pytest.mark.parametrize(
    ("changed", "error", "text"),
    [
        ({"head_dim": 10}, ValueError, "x has size 16 along axis 0; it must be a multiple of head_dim, 10"),
        ({"head_dim": 3}, ValueError, "head_dim is 3; it must be positive and even"),
        ({"head_dim": 0}, ValueError, "head_dim is 0"),
        ({"head_dim": 8.0}, TypeError, "head_dim is 8.0; it must be an int"),
        ({"rotary_dim": 3}, ValueError, "rotary_dim is 3; it must be positive and even"),
        ({"rotary_dim": 0}, ValueError, "rotary_dim is 0"),
        ({"rotary_dim": 10}, ValueError, "rotary_dim is 10; it must be at most head_dim, 8"),
        ({"rotary_dim": "all"}, TypeError, "rotary_dim is 'all'; it must be an int"),
        ({"dim": 2}, ValueError, r"dim is 2, but x has shape \(16, 3\); it must be one of its axes"),
        ({"dim": -3}, ValueError, "dim is -3"),
        ({"dim": 1}, ValueError, "x has size 3 along axis 1"),
        ({"x": [1, 2]}, TypeError, "x is a list; it must be a tensor, e.g. a weight of shape"),
        ({"x": torch.zeros(16, 3).numpy()}, TypeError, "x is a ndarray"),
        ({"x": torch.zeros(16, 3).to_sparse()}, TypeError, "x is torch.sparse_coo; it must be a dense tensor"),
    ],
)
def test_errors_of_the_conversions(convert, changed, error, text):
    with pytest.raises(error, match=text):
        convert(**{"x": torch.zeros(16, 3), "head_dim": 8, "dim": 0, **changed})


@conversions
def test_the_axis_has_no_default(convert):
    with pytest.raises(TypeError, match="missing 1 required keyword-only argument: 'dim'"):
        convert(torch.zeros(8, 8), head_dim=8)


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_what_comes_back_lies_in_order(dim):
    """So that .view and a write to a file take it as it is."""
    for convert in (interleaved_to_half_split, half_split_to_interleaved):
        assert convert(torch.ones(8, 4), head_dim=4, dim=dim).is_contiguous()


def test_of_a_head_that_rotates_at_its_end_those_rows_alone_are_reordered(generator):
    """As the reference says of MLA: heads of 4 dimensions that stay and 8 that rotate, and one key for all of them."""
    heads, key, words = (torch.randn(*shape, 10, generator=generator).double() for shape in ((3, 12), (8,), (5,)))
    tables = cos_sin(torch.arange(5), inverse_frequencies(8), dtype=torch.float64)

    def scores(heads, key, interleaved):
        q, k = words @ heads[:, 4:].mT, words @ key.mT
        q, k = apply_rotary_pos_emb(q, k, *tables, interleaved=interleaved)
        return q @ k.mT

    moved = heads.clone()
    moved[:, 4:] = interleaved_to_half_split(heads[:, 4:], head_dim=8, dim=1)
    expected = scores(heads, key, True)
    torch.testing.assert_close(scores(moved, interleaved_to_half_split(key, head_dim=8, dim=0), False), expected)
    whole = interleaved_to_half_split(heads, head_dim=12, dim=1)
    assert not torch.allclose(scores(whole, interleaved_to_half_split(key, head_dim=8, dim=0), False), expected)
