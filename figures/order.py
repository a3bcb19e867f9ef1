"""What attention sees of the order of words."""

from itertools import permutations, product

import torch
from matplotlib.figure import Figure
from torch import Tensor

from figures.interactive import KEY_INK, QUERY_INK, SCORE_INK, Piece, View, label
from figures.style import BLUE, MAP, VERMILLION, frame, name_if_flat, on_map, on_phone, panels, sheet, signed, styled
from rope_lib import RotaryEmbedding, attention
from rope_lib.theory.sinusoidal import sinusoidal_encoding


@styled
def draw_shuffled_attention() -> Figure:
    """Weights of three words, and of the same words in reversed order."""
    generator = torch.Generator().manual_seed(1)
    q, k = torch.randn(2, 3, 4, generator=generator)
    words = ["I", "love", "you"]
    figure = sheet(2.6, 4.8)
    for ax, order in zip(panels(figure, 2), ([0, 1, 2], [2, 1, 0]), strict=True):
        weights = (q[order] @ k[order].T / 2).softmax(-1)
        ax.imshow(weights.numpy(), cmap=MAP, vmin=0, vmax=1)
        for m in range(3):
            for n in range(3):
                value = weights[m, n].item()
                ax.text(n, m, f"{value:.2f}", ha="center", va="center", color=on_map(value))
        ax.set_xticks(range(3), [words[j] for j in order])
        ax.set_yticks(range(3), [words[j] for j in order])
        ax.set(xlabel="key", ylabel="query", title=" ".join(words[j] for j in order))
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
    figure = sheet(2.4)
    ax = figure.subplots()
    for layers, marker, colour in ((1, "o", BLUE), (2, "s", VERMILLION)):
        values = last_outputs(layers)
        ax.plot(range(1, 25), values, marker, color=colour, fillstyle="none")
        text = f"{layers} layer" + "s" * (layers > 1)
        ax.annotate(text, (24, values[-1]), (8, 0), textcoords="offset points", color=colour, va="center")
    names = "order of the four words before the last one (number)", "output (first component)"
    ax.set(xlabel=names[0].replace("before ", "before\n") if on_phone() else names[0], ylabel=names[1])
    ax.margins(x=0.03)
    return figure


@styled
def draw_three_scores() -> Figure:
    """Scores, less their mean, of a text that repeats one word: no positions, sines added, queries and keys rotated."""
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
    figure = sheet(2.5, 6.6)
    for ax, (name, (q, k)) in zip(panels(figure, 3, sharex=True, sharey=True), pairs.items(), strict=True):
        scores = (q @ k.T).numpy()
        ax.imshow(scores - scores.mean(), **signed(scores - scores.mean()))
        name_if_flat(ax, scores)
        ax.set(xlabel="key position", ylabel="query position", title=name)
        ax.label_outer()
        frame(ax)
    return figure


def explore_order() -> Piece:
    """Three words to be dragged into any order; their outputs travel with them, and change if attention has a mask."""
    words, orders = ["I", "love", "you"], list(permutations(range(3)))
    orders.insert(1, orders.pop(orders.index((1, 0, 2))))  # it begins where one layer and two differ under a mask
    kinds = {"no mask": (False, 1), "causal, 1 layer": (True, 1), "causal, 2 layers": (True, 2)}
    vectors = torch.randn(3, 4, generator=torch.Generator().manual_seed(1))
    states, at_first = {}, {}  # the latter for each kind of attention, with the words in their first order
    for (place, order), (kind, (causal, layers)) in product(enumerate(orders), enumerate(kinds.values())):
        x = vectors[list(order)][None]
        for _ in range(layers):
            x = attention(x, x, x, causal=causal)
        of_word = x[0][torch.tensor(order).argsort()]
        changed = int(((of_word - at_first.setdefault(kind, of_word)).abs() > 1e-6).sum())
        said = "they moved with their words" if not changed else "attention saw the order"
        state = {"changed": {"text": changed}, "order": {"text": " ".join(words[i] for i in order)}}
        state["so"] = {"text": said if place else "this is the order to compare with"}
        for word, (values, first) in enumerate(zip(of_word.tolist(), at_first[kind].tolist(), strict=True)):
            bars = "".join(f"M{23 + 20 * c} 0V{-50 * value:.1f}" for c, value in enumerate(values))
            outlines = "".join(f"M{15 + 20 * c} 0V{-50 * value:.1f}h16V0" for c, value in enumerate(first))
            state[f"word{word}"] = {"style": f"--x:{107 * order.index(word)}"}
            state[f"bars{word}"] = {"d": bars}
            state[f"first{word}"] = {"d": outlines}
        states[place, kind] = state
    svg = "".join(
        f'<g class="rp-move" data-part="word{word}"><g data-word="{text}">'
        f'<rect x="8" y="6" width="90" height="34" rx="6" fill="{colour}" fill-opacity=".2" stroke="{colour}"></rect>'
        + label(53, 28, f"⠿ {text}", anchor="middle")
        + f'</g><g transform="translate(0 130)"><path class="rp-bend" stroke-width="14" stroke="{colour}" '
        f'data-part="bars{word}"></path><path fill="none" stroke="currentColor" stroke-dasharray="2 2" '
        f'data-part="first{word}"></path></g></g>'
        for word, (text, colour) in enumerate(zip(words, (QUERY_INK, KEY_INK, SCORE_INK), strict=True))
    )
    svg += "".join(
        f'<path d="M{8 + 107 * m} 130h90" stroke="currentColor"></path>'
        + label(53 + 107 * m, 236, f"position {m}", anchor="middle")
        for m in range(3)
    )
    alt = (
        "Three words, which can be dragged to each other's places; below each the four numbers that attention makes of "
        "it as bars, and dashed around them what they were in the order “I love you”."
    )
    said = (
        '“<span data-part="order"></span>”: <b data-part="changed"></b> of the 12 numbers that attention puts out '
        'changed since “I love you” (dashed); <span data-part="so"></span>.'
    )
    steps = tuple(" ".join(words[i] for i in order) for order in orders)
    sliders = (("order", steps, 1), ("attention", tuple(kinds), 0))
    return Piece("order", said, (View(alt, svg, (320, 244)),), sliders, states, buttons=(1,), play=0, pace=1200)
