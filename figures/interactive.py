"""Pieces to play with: a drawing, sliders, and one small script that all of them share.

All numbers are computed here, by the library; the script only looks them up. A piece shows its first state before any
script runs, and needs nothing from outside.
"""

import html
import json
from dataclasses import dataclass

SCRIPT = """
(() => {
  const piece = document.getElementById("piece-NAME");
  const {steps, states} = JSON.parse(piece.dataset.states);
  const sliders = [...piece.querySelectorAll("input")];
  const show = () => {
    const parts = states[sliders.map(slider => slider.value).join()];
    for (const [part, changes] of Object.entries(parts)) {
      const node = piece.querySelector(`[data-part="${part}"]`);
      for (const [name, value] of Object.entries(changes))
        name === "text" ? node.textContent = value : node.setAttribute(name, value);
    }
    sliders.forEach((slider, index) => {
      const step = steps[index][slider.value];
      slider.setAttribute("aria-valuetext", step);
      slider.nextElementSibling.textContent = step;
    });
  };
  sliders.forEach(slider => slider.addEventListener("input", show));
  const places = [...piece.querySelectorAll("[data-place]")];
  let held = -1;
  places.forEach((place, index) => place.addEventListener("pointerdown", () => held = index));
  window.addEventListener("pointerup", () => held = -1);
  piece.addEventListener("pointermove", event => {
    const below = document.elementFromPoint(event.clientX, event.clientY);
    const over = places.indexOf(below && below.closest("[data-place]"));
    if (held < 0 || over < 0 || over === held) return;
    const order = steps[0][sliders[0].value].split(" ");
    order.splice(over, 0, ...order.splice(held, 1));
    sliders[0].value = steps[0].indexOf(order.join(" "));
    held = over;
    show();
  });
})();
"""
STYLE = (
    ".rope-piece{max-width:640px;font:13px sans-serif}.rope-piece>div{overflow-x:auto}"
    ".rope-piece svg{width:100%;min-width:480px;height:auto}.rope-piece text{fill:currentColor;font:13px sans-serif}"
    ".rope-piece label{display:flex;flex-wrap:wrap;gap:0 .7em;padding:.2em 0}.rope-piece label span{flex:0 0 9em}"
    ".rope-piece [data-place]{cursor:grab;touch-action:none;user-select:none}"
    ".rope-piece input{flex:1 1 9em}.rope-piece output{flex:0 0 auto;min-width:6em}"
)
State = dict[str, dict[str, object]]  # part -> attribute -> value; the attribute "text" is what the part contains


@dataclass(frozen=True, repr=False)
class Piece:
    """What a cell shows.

    Args:
        name: unique on a page.
        alt: what the first state shows, in words.
        svg: the inside of the drawing; a part is an element with data-part="name" and no attribute that changes.
            Elements with data-place, one for each word in a step's name, can be dragged to each other's places; that
            moves the first slider.
        sliders: for each its label, the names of its steps, and the step at the start.
        states: for each combination of steps, the parts and their attributes.
        size: width and height of the drawing, in its own units.
    """

    name: str
    alt: str
    svg: str
    sliders: tuple[tuple[str, tuple[str, ...], int], ...]
    states: dict[tuple[int, ...], State]
    size: tuple[int, int] = (640, 300)

    def __repr__(self) -> str:
        return f"<piece to play with: {self.name}>"

    def _repr_html_(self) -> str:
        svg = self.svg
        for part, changes in self.states[tuple(start for *_, start in self.sliders)].items():
            changes = dict(changes)
            text = html.escape(str(changes.pop("text", "")))
            attributes = "".join(f' {name}="{html.escape(str(value))}"' for name, value in changes.items())
            svg = svg.replace(f'data-part="{part}">', f'data-part="{part}"{attributes}>{text}')
        controls = "".join(  # without data-lm-suppress-shortcuts JupyterLab takes the arrow keys for itself
            f'<label><span>{label}</span><input type="range" min="0" max="{len(steps) - 1}" value="{start}" '
            f'aria-valuetext="{steps[start]}" data-lm-suppress-shortcuts="true"><output>{steps[start]}</output></label>'
            for label, steps, start in self.sliders
        )
        data = {
            "steps": [steps for _, steps, _ in self.sliders],
            "states": {",".join(map(str, key)): state for key, state in self.states.items()},
        }
        packed = html.escape(json.dumps(data, separators=(",", ":"), ensure_ascii=False))
        view = f'viewBox="0 0 {self.size[0]} {self.size[1]}" role="img" aria-label="{html.escape(self.alt)}"'
        return (
            f'<div class="rope-piece" id="piece-{self.name}" data-states="{packed}"><style>{STYLE}</style>'
            f"<div><svg {view}>{svg}</svg></div>{controls}<script>{SCRIPT.replace('NAME', self.name)}</script></div>"
        )


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
