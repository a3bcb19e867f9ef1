"""Two engines write behind one sentence: the right one, and one whose rotation is broken in a way that one can choose.

Their words were written by the engine that a page can load (tools/record_two_engines.py) and are stored. The right
engine was asked, for each word of the broken one, how likely it finds that word there.
"""

import html
import json
import pkgutil

import lab
from figures.interactive import STYLE as PIECES
from figures.interactive import in_a_notebook

STORED = "published_models/two_engines.json"  # below lab
SENTENCES = {  # on its button: how it begins
    "a robot": "Once upon a time, a little robot lived in a small house at the edge of the forest. One morning it",
    "Paris": "The capital of France is",
    "water": "Water boils when it is heated, because",
    "advice": "My grandmother always told me that",
}
ENGINES = {  # on its button: what llama.cpp is told; `half_split` is engine.mjs's, which reads the pairs half-split
    "as published": {},
    "other layout": {"half_split": True},
    "not rotated": {"rope_freq_scale": 1e-12},
    "backwards": {"rope_freq_scale": -1},
    "positions halved": {"rope_freq_scale": 0.5},
    "base 10,000": {"rope_freq_base": 10_000},
    "base 1,000,000": {"rope_freq_base": 1_000_000},
}
WORDS = 20  # that each writes
BORDERS = (10, 1, 0.1)  # %, between the colours
ALT = (
    "A model continues a sentence twice, as it was published and with a rotation that is broken. Words that the "
    "published engine finds unlikely are coloured."
)
STYLE = """
.rope-engines [hidden]{display:none}
.rope-engines .rp-views{display:grid;grid-template-columns:1fr 1fr;gap:.3rem 1.2rem}
.rope-engines .rp-views p{margin:0}.rope-engines .re-given{grid-column:1/-1}
.re-name{border-bottom:2px solid;margin-bottom:.2rem}.re-wrong,.re-right{font-weight:600}
.re-wrong span,.re-key span{border-radius:.2rem}
.rope-engines :is(.re-1,.re-2,.re-3){background:color-mix(in srgb,var(--rp-wrong) var(--much),transparent);
text-decoration:underline .12em var(--rp-wrong)}
.rope-engines .re-1{--much:10%;text-decoration-style:dotted}.rope-engines .re-2{--much:22%;text-decoration-style:dashed}
.rope-engines .re-3{--much:36%}.rope-engines .re-at{outline:2px solid var(--rb-k)}
.rope-engines .re-key{font-size:.9em;margin:.4rem 0 .2rem}.re-key span{padding:0 .35em;white-space:nowrap}
.rope-engines .rp-said{min-height:1.4em;margin:.2rem 0}.rope-engines .re-word{min-height:2.8em;margin:0}
.rope-engines :is(textarea,.re-write,.re-three button){border:1px solid;border-radius:.5rem;padding:.2rem .8rem;
background:transparent;color:inherit;font:inherit}
.rope-engines textarea{width:100%;box-sizing:border-box}
.rope-engines :is(.re-write,.re-three button){min-height:2.2em;cursor:pointer}
.re-three{display:grid;gap:.4rem}.rope-engines .re-three button{text-align:left}
.rope-engines :is(textarea,.re-write,.re-three button):focus-visible{outline:3px solid var(--rb-k);outline-offset:2px}
.rope-engines details{margin:.6rem 0}
.rope-engines:has(.re-game[open]) :is(.rp-views>div,.rp-said,.re-word,.re-key){visibility:hidden}
@media print{.rope-engines details{display:none}}
@media (max-width:600px){.rope-engines .rp-views{grid-template-columns:1fr;gap:.1rem}
.rope-engines .rp-controls{position:static;padding:0}}
"""
KEY = (
    '<p class="re-key">Unlikely words, by what the published engine gives them: <span class="re-1">1 to 10 %</span> '
    '<span class="re-2">0.1 to 1 %</span> <span class="re-3">less</span>. '
    "A text that goes in circles it expects, too.</p>"
)


def stored() -> dict:
    """What the engines wrote, and how many bytes a page loads to let them write.

    `texts` has, for each sentence and each engine, words as [word, %, the likeliest word there, %]: the percentages are
    the right engine's.
    """
    return json.loads(pkgutil.get_data(lab.__name__, STORED))


class TwoEngines:
    """What the cell shows: two texts behind one sentence. Everything can be seen before a script runs."""

    def __repr__(self) -> str:
        return "<piece to play with: engines>"

    def _repr_html_(self) -> str:
        found = stored()
        data = {
            "steps": [[*SENTENCES], [*ENGINES][1:], [str(n + 1) for n in range(WORDS)]],
            "sentences": [*SENTENCES.values()],
            "engines": [*ENGINES],
            "settings": [*ENGINES.values()],
            "borders": BORDERS,
            "words": WORDS,
            "texts": found["texts"],
        }
        packed = html.escape(json.dumps(data, separators=(",", ":"), ensure_ascii=False), quote=False)
        packed = packed.replace("'", "&#39;")
        right, wrong = found["texts"][0][:2]
        given = html.escape(data["sentences"][0])
        views = (
            f'<div class="rp-views"><p class="re-given">{given}</p>'
            f'<div><p class="re-name">{data["engines"][0]}</p><p class="re-right">{words(right)}</p></div>'
            f'<div><p class="re-name re-mistake">{data["engines"][1]}</p>'
            f'<p class="re-wrong">{words(wrong, coloured=True)}</p></div></div>'
            f'<p class="rp-said">{summary(wrong)}</p><p class="rp-heard" aria-live="polite"></p>'
        )
        keys = 'data-lm-suppress-shortcuts="true"'
        slider = f'<input type="range" class="re-slider" min="1" max="{WORDS}" value="{WORDS}" {keys}>'
        controls = (
            '<div class="rp-controls">'
            + choices("sentence", [*SENTENCES], yours=True)
            + choices("broken", [*ENGINES][1:])
            + '<button type="button" class="re-play" hidden="hidden">Play</button>'
            f'<label><span>word</span>{slider}</label></div><p class="re-word"></p>{KEY}'
        )
        megabytes = round(sum(found["bytes"].values()) / 1e6)
        own = (
            f'<div class="re-own" hidden="hidden"><textarea class="re-field" rows="2" maxlength="400" {keys} '
            f'aria-label="How your own sentence begins">{given}</textarea><p>“Write” loads the engine and its weights, '
            f"{megabytes} MB, from the server of this page, and takes a gigabyte of memory. "
            "What you type stays here.</p>"
            '<button type="button" class="re-write">Write</button>'
            '<progress class="re-meter" max="1" hidden="hidden" aria-label="Progress"></progress>'
            '<p class="re-status" role="status"></p></div>'
        )
        game = (
            '<details class="re-game"><summary>A game: which of three engines is as published?</summary>'
            '<div class="re-three"></div><p class="re-answer" role="status"></p></details>'
        )
        return in_a_notebook(
            '<div class="rope-piece rope-engines rp" id="piece-engines" data-script="engines.js" '
            f"data-states='{packed}'><style>{PIECES}{STYLE}</style>{views}{controls}{own}{game}</div>",
            ALT,
            script="engines.js",
        )


def words(rows: list[list], *, coloured: bool = False) -> str:
    """Words, in the colours that say how likely they are; the space before a word has none."""
    shown = ""
    for text, p, *_ in rows:
        name = f' class="re-{sum(p < border for border in BORDERS)}"' if coloured else ""
        word = text.lstrip(" ") if text.strip() else text
        shown += text.removesuffix(word) + f"<span{name}>{html.escape(word)}</span>"
    return shown.replace("\n", "↵\u200b")


def summary(rows: list[list]) -> str:
    """What one sees in colours, in numbers."""
    same, rare = sum(text == best for text, _, best, _ in rows), sum(p < BORDERS[0] for _, p, *_ in rows)
    return f"The published engine would write {same} of these {len(rows)} words itself; {rare} it finds unlikely."


def choices(name: str, labels: list[str], *, yours: bool = False) -> str:
    """A row of buttons; the reader's own sentence is among them where engines can be had."""
    radio = f'<input type="radio" name="engines-{name}" data-lm-suppress-shortcuts="true"'
    buttons = [f"<label>{radio}{' checked' * (i == 0)}>{label}</label>" for i, label in enumerate(labels)]
    if yours:
        buttons.append(f'<label class="re-yours" hidden="hidden">{radio}>your own</label>')
    return f'<fieldset aria-label="{name}"><span aria-hidden="true">{name}</span>{"".join(buttons)}</fieldset>'


def explore_engines() -> TwoEngines:
    """Chapter 12: what does a model write when its rotation is wrong?"""
    return TwoEngines()
