"""Pieces to play with: drawings, sliders, buttons, and one small script that all of them share, the first screen's too.

All numbers are computed here, by the library; the script only looks them up. A piece shows its first state before any
script runs, and needs nothing from outside. The book's pages bring the script themselves (_ext/pieces.py). In a
notebook it comes with the cell's output, and is not stored there: until the cell is run, a sentence says what the piece
shows.
"""

import html
import json
from collections.abc import Iterable
from dataclasses import dataclass
from importlib.resources import files
from itertools import pairwise, product

from figures.palette import DARK, LIGHT, MEANINGS

QUERY_INK, KEY_INK, SCORE_INK, OTHER_INK = (f"var(--rb-{letter})" for letter in MEANINGS)

SHARED = """.rope-piece[hidden]{display:none!important}
.rp-heard{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.rp-grip{stroke:transparent;stroke-width:44;stroke-linecap:round;vector-effect:non-scaling-stroke;pointer-events:stroke;
cursor:grab;touch-action:none}
.rp-grip:hover,.rp-held .rp-grip:active{stroke:color-mix(in srgb,currentColor 14%,transparent)}
.rp-held,.rp-held .rp-grip{cursor:grabbing;user-select:none}.rp-held *{transition:none!important}
@media (forced-colors:active){:is(.rp-controls,.rh-controls)>button,.rp-controls label:has(:checked){
forced-color-adjust:none}}
"""  # with the first screen's piece
STYLE = f"""
.rp{{{LIGHT}}}html[data-theme=dark] .rp{{{DARK}}}
@media (prefers-color-scheme:dark){{html:not([data-theme]) .rp{{{DARK}}}}}
.rp{{--rp-wrong:#b3001b}}html[data-theme=dark] .rp{{--rp-wrong:#ff8a93}}
@media (prefers-color-scheme:dark){{html:not([data-theme]) .rp{{--rp-wrong:#ff8a93}}}}
.rp{{max-width:43rem;line-height:1.4}}
.rp-views{{display:flex;flex-wrap:wrap;gap:.5rem 1rem;justify-content:center}}
.rp-views svg{{flex:1 1 18.5rem;min-width:0;max-width:26rem;height:auto;overflow:visible}}
.rp text{{fill:currentColor;font:13px var(--pst-font-family-base,sans-serif);stroke:none}}
.rp text.rp-name{{font:italic 700 17px Georgia,serif;text-anchor:middle;dominant-baseline:central}}
.rp text.rp-halo{{font-weight:700;paint-order:stroke;stroke:var(--rh-paper,Canvas);stroke-width:4px}}
.rp .rp-said{{margin:.4rem 0;min-height:2.8em;font-variant-numeric:tabular-nums}}
{SHARED}
.rp-controls{{display:grid;grid-template-columns:auto minmax(0,1fr);align-items:center;gap:.3rem .8rem}}
.rp-controls>*{{grid-column:1/-1}}.rp-controls>button~*{{grid-column:2}}
.rp-controls>button{{grid-column:1;min-width:5.6em;min-height:2.2em;border:0;border-radius:.5rem;
background:var(--rb-q);color:var(--rh-paper,Canvas);font:inherit;font-weight:600;cursor:pointer}}
.rp-controls label{{display:grid;grid-template-columns:8em minmax(0,1fr) 5em;align-items:center;gap:.6rem;margin:0}}
.rp-controls input[type=range]{{min-width:0;height:28px;margin:0;accent-color:var(--rb-q)}}
.rp-now{{font-variant-numeric:tabular-nums}}
.rp-controls fieldset{{display:flex;flex-wrap:wrap;align-items:flex-start;gap:.3rem .4rem;border:0;margin:0;padding:0}}
.rp-controls fieldset>span{{margin:.2rem .6rem 0 0}}
.rp-controls details{{margin:0!important;padding:0!important;border:0!important}}
.rp-controls details[open]{{flex-basis:100%}}.rp-controls summary{{padding:.2rem!important;cursor:pointer}}
.rp-controls details label{{display:inline-flex!important;margin:0 .4rem .3rem 0}}
.rp-controls fieldset label{{display:flex;align-items:center;white-space:nowrap;position:relative;border:1px solid;
border-radius:.5rem;padding:.15rem .6rem;min-height:28px;cursor:pointer}}
.rp-controls fieldset input{{position:absolute;inset:0;width:100%;height:100%;margin:0;opacity:0;cursor:pointer}}
.rp-controls label:has(:checked){{background:var(--rb-q);border-color:var(--rb-q);color:var(--rh-paper,Canvas)}}
.rp-controls label:has([type=radio]:focus-visible),.rp-controls :is(button,input):focus-visible
{{outline:3px solid var(--rb-k);outline-offset:2px}}
.rp-turn{{transform:rotate(var(--a))}}
.rp-tip{{transform:rotate(var(--a)) translateX(calc(var(--l)*1px)) rotate(calc(-1*var(--a)))}}
.rp-move{{transform:translate(calc(var(--x)*1px),calc(var(--y,0)*1px))}}
.rp-zoom{{transform:scale(var(--z))}}
.rp-turn,.rp-tip,.rp-move,.rp-zoom{{transition:transform .4s ease-in-out}}
.rp-bend{{transition:d .2s linear,opacity .3s}}
[data-word]{{cursor:grab;user-select:none}}[data-word] *{{touch-action:none}}
@media (min-width:601px){{.rp:has(.rp-views>svg:only-child){{display:grid;gap:.2rem 1.2rem;
grid-template:auto 1fr/minmax(0,3fr) minmax(0,2fr)}}.rp-views:has(svg:only-child){{grid-row:1/3}}
.rp-views:has(svg:only-child)~.rp-controls{{align-self:start}}
.rp-views:has(svg:only-child)~.rp-said{{min-height:4.2em}}
.rp-views:has(svg:only-child)~.rp-controls label{{grid-template-columns:minmax(0,1fr) auto;gap:0 .6rem}}
.rp-views:has(svg:only-child)~.rp-controls label input[type=range]{{grid-area:2/1/auto/-1}}}}
@media print{{.rp-controls label:has(:checked){{color:#000!important;background:none!important;
border-width:2px!important;font-weight:700}}}}
@media (prefers-reduced-motion:reduce){{.rp *{{transition:none!important}}}}
@media (max-width:600px){{.rp-views{{gap:.3rem}}.rp-views svg:not(:only-child)
{{flex:none;width:min(100%,320*max(20rem,100svh - 24.5rem)/var(--tall))}}
.rp-views svg:not(:only-child) text:not(.rp-name){{font-size:15.5px}}
.rp-controls{{position:sticky;bottom:0;padding:.3rem 0;background:var(--rh-paper,Canvas)}}
.rp-controls>button~*~*{{grid-column:1/-1}}
.rp-controls>label{{grid-template-columns:minmax(0,1fr) auto;gap:0 .6rem}}
.rp-controls>label input{{grid-area:2/1/auto/-1}}}}
"""
State = dict[str, dict[str, object]]  # part -> attribute -> value; the attribute "text" is what the part contains


@dataclass(frozen=True)
class View:
    """One drawing of a piece. On a phone drawings stand below each other, so each is about as wide as a phone.

    Args:
        alt: what it shows, in words, in every state.
        svg: its inside; a part is an element with data-part="name" and no attribute that changes; what can be dragged
            has a `grip`.
        size: width and height, in its own units.
    """

    alt: str
    svg: str
    size: tuple[int, int] = (320, 300)


@dataclass(frozen=True, repr=False)
class Piece:
    """What a cell shows.

    Args:
        name: unique on a page.
        said: the result, in words, with parts. Once the piece has been touched, a copy of it is read aloud when it
            changes, but not while the piece plays. Orca takes no notice of an aria-live that changes: the copy waits.
        views: the drawings. Elements with data-word, one for each word in a step's name, can be dragged to each other's
            places if the words share the width of the first drawing; that moves the first slider.
        sliders: for each its label, the names of its steps, and the step at the start.
        states: for each combination of steps, the parts and their attributes. The attribute "chain" is a chain of
            arrows, from `packed_chain`, and "bars" are bars, from `packed_bars`. The page gets each value once for the
            sliders that it depends on.
        buttons: which of the sliders are rows of buttons.
        few: of the first row of buttons so many can be seen at first, and the others when one asks for more.
        play: which slider a button Play moves.
        pace: milliseconds between its steps.
    """

    name: str
    said: str
    views: tuple[View, ...]
    sliders: tuple[tuple[str, tuple[str, ...], int], ...]
    states: dict[tuple[int, ...], State]
    buttons: tuple[int, ...] = ()
    few: int | None = None
    play: int | None = None
    pace: int = 600

    def __repr__(self) -> str:
        return f"<piece to play with: {self.name}>"

    def _repr_html_(self) -> str:
        views = "".join(
            f'<svg viewBox="0 0 {view.size[0]} {view.size[1]}" role="img" aria-label="{html.escape(view.alt)}">'
            f"{self.filled(view.svg)}</svg>"
            for view in self.views
        )
        data = {"steps": [steps for _, steps, _ in self.sliders], "tables": self.tables()}
        packed = json.dumps(data, separators=(",", ":"), ensure_ascii=False)
        packed = html.escape(packed, quote=False).replace("'", "&#39;")
        play = f'<button type="button" data-slider="{self.play}" data-pace="{self.pace}" hidden>Play</button>'
        controls = "".join(map(self.control, range(len(self.sliders))))
        return in_a_notebook(
            f'<div class="rope-piece rp" id="piece-{self.name}" data-states=\'{packed}\'><style>{STYLE}</style>'
            f'<div class="rp-views" style="--tall:{sum(view.size[1] for view in self.views)}">{views}</div>'
            f'<p class="rp-said">{self.filled(self.said)}</p><p class="rp-heard" aria-live="polite"></p>'
            f'<div class="rp-controls">{"" if self.play is None else play}{controls}</div></div>',
            *(view.alt for view in self.views),
        )

    def filled(self, markup: str) -> str:
        """Markup with its parts in the first state."""
        for part, changes in self.states[tuple(start for *_, start in self.sliders)].items():
            changes = dict(changes)
            text = html.escape(str(changes.pop("text", "")))
            for packed, unpacked in (("chain", chain), ("bars", bars)):
                if packed in changes:
                    changes["d"] = unpacked(changes.pop(packed))
            attributes = "".join(f' {name}="{html.escape(str(value))}"' for name, value in changes.items())
            markup = markup.replace(f'data-part="{part}">', f'data-part="{part}"{attributes}>{text}')
        return markup

    def control(self, index: int) -> str:
        """A slider or a row of buttons. Without data-lm-suppress-shortcuts JupyterLab takes the arrow keys."""
        label, steps, start = self.sliders[index]
        keys = 'data-lm-suppress-shortcuts="true"'
        if index not in self.buttons:
            return (
                f'<label><span>{label}</span><input type="range" min="0" max="{len(steps) - 1}" value="{start}" '
                f'aria-valuetext="{steps[start]}" {keys}>'
                f'<span class="rp-now" aria-hidden="true">{steps[start]}</span></label>'
            )
        choices = [
            f'<label><input type="radio" name="{self.name}-{index}"{" checked" * (i == start)} {keys}>{step}</label>'
            for i, step in enumerate(steps)
        ]
        if self.few and index == self.buttons[0]:
            choices[self.few :] = ["<details><summary>more</summary>", *choices[self.few :], "</details>"]
        # A <legend> stands beside its buttons in two of three engines.
        return f'<fieldset aria-label="{label}"><span aria-hidden="true">{label}</span>{"".join(choices)}</fieldset>'

    def tables(self) -> list[tuple[tuple[int, ...], list[tuple[str, str]], list[list[object]]]]:
        """The states, as [sliders, [part, attribute] of each column, rows]: each value once, not for every state."""
        sizes = [range(len(steps)) for _, steps, _ in self.sliders]
        columns: dict[tuple[int, ...], list[tuple[str, str]]] = {}
        for part, changes in next(iter(self.states.values())).items():
            for name in changes:
                values = {key: state[part][name] for key, state in self.states.items()}
                on = tuple(
                    i
                    for i in range(len(sizes))
                    if any(value != values[(*key[:i], 0, *key[i + 1 :])] for key, value in values.items())
                )
                columns.setdefault(on, []).append((part, name))
        tables = []
        for on, names in columns.items():
            keys = product(*(size if i in on else range(1) for i, size in enumerate(sizes)))
            rows = [[self.states[key][part][name] for part, name in names] for key in keys]
            tables.append((on, names, rows))
        return tables


def in_a_notebook(piece: str, *alts: str, script: str = "piece.js") -> str:
    """A piece as a cell shows it: hidden behind what it shows in words, until the script has set it up.

    JupyterLab drops attributes without a value from a notebook that it does not trust: hidden has one.
    """
    script = files("figures").joinpath(script).read_text(encoding="utf-8")  # also from a zip
    rest = html.escape(" ".join(["Run this cell, and its piece can be played with.", *alts]), quote=False)
    piece = piece.replace('<div class="rope-piece', '<div hidden="hidden" class="rope-piece', 1)
    return f'<p class="rp-rest">{rest}</p>{piece}<script>\n{script}</script>'


# -- Parts of drawings -------------------------------------------------------------------------------------------------


def path(points: list[tuple[float, float]]) -> str:
    """The d attribute of a line through points."""
    return "M" + "L".join(f"{x:.1f} {y:.1f}" for x, y in points)


def line(part: str, colour: str) -> str:
    """A line that moves."""
    return f'<path fill="none" stroke="{colour}" stroke-width="2" data-part="{part}"></path>'


def label(x: float, y: float, text: str = "", *, part: str = "", anchor: str = "start") -> str:
    """A text, which changes if it has a part."""
    moving = f' data-part="{part}"' if part else ""
    return f'<text x="{x}" y="{y}" text-anchor="{anchor}"{moving}>{text}</text>'


def colour_key(x: float, y: float, ends: tuple[str, str], colours: list[tuple[str, float]]) -> str:
    """What the colours of a map mean: a swatch for each (ink, opacity), named at both ends."""
    swatches = "".join(
        f'<rect x="{x + 9 * i:g}" y="{y - 10:g}" width="9" height="11" fill="{ink}" fill-opacity="{opacity:g}"></rect>'
        for i, (ink, opacity) in enumerate(colours)
    )
    return label(x - 4, y, ends[0], anchor="end") + swatches + label(x + 9 * len(colours) + 4, y, ends[1])


def grip(slider: int, at: str = "M0 0", *, part: str = "", style: str = "") -> str:
    """A place, 44 pixels wide on any screen, that can be dragged and moves a slider; with a part it has no `at`."""
    place = f'data-part="{part}"' if part else f'd="{at}h0"'
    return f'<path class="rp-grip{style}" data-grip="{slider}" {place}></path>'


def minus(text: str) -> str:
    """A number for people: with a minus sign instead of a hyphen."""
    return text.replace("-", "−")


def pointer(length: float, colour: str) -> str:
    """An arrow to the right from (0, 0)."""
    return (
        f'<path stroke="{colour}" stroke-width="3" d="M0 0H{length - 8:g}"></path>'
        f'<path fill="{colour}" d="M{length:g} 0l-12 -5v10z"></path>'
    )


def packed_chain(corners: list[complex]) -> str:
    """A chain of arrows of length 1 from 0 through the corners: two characters each, right to 1/60 at each corner."""
    places = [0j, *(complex(round(30 * z.real), round(-30 * z.imag)) for z in corners)]
    steps = [b - a for a, b in pairwise(places)]
    return "".join(chr(94 + int(part)) for step in steps for part in (step.real, step.imag))


def chain(packed: str) -> str:
    """The d attribute of a packed chain, 240 for an arrow: as the script unpacks it."""
    d = "M0 0"
    for x, y in zip(packed[::2], packed[1::2], strict=True):
        x, y = ord(x) - 94, ord(y) - 94
        d += f"l{8 * x} {8 * y}l{-2 * x - y} {x - 2 * y}l{2 * x + y} {2 * y - x}"
        d += f"l{y - 2 * x} {-x - 2 * y}l{2 * x - y} {x + 2 * y}"
    return d


def packed_bars(heights: Iterable[float]) -> str:
    """Bars of width 1 side by side, from 0 upwards: a character each, whole numbers from 0 to 32 for 0 to 1."""
    return "".join(chr(94 + round(32 * min(max(height, 0), 1))) for height in heights)


def bars(packed: str) -> str:
    """The d attribute of packed bars: as the script unpacks it."""
    return "M0 0" + "".join(f"V{94 - ord(one)}h1" for one in packed) + "V0Z"
