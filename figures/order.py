"""What attention sees of the order of words."""

from itertools import permutations, product

import torch
from matplotlib.figure import Figure
from torch import Tensor

from figures.interactive import Piece, label
from figures.style import BLUE, DARK, GREEN, MAP, VERMILLION, WIDTH, styled
from rope_lib import RotaryEmbedding, sinusoidal_encoding
from rope_lib.attention import attention


@styled
def draw_shuffled_attention() -> Figure:
    """Weights of three words, and of the same words in reversed order."""
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 3, 4, generator=generator)
    words = ["I", "love", "you"]
    figure = Figure(figsize=(WIDTH, 2.6))
    for ax, order in zip(figure.subplots(1, 2), ([0, 1, 2], [2, 1, 0]), strict=True):
        weights = (q[order] @ k[order].T / 2).softmax(-1)
        ax.imshow(weights.numpy(), cmap=MAP, vmin=0, vmax=1)
        for m in range(3):
            for n in range(3):
                value = weights[m, n].item()
                ax.text(n, m, f"{value:.2f}", ha="center", va="center", color="white" if value < 0.6 else DARK)
        ax.set_xticks(range(3), [words[j] for j in order])
        ax.set_yticks(range(3), [words[j] for j in order])
        ax.set(xlabel="key", ylabel="query")
        ax.spines[:].set_visible(False)
    return figure


def last_outputs(layers: int) -> Tensor:
    """First number of the last position's output for all 24 orders of the four words before it, causal layers."""
    words = torch.randn(5, 4, generator=torch.Generator().manual_seed(3), dtype=torch.float64)
    x = torch.stack([words[[*order, 4]] for order in permutations(range(4))])
    for _ in range(layers):
        x = attention(x[:, None], x[:, None], x[:, None], causal=True)[:, 0]
    return x[:, -1, 0]


@styled
def draw_prefix_orders() -> Figure:
    """The outputs of `last_outputs` for one layer and for two."""
    figure = Figure(figsize=(WIDTH, 2.4))
    ax = figure.subplots()
    for layers, marker, colour in ((1, "o", BLUE), (2, "s", VERMILLION)):
        values = last_outputs(layers)
        ax.plot(range(1, 25), values, marker, color=colour, fillstyle="none")
        text = f"{layers} layer" + "s" * (layers > 1)
        ax.annotate(text, (24, values[-1]), (8, 0), textcoords="offset points", color=colour, va="center")
    ax.set(xlabel="order of the four words before the last one (number)", ylabel="output (first component)")
    ax.margins(x=0.03)
    return figure


@styled
def draw_three_scores() -> Figure:
    """Scores of a text that repeats one word: no positions, sinusoidal codes added, queries and keys rotated."""
    generator = torch.Generator().manual_seed(2)
    x, W_q, W_k = torch.randn(16, generator=generator), *torch.randn(2, 16, 16, generator=generator) / 4
    positions = torch.arange(24)
    plain = x.expand(24, 16)
    added = plain + sinusoidal_encoding(positions, 16, base=100)
    rope = RotaryEmbedding(16, interleaved=True, base=100)
    rotated = rope(plain @ W_q.T, plain @ W_k.T, positions=positions)
    pairs = {
        "no positions": (plain @ W_q.T, plain @ W_k.T),
        "sines added": (added @ W_q.T, added @ W_k.T),
        "rotated": rotated,
    }
    figure = Figure(figsize=(WIDTH, 2.5))
    for ax, (name, (q, k)) in zip(figure.subplots(1, 3, sharey=True), pairs.items(), strict=True):
        ax.imshow((q @ k.T).numpy(), cmap=MAP)
        ax.set(xlabel="key position")
        ax.text(0, 1.04, name, transform=ax.transAxes)
        ax.label_outer()
    figure.axes[0].set_ylabel("query position")
    return figure


def explore_order() -> Piece:
    """Three words to be dragged into any order, and their outputs without positions, without a mask and with one."""
    words, orders = ["I", "love", "you"], list(permutations(range(3)))
    vectors = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    states = {}
    for (place, order), masked in product(enumerate(orders), (0, 1)):
        x = vectors[list(order)][None]
        for _ in range(1 + masked):
            x = attention(x, x, x, causal=bool(masked))
        state = {}
        for m, word in enumerate(order):
            left = 40 + 200 * m
            bars = [(left + 40 * c, value) for c, value in enumerate(x[0, m].tolist())]
            state[f"word{m}"] = {"text": words[word]}
            state[f"bars{m}"] = {"d": "".join(f"M{a} 150V{150 - 50 * v:.1f}" for a, v in bars)}
            state[f"bars{m}"]["stroke"] = (BLUE, VERMILLION, GREEN)[word]
        states[place, masked] = state
    svg = "".join(
        f'<g data-place=""><rect x="{40 + 200 * m}" y="6" width="120" height="34" rx="6" '
        + 'fill="currentColor" fill-opacity=".15"></rect>'
        + label(100 + 200 * m, 28, part=f"word{m}", anchor="middle")
        + "</g>"
        + f'<path stroke-width="24" data-part="bars{m}"></path>'
        + f'<path d="M{20 + 200 * m} 150h160" stroke="currentColor"></path>'
        + label(100 + 200 * m, 290, f"position {m}", anchor="middle")
        for m in range(3)
    )
    steps = tuple(" ".join(words[i] for i in order) for order in orders)
    alt = "The words I love you, which can be dragged; below each the four numbers of its output as bars."
    kinds = ("no mask", "causal, 2 layers")
    return Piece("order", alt, svg, (("order of the words", steps, 0), ("attention", kinds, 0)), states)
