"""Linear attention: its weights with and without the rotation, and what its state can recall."""

import torch
from matplotlib.figure import Figure
from torch import Tensor
from torch.nn.functional import normalize

from figures.interactive import KEY_INK, QUERY_INK, Piece, View, grip, label, minus
from figures.style import BLUE, GREEN, SIGNED, VERMILLION, frame, on_phone, panels, sheet, signed, styled
from rope_lib import apply_rotary_emb, attention, cos_sin, inverse_frequencies
from rope_lib.linear import Rotation, elu_plus_one, linear_attention
from rope_lib.theory.decay import cosine_sum

FORMS = {"none": "no rotation", "both": "both rotated", "numerator": "numerator rotated"}


def linear_weights(length: int = 48, dim: int = 4, seed: int = 0) -> dict[str, Tensor]:
    """The (length, length) weights of causal linear attention for one random text, in the three forms."""
    q, k = torch.randn(2, length, dim, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
    tables = cos_sin(torch.arange(length), inverse_frequencies(dim), dtype=torch.float64)
    features = elu_plus_one(q), elu_plus_one(k)
    turned = [apply_rotary_emb(x, *tables, interleaved=True) for x in features]
    plain, rotated = ((q @ k.mT).tril() for q, k in (features, turned))
    below, signed = plain.sum(-1, keepdim=True), rotated.sum(-1, keepdim=True)
    return {"none": plain / below, "both": rotated / signed, "numerator": rotated / below}


@styled
def draw_linear_weights(*, row: int = 40) -> Figure:
    """The weights of `linear_weights`, times the number of words seen so that rows can be compared; one row as bars."""
    figure = sheet(4.0, 6.6)
    grid = figure.subplots(3, 2).T if on_phone() else figure.subplots(2, 3, height_ratios=(2, 1))
    for (ax, bars), (form, weights) in zip(grid.T, linear_weights().items(), strict=True):
        scaled = weights * torch.arange(1, len(weights) + 1)[:, None]
        shown = scaled.masked_fill(torch.ones_like(scaled).triu(1).bool(), float("nan"))
        ax.imshow(shown.numpy(), cmap=SIGNED, vmin=-2, vmax=2)
        ax.plot([-0.5, len(weights) - 0.5], [-0.5, len(weights) - 0.5], color="0.5", linewidth=0.6)
        ax.axhline(row, color="black", linewidth=0.8, linestyle=":")
        ax.set(
            xticks=[0, 20, 40], yticks=[0, 20, row], xlabel="key position", ylabel="query position", title=FORMS[form]
        )
        values = scaled[row, : row + 1].tolist()
        bars.bar(range(row + 1), values, color=[BLUE if value >= 0 else VERMILLION for value in values], width=0.8)
        bars.axhline(0, color="0.5", linewidth=0.6)
        bars.set(xlabel="key position", ylabel=f"row {row}", xlim=(-0.5, len(weights) - 0.5), ylim=(-1.5, 4))
        negative = sum(value < 0 for value in values)
        bars.text(0.03, 0.97, f"{negative} of {row + 1} negative", transform=bars.transAxes, va="top")
        frame(ax)
    return figure


def row_sums(length: int, dim: int = 64) -> Tensor:
    """Sums of the weights of numerator-only attention at each position, random features, mean of 8 heads."""
    q, k = torch.randn(2, 8, length, dim, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    cos, sin = cos_sin(torch.arange(length), inverse_frequencies(dim), dtype=torch.float64)
    ones = torch.ones(8, length, 1, dtype=torch.float64)
    rotation = Rotation(cos, sin, interleaved=True, denominator=False)
    return linear_attention(q, k, ones, causal=True, rotation=rotation).mean(0)[:, 0]


def equal_row_sums(length: int, dim: int = 64) -> Tensor:
    """The same for equal features: means of C_d / N over the distances so far."""
    distances = torch.arange(length)
    return cosine_sum(distances, dim=dim).cumsum(0) / (dim // 2) / (distances + 1)


@styled
def draw_row_sums(*, length: int = 4096) -> Figure:
    """`row_sums` and `equal_row_sums` on a logarithmic axis of positions."""
    figure = sheet(2.8)
    ax = figure.subplots()
    places = range(1, length + 1)
    ax.semilogx(places, row_sums(length), color=BLUE, linewidth=1, label="random features, mean of 8 heads")
    ax.semilogx(places, equal_row_sums(length), "--", color=VERMILLION, label="equal features")
    ax.axhline(1, color="0.5", linewidth=0.5)
    ax.set(xlabel="words seen", ylabel="sum of the weights", xlim=(1, length), ylim=(0, 1.05))
    ax.legend(loc="lower left", **({"bbox_to_anchor": (0, 1)} if on_phone() else {}))
    return figure


@styled
def draw_state(*, dim: int = 16, pairs: int = 4, read: int = 1) -> Figure:
    """What one pair of key and value writes into a state, the state of all pairs, and what one of the keys reads."""
    k, v = torch.randn(2, pairs, dim, generator=torch.Generator().manual_seed(4), dtype=torch.float64)
    k = normalize(k, dim=-1)
    written, state = torch.outer(k[read], v[read]), k.mT @ v
    figure = sheet(2.5, 6.6)
    one, all_pairs, answer = panels(figure, 3)
    names = f"pair {read + 1} writes:\nkey times value", f"the state:\nall {pairs} pairs, added"
    for ax, values, name in zip((one, all_pairs), (written, state), names, strict=True):
        ax.imshow(values.numpy(), **signed(state.numpy()))
        ax.set(title=name, xlabel="entry of the value", ylabel="entry of the key", xticks=[], yticks=[])
        frame(ax)
    places = range(dim)
    answer.bar(places, v[read].tolist(), color="none", edgecolor="0.3", linestyle="--", label="stored")
    answer.bar(places, (k[read] @ state).tolist(), color=GREEN, width=0.45, label="read")
    answer.axhline(0, color="0.5", linewidth=0.6)
    answer.set(xlabel="entry of the value", xticks=[])
    answer.set_title(f"key {read + 1} reads:", pad=16)
    answer.legend(loc="lower left", fontsize=8, ncols=2, bbox_to_anchor=(0, 0.97), borderpad=0)
    return figure


def recall(counts: tuple[int, ...], *, dim: int = 64, questions: int = 2048) -> dict[str, list[float]]:
    """Share of stored pairs whose value comes back, for each number of pairs, by three ways to read.

    Keys point in random directions and have length sqrt(dim); each is asked once. The answer is the value, a random
    unit vector, with the largest product with the output.
    """
    generator = torch.Generator().manual_seed(0)
    shares: dict[str, list[float]] = {"softmax": [], "identity": [], "elu + 1": []}
    for count in counts:
        k, v = torch.randn(2, max(1, questions // count), count, dim, generator=generator)
        k, v = dim**0.5 * normalize(k, dim=-1), normalize(v, dim=-1)
        outputs = {
            "softmax": attention(k, k, v, causal=False),
            "identity": k @ (k.mT @ v),
            "elu + 1": linear_attention(k, k, v, causal=False),
        }
        for name, output in outputs.items():
            right = (output @ v.mT).argmax(-1) == torch.arange(count)
            shares[name].append(right.double().mean().item())
    return shares


@styled
def draw_recall(*, counts: tuple[int, ...] = (2, 4, 8, 16, 32, 64, 128, 256, 512, 1024), dim: int = 64) -> Figure:
    """`recall` on a logarithmic axis of pairs."""
    figure = sheet(2.8)
    ax = figure.subplots()
    looks = {"softmax": (GREEN, "-.", "s"), "identity": (BLUE, "-", "o"), "elu + 1": (VERMILLION, "--", "^")}
    for name, share in recall(counts, dim=dim).items():
        colour, dash, mark = looks[name]
        ax.semilogx(counts, share, dash, color=colour, marker=mark, markersize=4, linewidth=1, base=2, label=name)
    ax.axvline(dim, color="0.5", linestyle=":", linewidth=1)
    ax.annotate("$d$ pairs", (dim, 0.5), (4, 0), textcoords="offset points", va="center", color="0.35")
    ax.set(xlabel="pairs stored", ylabel="share recalled", ylim=(-0.03, 1.05))
    shown = counts[:: 2 if on_phone() else 1]
    ax.set_xticks(shown, [str(count) for count in shown])
    ax.minorticks_off()
    ax.legend(loc="lower left", **({"bbox_to_anchor": (0, 1)} if on_phone() else {}))
    return figure


ENDS = -2.5, 3  # of bars: longer ones would lie on the words above and below


def explore_linear() -> Piece:
    """One row of the weights of linear attention in all three forms; negative weights in another colour."""
    length = 32
    tables, states = linear_weights(length), {}
    for m in range(length):
        state = {"m": {"text": m}, "seen": {"text": m + 1}}
        for form, weights in tables.items():
            row = (weights[m, : m + 1] * (m + 1)).clamp(*ENDS).tolist()
            for sign, negative in (("up", False), ("down", True)):
                bars = [f"M{14 + 9.4 * n:.1f} 0V{-14 * v:.1f}" for n, v in enumerate(row) if (v < 0) is negative]
                state[f"{form}-{sign}"] = {"d": "".join(bars) or "M0 0"}
            state[f"{form}-sum"] = {"text": minus(f"{weights[m].sum():.2f}")}
            state[f"{form}-negative"] = {"text": sum(value < 0 for value in row)}
            state[f"{form}-grip"] = {"d": f"M{14 + 9.4 * m:.1f} 0h0"}
        state |= {"both-says": state["both-negative"], "numerator-says": state["numerator-sum"]}
        states[m,] = state
    svg = "".join(
        f'<g transform="translate(0 {106 * row})">'
        f'<text x="8" y="14">{name}: sum <tspan data-part="{form}-sum"></tspan>, negative: '
        f'<tspan data-part="{form}-negative"></tspan></text>'
        '<g transform="translate(0 72)"><path d="M6 -14H314" stroke="currentColor" stroke-dasharray="2 4" '
        'opacity=".6"></path>'
        f'<path stroke="{QUERY_INK}" stroke-width="7" data-part="{form}-up"></path>'
        f'<path stroke="{KEY_INK}" stroke-width="7" data-part="{form}-down"></path>'
        f'<path d="M6 0H314" stroke="currentColor"></path>{grip(0, part=f"{form}-grip")}</g></g>'
        for row, (form, name) in enumerate(FORMS.items())
    )
    svg += label(312, 322, "dotted: an equal share, 1/n; longer bars are cut", anchor="end")
    alt = (
        "The weights that one word gives to itself and to the words before it, as bars, in three forms; dotted: an "
        "equal share."
    )
    said = (
        'Position <b data-part="m"></b>, <span data-part="seen"></span> words so far. With both rotated the weights '
        'still add up to 1, but <b data-part="both-says"></b> are negative. With the numerator rotated they add up to '
        '<b data-part="numerator-says"></b>: no longer a mean.'
    )
    sliders = (("position", tuple(map(str, range(length))), 22),)
    return Piece("linear", said, (View(alt, svg, (320, 328)),), sliders, states, play=0, pace=500)
