"""How long the rotation and linear attention take, from the stored results of the benchmark, and what was counted."""

from itertools import product

from matplotlib.figure import Figure

from figures.style import BLUE, GREEN, OTHER, VERMILLION, on_phone, panels, sheet, styled
from lab import results, traffic


@styled
def draw_rotation_speed() -> Figure:
    """Ratio to clone of every library, eager, forward, at the first shape; one panel per layout."""
    rows = results.rows_of(results.stored(), shape=results.FIRST_SHAPE, direction="forward", mode="eager")
    figure = sheet(3.6, 6.6)
    for ax, interleaved in zip(panels(figure, 2, sharex=True), (True, False), strict=True):
        ratios = {row["dtype"]: row["ratios"] for row in rows if row["interleaved"] is interleaved}
        names = sorted(ratios["float32"], key=ratios["float32"].get, reverse=True)
        names = [name for name in names if name not in results.NO_ROTATION]
        for dtype, marker, colour in (("float32", "o", BLUE), ("bfloat16", "s", VERMILLION)):
            values = [ratios[dtype].get(name) for name in names]
            ax.plot(values, range(len(names)), marker, color=colour, label=dtype, fillstyle="none")
        ax.axvline(1, color="0.5", linestyle="--", linewidth=1)
        ax.set_yticks(range(len(names)), names, fontsize=8)
        ax.get_yticklabels()[names.index("rope_lib")].set_weight("bold")
        ax.set(xscale="log", xlabel="time (clones)", xlim=(0.7, 60), ylim=(-0.6, len(names) - 0.4))
        ticks = [1, 2, 5, 10, 20]
        ax.set_xticks(ticks, [f"{tick:g}" for tick in ticks])
        ax.set_xticks([], minor=True)
        ax.text(
            0.97, 0.97, "interleaved" if interleaved else "half-split", transform=ax.transAxes, ha="right", va="top"
        )
    figure.legend(*ax.get_legend_handles_labels(), loc="outside upper center", ncols=2, fontsize=8)
    return figure


@styled
def draw_traffic() -> Figure:
    """What each form asks of memory, counted: a bar for each format and layout, with its copies and its kernels."""
    styles = {"formula": OTHER, "rotate_half": VERMILLION, "rope_lib": BLUE}
    counted = {(row["form"], row["dtype"], row["interleaved"]): row for row in traffic.rotation_traffic()}
    settings = list(product(("bfloat16", "float32"), (True, False)))
    figure = sheet(3.4)
    ax = figure.subplots()
    for group, setting in enumerate(settings):
        forms = [form for form in styles if (form, *setting) in counted]  # rotate_half knows one layout
        for lane, form in enumerate(forms):
            bar, height = counted[form, *setting], group + 0.27 * ((len(forms) - 1) / 2 - lane)
            label = form if setting == settings[-1] else None
            ax.barh(height, bar["copies"], 0.25, color=styles[form], label=label)
            says = f"{bar['copies']:.1f}; {bar['kernels']} kernels"
            ax.annotate(says, (bar["copies"], height), (3, 0), textcoords="offset points", va="center", fontsize=8)
    ax.axvline(1, color="0.5", linestyle="--", linewidth=1)
    names = [f"{dtype},\n{'interleaved' if interleaved else 'half-split'}" for dtype, interleaved in settings]
    ax.set_yticks(range(len(names)), names)
    ax.set(xlabel="memory traffic (copies of x)", xlim=(0, 14 if on_phone() else 11.5), xticks=range(0, 11, 2))
    figure.legend(loc="outside upper center", ncols=3)  # in the order of the bars, from above
    return figure


@styled
def draw_linear_attention_speed() -> Figure:
    """Milliseconds against the length, forward, both axes logarithmic; thin, its square and the length itself."""
    rows = results.stored()["linear_attention"]
    lengths = [row["n"] for row in rows]
    figure = sheet(2.8)
    ax = figure.subplots()
    styles = {
        "softmax": ("softmax attention", BLUE, "o-"),
        "naive chunks": ("chunks, written simply", OTHER, "^:"),
        "rotated": ("the library's form", GREEN, "s--"),
    }
    for form, power in (("softmax", 2), ("rotated", 1)):  # a power of the length, through the last point
        last = rows[-1]["forward"][form]
        ax.plot(lengths, [last * (n / lengths[-1]) ** power for n in lengths], color="0.5", linewidth=0.6)
    for form, (label, colour, style) in styles.items():
        times = [row["forward"][form] for row in rows]
        ax.plot(lengths, times, style, color=colour, fillstyle="none")
        if on_phone():
            ax.lines[-1].set_label(label)
        else:
            ax.annotate(label, (lengths[-1], times[-1]), (6, 0), textcoords="offset points", color=colour, va="center")
    ax.set(xscale="log", yscale="log", xlabel="length of the text (tokens)", ylabel="time (ms)")
    shown = lengths[::2] if on_phone() else [n for n in lengths if n != 4096]  # its label would touch that of 2048
    ax.set_xticks(shown, [str(n) for n in shown])
    ax.set_xticks([], minor=True)
    ax.margins(x=0.03)
    if on_phone():
        ax.legend(loc="lower left", bbox_to_anchor=(0, 1))
    return figure
