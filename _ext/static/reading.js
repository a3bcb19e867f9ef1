// What depends on the machine and its screen. When MathJax has typeset the page: equations that are too wide break where
// they may, areas that scroll can be reached by keyboard and fade out where there is more.
(() => {
  "use strict";
  const AREAS = "article :is(pre, .rb-drawing, .output, .math, .pst-scrollable-table-container, .rope-piece > div)";
  const GAP = /\\q?quad$/;
  const RELATIONS = /^\\(?:approx|leq?|geq?|neq?|equiv|to|longrightarrow|ll|gg|sim|iff|Rightarrow)$/;

  // MathJax in turns of a twentieth of a second, so that one can scroll and click meanwhile.
  async function typesetInTurns() {
    const formulas = [...document.querySelectorAll(".math")];
    while (formulas.length) {
      await MathJax.typesetPromise(formulas.splice(0, 20));
      await new Promise((next) => setTimeout(next));
    }
  }
  if (window.MathJax) MathJax.startup = { pageReady: typesetInTurns };

  // A formula in parts. It may break at a gap, else at a relation or a sum; never inside a bracket or a fraction.
  function parts(tex, onlyGaps) {
    const tokens = tex.match(/\\[a-zA-Z]+|\\.|[^]/g);
    const made = [""];
    let depth = 0;
    let last = "";
    for (const token of tokens) {
      if (/^(?:[{([]|\\\{|\\begin|\\left|\\langle|\\lfloor)$/.test(token)) depth++;
      if (/^(?:[})\]]|\\\}|\\end|\\right|\\rangle|\\rfloor)$/.test(token)) depth--;
      const relation = token === "=" || token === "<" || token === ">" || RELATIONS.test(token);
      const sum = (token === "+" || token === "-") && last && !"=<>([{,".includes(last) && !RELATIONS.test(last);
      const free = !onlyGaps && depth === 0 && made.at(-1).trim() && !/[\^_]$/.test(last);
      if (depth === 0 && GAP.test(token)) made.push(made.pop() + token, "");
      else if (free && (relation || sum)) made.push(`{}${token}`);
      else made[made.length - 1] += token;
      if (token.trim() && !/^\\[,;:!]$/.test(token)) last = token;
    }
    return depth === 0 ? made.filter((part) => part.trim()) : [tex];
  }

  async function breakEquations(onlyGaps) {
    const box = ({ typesetRoot }) => typesetRoot?.closest("article .math");
    const wide = [...(MathJax.startup.document?.math ?? [])].filter((one) => box(one) && isWide(box(one)));
    const fresh = [];
    for (const one of wide) {
      const pieces = parts(one.math, onlyGaps);
      if (pieces.length < 2) continue;
      const old = box(one);
      const made = pieces.map((piece) => {
        const part = document.createElement(one.display ? "div" : "span");
        const tex = piece.replace(GAP, "");
        part.className = `${old.className} ${tex === piece ? "" : "rb-gap"}`;
        part.textContent = one.display ? `\\[\\displaystyle ${tex}\\]` : `\\(${tex}\\)`;
        return part;
      });
      MathJax.typesetClear([old]);
      const around = old.parentElement;
      if (around.matches(".rb-together")) {
        around.before(...(old.previousSibling ? [old.previousSibling] : []), ...made.slice(0, -1));
        old.replaceWith(made.at(-1)); // with the full stop behind it
      } else if (!one.display || around.matches(".rb-equation")) old.replaceWith(...made);
      else {
        const row = document.createElement("div");
        row.className = "rb-equation";
        row.append(...made);
        old.replaceWith(row);
      }
      fresh.push(...made);
    }
    if (fresh.length) await MathJax.typesetPromise(fresh);
  }

  // A letter may lean out of its formula by some pixels; that is not wide.
  const drawn = (area) => area.querySelector("svg")?.getBoundingClientRect().width ?? 0;
  const isWide = (area) => (area.matches("span.math") ? drawn(area) : area.scrollWidth) > area.clientWidth + 1;

  function fade(area) {
    area.classList.toggle("rb-more-left", area.scrollLeft > 1);
    area.classList.toggle("rb-more-right", area.scrollLeft + area.clientWidth < area.scrollWidth - 1);
  }

  function look() {
    const areas = [...document.querySelectorAll(AREAS)].filter((area) => area.clientWidth);
    const wide = areas.map((area) => isWide(area));
    areas.forEach((area, i) => {
      if (wide[i]) {
        area.tabIndex = 0;
        area.addEventListener("scroll", () => fade(area), { passive: true });
        fade(area);
      } else if (area.tabIndex === 0) {
        area.removeAttribute("tabindex");
        area.classList.remove("rb-more-left", "rb-more-right");
      }
    });
  }

  let asked = 0;
  const lookSoon = () => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(look);
  };

  addEventListener("load", async () => {
    // The words on this button are its name: a label in other words is not what one sees.
    for (const button of document.querySelectorAll(".search-button-field")) button.removeAttribute("aria-label");
    await window.MathJax?.startup?.promise;
    if (window.MathJax?.startup) {
      await breakEquations(true);
      await breakEquations(false);
    }
    look();
    new ResizeObserver(lookSoon).observe(document.body);
    document.addEventListener("toggle", lookSoon, true);
    document.documentElement.dataset.reading = "ready";
  });
})();
