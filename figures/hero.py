"""The first screen: the title of the book, made visible. One pair of words, a code added or the pair turned.

Everything that moves is a CSS variable, so a state of the piece is one `style` and four texts; the browser moves the
arrows from one state to the next, and jumps if the reader wants no motion.
"""

import html
import io
import json
import math
from dataclasses import dataclass

import torch
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import Tensor

from figures.interactive import SHARED, Piece, grip, in_a_notebook, minus, path
from figures.palette import DARK, LIGHT
from figures.style import KEY, OTHER, QUERY, SCORE, styled
from figures.words import CAR, DISTANCE, HEAD_DIM, PAIR, RED, TURN, rotated
from rope_lib.theory.sinusoidal import sinusoidal_encoding

SENTENCE = ["One", "May", "day", "we", "all", "saw", "the", "red", "old", "tin", "toy", "car"]
START = 3  # the first state has three words in front
IN_FRONT = SENTENCE.index("red")  # at most so many words stand before "red" ...
APART = len(SENTENCE) - 1 - IN_FRONT  # ... and "car" so far behind it
UNIT, BOX, LOW, HIGH = 36, 172, -1.9, 6.3  # pixels for 1; size of a drawing; the scores at the ends of a curve's axis


# -- Numbers, all from the library -------------------------------------------------------------------------------------


def added(word: tuple[float, float], positions: Tensor) -> Tensor:
    """(n, 2): the word plus the sinusoidal code of each position."""
    code = sinusoidal_encoding(positions, HEAD_DIM, dtype=torch.float64)[:, 2 * PAIR : 2 * PAIR + 2]
    return torch.tensor(word, dtype=torch.float64) + code


def scores(place, in_front: Tensor, distance: int = DISTANCE) -> Tensor:
    """The scalar product of both words, placed by `added` or `rotated`, with so many words in front of them."""
    return (place(CAR, in_front + distance) * place(RED, in_front)).sum(-1)


STEP = 160 / IN_FRONT  # pixels for a word in front


# -- The piece ---------------------------------------------------------------------------------------------------------

DRAWING = """
.rh-q{fill:var(--rb-q);stroke:var(--rb-q)}.rh-k{fill:var(--rb-k);stroke:var(--rb-k)}
.rh-s{fill:var(--rb-s);stroke:var(--rb-s)}.rh-p{fill:var(--rb-p);stroke:var(--rb-p)}
.rh-shaft{stroke:none}.rh-line{fill:none}.rh-faint{opacity:.4}.rh-axis{stroke:currentColor;opacity:.45;fill:none}
.rh-turn,.rh-dot,.rh-shaft,.rh-head,.rh-name,.rh-code,.rh-ribbon span
{transition:.45s ease-in-out;transition-property:transform,opacity}
.rh-turn{transform:rotate(var(--t))}
.rh-code{transform:translate(var(--x),var(--y)) rotate(calc(var(--c) + var(--o)))}
.rh-shaft{transform:rotate(var(--a)) scaleX(calc(var(--l) - 7))}
.rh-head{transform:rotate(var(--a)) translateX(calc(var(--l)*1px))}
.rh-name{transform:rotate(var(--a)) translateX(calc(var(--l)*1px + 13px)) rotate(calc(-1*var(--a)))}
.rh-qa{--a:var(--qa);--l:var(--ql)}.rh-ka{--a:var(--ka);--l:var(--kl)}
.rh-qr{--a:calc(var(--t) + var(--a0))}.rh-kr{--a:calc(var(--t) + var(--a0))}
.rh-dot{transform:translate(calc(var(--n)*1px*var(--step)),calc(var(--h)*1px))}
.rh-flat{--h:var(--r)}
.rh-word{font:italic 700 17px Georgia,serif;text-anchor:middle;dominant-baseline:central;paint-order:stroke;
stroke:var(--rh-paper,Canvas);stroke-width:4px}
.rh-axis-name{font:17px var(--pst-font-family-base,sans-serif);fill:currentColor;opacity:.8}
@media (prefers-reduced-motion:reduce){[class*=rh-],.rh-ribbon span{transition:none!important}}
"""
STYLE = f"""
.rope-hero{{{LIGHT}}}html[data-theme=dark] .rope-hero{{{DARK}}}
@media (prefers-color-scheme:dark){{html:not([data-theme]) .rope-hero{{{DARK}}}}}
.rope-hero{{--edge:color-mix(in srgb,currentColor 22%,transparent);border:1px solid var(--edge);border-radius:.75rem;
padding:.7rem 1.2rem .8rem;line-height:1.35;container-type:inline-size}}
.rope-hero p{{margin:0}}
.rh-text{{position:relative;height:3.1em;overflow:hidden;border-bottom:1px solid var(--edge)}}
.rh-ribbon span{{position:absolute;top:0;bottom:0;width:calc(100%/{len(SENTENCE)});padding-top:.25rem;text-align:center;
transform:translateX(calc((var(--n) - {IN_FRONT})*100%));white-space:nowrap}}
.rh-ribbon .rh-behind{{transform:translateX(calc((var(--n) + var(--d) - {IN_FRONT + APART})*100%));
opacity:calc(var(--d) - var(--back))}}
.rh-ribbon .rh-key,.rh-ribbon .rh-query{{font-weight:700;border-radius:.4rem .4rem 0 0}}
.rh-ribbon .rh-key{{color:var(--rb-k);background:color-mix(in srgb,var(--rb-k) 11%,transparent)}}
.rh-ribbon .rh-query{{color:var(--rb-q);background:color-mix(in srgb,var(--rb-q) 11%,transparent)}}
.rh-places{{display:grid;grid-template-columns:repeat({len(SENTENCE)},1fr);text-align:center;position:absolute;
inset:auto 0 .15rem;font-size:.75em;font-variant-numeric:tabular-nums}}
.rh-places span{{opacity:.8}}
.rh-controls{{display:flex;align-items:center;gap:1rem;margin:.6rem 0}}
.rh-controls button{{min-width:5.6em;min-height:2.4em;border:0;border-radius:.5rem;background:var(--rb-q);
color:var(--rh-paper,Canvas);font:inherit;font-weight:600;cursor:pointer}}
.rh-controls button:focus-visible,.rh-controls input:focus-visible{{outline:3px solid var(--rb-k);outline-offset:2px}}
.rh-sliders{{flex:1;min-width:0;display:grid;gap:.2rem 1.2rem;
grid-template-columns:repeat(auto-fit,minmax(min(100%,15rem),1fr))}}
.rh-controls label{{display:flex;align-items:center;gap:.8rem;margin:0}}
.rh-controls input{{flex:1;min-width:4rem;height:1.75rem;margin:0;accent-color:var(--rb-q)}}
.rh-now{{min-width:1.2em;font-variant-numeric:tabular-nums;font-weight:700}}
.rh-sides{{display:grid;grid-template-columns:repeat(2,minmax(0,1fr));gap:.4rem 2.4rem}}
.rh-title{{display:flex;align-items:baseline;gap:0 .5em;white-space:nowrap}}
.rh-title>b{{font-size:1.4em;line-height:1.2}}.rope-hero .rh-score{{margin-left:auto;font-size:.95em}}
.rh-score b{{font-size:1.7em;color:var(--rb-s);font-variant-numeric:tabular-nums}}
.rh-views{{display:grid;grid-template-columns:{BOX}fr 200fr;gap:.6rem;align-items:end;margin-top:.45rem}}
.rh-views svg{{width:100%;height:auto;display:block;overflow:visible}}
.rope-hero .rh-said{{margin-top:.5rem;font-size:.95em}}{SHARED}
.rh-title i{{font-style:normal;font-weight:600;color:var(--rb-p)}}
@container (max-width:54rem){{.rh-title span{{font-size:.82em}}.rope-hero .rh-score{{font-size:0}}
.rope-hero .rh-score b{{font-size:1.4rem}}}}
@container (max-width:38rem){{.rh-sides{{grid-template-columns:minmax(0,1fr)}}.rh-title>b{{font-size:1.15em}}
.rh-text{{font-size:.8em;height:3.4em}}.rh-places{{font-size:.85em}}.rh-controls{{margin:.4rem 0 .2rem}}
.rh-controls{{gap:.6rem}}.rh-controls button{{min-width:4.6em}}
.rh-controls label{{gap:.4rem;font-size:.88em;white-space:nowrap}}.rh-controls label span:first-child{{flex:0 0 6.7em}}
.rh-controls input{{min-width:0}}.rh-text{{font-size:.7em}}}}
@media (max-width:640px){{.rope-hero{{padding:.3rem .6rem .6rem}}}}
"""


@dataclass(frozen=True)
class State:
    """What changes with the places of the words: CSS variables, lines, and the texts that say the result."""

    variables: dict[str, float | str]
    lines: dict[str, str]
    score_added: str
    score_rotated: str
    said: str

    @property
    def style(self) -> str:
        """The variables as the value of a `style` attribute."""
        return "".join(f"--{name}:{value};" for name, value in self.variables.items())

    @property
    def parts(self) -> dict[str, dict[str, str]]:
        """As the script of figures.interactive wants it."""
        return {
            "all": {"style": self.style},
            "added": {"text": self.score_added},
            "rotated": {"text": self.score_rotated},
            "said": {"text": self.said},
        } | {part: {"d": line} for part, line in self.lines.items()}


def direction(vector: Tensor) -> str:
    """The angle of a vector as CSS counts it: clockwise."""
    return f"{-math.degrees(math.atan2(vector[1], vector[0])):.2f}deg"


def length(vector: Tensor) -> float:
    """In pixels."""
    return round(UNIT * vector.norm().item(), 1)


def state(in_front: int, distance: int = DISTANCE) -> State:
    """The piece with so many words in front of "red", and "car" so far behind it."""
    n = torch.tensor([float(in_front)], dtype=torch.float64)
    query, key = added(CAR, n + distance)[0], added(RED, n)[0]
    turn = math.degrees(TURN)
    by_adding, by_turning = (scores(place, n, distance).item() for place in (added, rotated))
    variables = {
        "n": in_front,
        "d": distance,
        "t": f"{-in_front * turn:.2f}deg",
        "c": f"{in_front * turn:.2f}deg",  # the code turns the other way: (sin, cos)
        "qa": direction(query),
        "ql": length(query),
        "ka": direction(key),
        "kl": length(key),
        "h": round(height(by_adding), 1),
        "r": round(height(by_turning), 1),
    }
    lines = {"wedge": wedge(distance), "added-curve": curve(added, distance), "flat": curve(rotated, distance)}
    sums = [minus(f"{score:.2f}") for score in (by_adding, by_turning)]
    said = (
        f"“red” is at place {in_front}, “car” at place {in_front + distance}. "
        f"Their score: {sums[0]} with an added code, {sums[1]} with the rotation."
    )
    return State(variables, lines, *sums, said)


def height(score: float) -> float:
    """Where a score is on the vertical axis of a curve, in pixels from the top."""
    return 150 - 140 * (score - LOW) / (HIGH - LOW)


def wedge(distance: int) -> str:
    """What lies between both words, turned, when "red" is at place 0."""
    n = torch.zeros(1, dtype=torch.float64)
    begin, end = (math.atan2(*place[0].tolist()[::-1]) for place in (rotated(RED, n), rotated(CAR, n + distance)))
    end += 2 * math.pi * (end < begin - math.pi / 2)
    angles = [begin + (end - begin) * step / 12 for step in range(13)]
    return path([(0.0, 0.0)] + [(26 * math.cos(angle), -26 * math.sin(angle)) for angle in angles]) + "Z"


def curve(place, distance: int) -> str:
    """The score for each number of words in front."""
    fine = torch.arange(4 * IN_FRONT + 1, dtype=torch.float64) / 4
    found = scores(place, fine, distance).tolist()
    return path([(30 + STEP * n, height(s)) for n, s in zip(fine.tolist(), found, strict=True)])


def arrow(name: str, angle: str = "", at: float = 0) -> str:
    """Shaft, head and letter of the query "q" or the key "k"; with an angle and a length it stands still."""
    fixed = f' style="--a:{angle};--l:{at}"' if angle else ""
    group = f'<g class="rh-{name}{"" if angle else f" rh-{name}a"}"{fixed}>'
    return (
        f'{group}<rect class="rh-shaft" y="-1.5" width="1" height="3"></rect>'
        '<path class="rh-head" stroke="none" d="M0 0l-12 -5v10z"></path></g>'
    )


def letter(name: str, style: str, at: str = "") -> str:
    """An upright letter beyond the tip of an arrow. To drag k shifts both words, to drag q moves them apart."""
    held = grip("kq".index(name), style=" rh-name")
    return f'<g class="rh-{name} {style}"{at}><text class="rh-name rh-word">{name}</text>{held}</g>'


def thin_arrows() -> str:
    """Both words as they are before anything is done: thin arrows."""
    return "".join(
        f'<path class="rh-{name} rh-faint" stroke-width="1.5" d="M0 0L{x:g} {y:g}"></path>'
        for name, (x, y) in (("q", tip(CAR)), ("k", tip(RED)))
    )


def tip(word: tuple[float, float]) -> tuple[float, float]:
    """Where the arrow of a word ends, in pixels from its beginning, downwards."""
    return UNIT * word[0], -UNIT * word[1]


def view_added() -> str:
    """Both words, the code at the tip of each, and the sums."""
    turn = math.degrees(TURN)
    codes = "".join(
        f'<circle class="rh-p rh-line rh-faint" cx="{x:g}" cy="{y:g}" r="{UNIT}" stroke-dasharray="2 4"></circle>'
        f'<g class="rh-code rh-p" style="--x:{x:g}px;--y:{y:g}px;--o:calc({ahead} * {turn:.2f}deg - 90deg)">'
        f'<path stroke-width="2" d="M0 0H{UNIT - 8}"></path>'
        f'<path stroke="none" d="M{UNIT} 0l-9 -4v8z"></path></g>'
        for (x, y), ahead in ((tip(CAR), "var(--d)"), (tip(RED), 0))
    )
    names = letter("q", "rh-qa") + letter("k", "rh-ka")
    return f'<g transform="translate(30 106)">{thin_arrows()}{codes}{arrow("k")}{arrow("q")}{names}</g>'


def view_rotated() -> str:
    """Both words, and one rigid pair of arrows that turns."""
    query, key = (torch.tensor(word, dtype=torch.float64) for word in (CAR, RED))
    ahead = f"calc({direction(query)} - var(--d) * {math.degrees(TURN):.2f}deg)"
    ends = {"q": (ahead, length(query)), "k": (direction(key), length(key))}
    arrows = "".join(arrow(name, *end) for name, end in ends.items())
    names = "".join(
        letter(name, f"rh-{name}r", f' style="--a0:{angle};--l:{far}"') for name, (angle, far) in ends.items()
    )
    circles = "".join(f'<circle class="rh-axis" r="{far}" stroke-dasharray="2 4"></circle>' for _, far in ends.values())
    between = '<path class="rh-s" opacity=".35" data-part="wedge"></path>'
    turning = f'<g class="rh-turn">{between}{arrows}</g>'
    return f'<g transform="translate(86 86)">{circles}{thin_arrows()}{turning}{names}</g>'


def view_curve(part: str, moving: str) -> str:
    """The score for each number of words in front, and a dot at the present one."""
    return (
        f'<path class="rh-axis" d="M30 10V150M30 {height(0):.1f}H194"></path>'
        f'<path class="rh-s rh-line" stroke-width="2.5" data-part="{part}"></path>'
        f'<g transform="translate(30 0)" style="--step:{STEP:.2f}">'
        f'<circle class="rh-s rh-dot {moving}" r="6.5" stroke="none"></circle>'
        f"{grip(0, style=f' rh-dot {moving}')}</g>"
        '<text class="rh-axis-name" x="36" y="12">score</text>'
        '<text class="rh-axis-name" x="194" y="167" text-anchor="end">words in front →</text>'
        + "".join(
            f'<text class="rh-axis-name" x="24" y="{height(tick):.0f}" dy="4" text-anchor="end">{tick}</text>'
            for tick in (0, 4)
        )
    )


def alts() -> tuple[str, str, str, str]:
    """The four drawings in words, for every state alike; the numbers are in the texts beside them."""
    return (
        "Two arrows, query and key. To the tip of each word a short arrow is added, the code of its place; it turns "
        "from place to place, so the sums change their lengths and the angle between them.",
        "The score against the number of words in front: a curve that wanders.",
        "Two arrows, query and key. Both turn around the centre by the same angle for each word in front, so their "
        "lengths and the angle between them stay. The further apart the words are, the larger is that angle.",
        "The score against the number of words in front: a flat line, at another height for each distance.",
    )


def panel(title: str, what: str, part: str, drawings: list[tuple[str, int, str]]) -> str:
    """One half: its name, its score, its two drawings."""
    views = "".join(
        f'<svg viewBox="0 0 {width} {BOX}" role="img" aria-label="{alt}">{inside}</svg>'
        for inside, width, alt in drawings
    )
    return (
        f'<div><p class="rh-title"><b>{title}</b><span>{what}</span>'
        f'<span class="rh-score">score <b data-part="{part}"></b></span></p>'
        f'<div class="rh-views">{views}</div></div>'
    )


def piece() -> str:
    """The first screen's piece, as HTML with its first state drawn."""
    states = {(n, d - 1): state(n, d).parts for n in range(IN_FRONT + 1) for d in range(1, APART + 1)}
    sliders = (
        ("words in front", tuple(map(str, range(IN_FRONT + 1))), START),
        ("red to car", tuple(map(str, range(1, APART + 1))), DISTANCE - 1),
    )
    shared = Piece("hero", "", (), sliders, states)
    data = {"steps": [steps for _, steps, _ in sliders], "tables": shared.tables()}
    packed = html.escape(json.dumps(data, separators=(",", ":"), ensure_ascii=False))
    last = len(SENTENCE) - 1
    looks = {IN_FRONT: "rh-key", last: "rh-behind rh-query"} | dict.fromkeys(range(IN_FRONT + 1, last), "rh-behind")
    ribbon = "".join(
        f'<span class="{looks.get(j, "")}" style="left:{100 * j / len(SENTENCE):.3f}%;--back:{last - j}">{word}</span>'
        for j, word in enumerate(SENTENCE)
    )
    places = "".join(f"<span>{place}</span>" for place in range(len(SENTENCE)))
    text = f"A text, {' '.join(SENTENCE)}, with the places of its words. Words in front and in between come and go."
    alt = alts()
    sides = panel(
        "Add", "a <i>code</i> to each word", "added",
        [(view_added(), BOX, alt[0]), (view_curve("added-curve", ""), 200, alt[1])],
    ) + panel(
        "Rotate", "each word by its place", "rotated",
        [(view_rotated(), BOX, alt[2]), (view_curve("flat", "rh-flat"), 200, alt[3])],
    )  # fmt: skip
    controls = (
        '<div class="rh-controls pst-js-only"><button type="button" data-slider="0" data-pace="900" data-auto="1">Play'
        f'</button><div class="rh-sliders">{shared.control(0)}{shared.control(1)}</div></div>'
    )
    markup = (
        f'<div class="rope-piece rope-hero" id="piece-hero" data-states="{packed}"><style>{DRAWING}{STYLE}</style>'
        f'<div data-part="all"><div class="rh-text" role="img" aria-label="{text}">'
        f'<div class="rh-ribbon">{ribbon}</div><div class="rh-places">{places}</div></div>{controls}'
        f'<div class="rh-sides">{sides}</div></div>'
        '<p class="rh-said" data-part="said"></p><p class="rp-heard" aria-live="polite"></p>'
    )
    return f"{shared.filled(markup)}</div>\n"


class Screen:
    """The piece, as a cell shows it."""

    def _repr_html_(self) -> str:
        return in_a_notebook(piece(), *alts())

    def __repr__(self) -> str:
        return "<the first screen's piece>"


def first_screen() -> Screen:
    """For a page of the book."""
    return Screen()


# -- The same, standing still: for a page that runs no HTML, and for a link that is shared -----------------------------


def still() -> str:
    """The first state as one SVG file, in the reader's preferred colours."""
    now, slot = state(START), 55
    words = SENTENCE[IN_FRONT - START : IN_FRONT + 1] + SENTENCE[-DISTANCE:]
    text = "".join(
        f'<text class="{look}" x="{slot * j + slot / 2 + 30:g}" y="26">{word}</text>'
        for j, word in enumerate(words)
        for look in ["rh-k" if j == START else "rh-q" if j == START + DISTANCE else "rh-plain"]
    )
    places = "".join(
        f'<text class="rh-number" x="{slot * j + slot / 2 + 30:g}" y="46">{j}</text>' for j in range(len(SENTENCE))
    )
    halves = "".join(
        f'<g transform="translate({x} 70)"><text class="rh-side" y="14">{title}</text>'
        f'<text class="rh-s rh-side" x="372" y="14" text-anchor="end">score {score}</text>'
        f'<g transform="translate(0 26)">{view}</g><g transform="translate(178 26)">{line}</g></g>'
        for x, title, score, view, line in (
            (0, "Add", now.score_added, view_added(), view_curve("added-curve", "")),
            (388, "Rotate", now.score_rotated, view_rotated(), view_curve("flat", "rh-flat")),
        )
    )
    for part, line in now.lines.items():
        halves = halves.replace(f'data-part="{part}"', f'd="{line}"')
    look = (
        f"svg{{{LIGHT}color:#1f2328;--rh-paper:transparent;{now.style}}}@media(prefers-color-scheme:dark){{svg{{{DARK}color:#e6edf3}}}}"
        "text{font:16px sans-serif;fill:currentColor}.rh-plain,.rh-number,text.rh-k,text.rh-q{text-anchor:middle}"
        ".rh-number{font-size:12px;opacity:.75}.rh-side{font-weight:700;font-size:18px}"
        "text.rh-word{fill:inherit}text.rh-q{fill:var(--rb-q);font-weight:700}text.rh-k{fill:var(--rb-k);font-weight:700}text.rh-s{fill:var(--rb-s)}text:not(.rh-word){stroke:none}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="-12 0 784 274"><style>{look}{DRAWING.strip()}</style>'
        f'{text}{places}<path class="rh-axis" d="M30 54H690"></path>{halves}</svg>\n'
    )


@styled
def shared() -> Figure:
    """What a chat shows beside a link to the book: 1200 by 630 pixels."""
    figure = Figure(figsize=(12, 6.3), dpi=100, layout="none")
    figure.text(0.05, 0.81, "Rotate, Don’t Add", fontsize=58, weight="bold", color="#1f2328")
    figure.text(0.05, 0.725, "An executable book on rotary position embedding", fontsize=23, color="#57606a")
    in_front = torch.arange(8 * IN_FRONT + 1, dtype=torch.float64) / 8
    n = torch.tensor([2.0], dtype=torch.float64)
    for left, place, title, (x, y) in (
        (0.05, added, "Add: the score wanders.", (-0.1, -0.8)),
        (0.53, rotated, "Rotate: it stays.", (-1.95, -1.2)),
    ):
        figure.text(left, 0.6, title, fontsize=25, weight="bold", color="#1f2328")
        ax = figure.add_axes((left, 0.06, 0.2, 0.2 * 12 / 6.3), xlim=(x, x + 3.2), ylim=(y, y + 3.2))
        ax.axis("off")
        for word, colour, at in ((CAR, QUERY, n + DISTANCE), (RED, KEY, n)):
            end = place(word, at)[0].tolist()
            if place is added:
                thick_arrow(ax, word, end, OTHER, 4)
            ax.plot([0, word[0]], [0, word[1]], color=colour, linewidth=3, alpha=0.4)
            thick_arrow(ax, (0, 0), end, colour, 7)
        ax = figure.add_axes((left + 0.215, 0.1, 0.2, 0.4), xlim=(-0.3, IN_FRONT + 0.3), ylim=(0, 5.4))
        ax.plot(in_front, scores(place, in_front), color=SCORE, linewidth=7, solid_capstyle="round")
        ax.set(xticks=[], yticks=[])
    return figure


def thick_arrow(ax: Axes, start: tuple[float, float], end: tuple[float, float], colour: str, width: float) -> None:
    """An arrow that can be seen in a small picture."""
    look = {"arrowstyle": "-|>", "color": colour, "linewidth": width, "mutation_scale": 5 * width, "shrinkA": 0,
            "shrinkB": 0, "joinstyle": "miter"}  # fmt: skip
    ax.annotate("", end, xytext=start, arrowprops=look)


def files() -> dict[str, bytes]:
    """The files of the first screen, by name."""
    picture = io.BytesIO()
    shared().savefig(picture, format="png", metadata={"Software": None})
    return {"hero.html": piece().encode(), "hero.svg": still().encode(), "shared.png": picture.getvalue()}
