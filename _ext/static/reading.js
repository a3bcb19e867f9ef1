// What depends on the machine and its screen. Formulas are typeset when the text stands: what is on the screen first,
// the rest in short turns while nothing else is to be done. Equations that are too wide break where they may; areas
// that scroll can be reached by keyboard and fade out where there is more.
(() => {
  "use strict";
  const AREAS = "main :is(pre, .rb-drawing, .output, .math, .pst-scrollable-table-container, .rope-piece > div)";
  const GAP = /\\q?quad$/;
  const RELATION = /^(?:[=<>]|\\(?:approx|leq?|geq?|neq?|equiv|to|longrightarrow|ll|gg|sim|iff|Rightarrow))$/;
  const TURN = 8; // milliseconds, four times as many on a phone: a longer turn would be felt when one scrolls or types

  // -- Formulas: each is set once, and copied where it stands again --------------------------------------------------

  const drawings = new Map(); // by what is written
  const typesetNodes = new Map(); // what is written in each, in TeX
  const written = (node) => typesetNodes.get(node) ?? node.textContent.trim();

  function drawing(node) {
    const text = written(node);
    if (!drawings.has(text)) drawings.set(text, MathJax.tex2svg(text.slice(2, -2), { display: text.startsWith("\\[") }));
    return drawings.get(text);
  }

  function place(nodes) {
    for (const node of nodes) {
      const drawn = drawing(node).cloneNode(true);
      typesetNodes.set(node, written(node));
      node.replaceChildren(drawn);
    }
  }

  // Where a browser does not hold the text while what is above it changes its height, this does.
  const holds = CSS.supports("overflow-anchor", "auto");
  function hold(change) {
    let eye = null;
    for (let y = 72; !holds && scrollY && !eye && y < innerHeight; y += 24)
      eye = document.elementFromPoint(innerWidth / 2, y)?.closest("article :is(p, li, td, pre, h2, h3)");
    const before = eye?.getBoundingClientRect().top;
    const result = change();
    if (eye) scrollBy({ top: eye.getBoundingClientRect().top - before, behavior: "instant" });
    return result;
  }

  // -- Turns ---------------------------------------------------------------------------------------------------------

  const idle = () =>
    new Promise((next) => (window.requestIdleCallback ? requestIdleCallback(next, { timeout: 500 }) : setTimeout(next, 1)));

  // When what was changed has its place and its size; and how long that took. (Behind another tab nothing is painted.)
  async function painted() {
    const took = await new Promise((next) => {
      const late = setTimeout(next, 200, 0);
      requestAnimationFrame(() => {
        clearTimeout(late);
        const begin = performance.now();
        setTimeout(() => next(performance.now() - begin));
      });
    });
    await idle();
    return took;
  }

  // Does a piece of work for each of some things, in turns. More of them may come meanwhile.
  async function inTurns(things, work) {
    while (things.length) {
      await idle();
      const end = performance.now() + TURN;
      do work(things.shift());
      while (things.length && performance.now() < end);
    }
  }

  // Those near the screen, wherever one has scrolled to, and then the others: so many at once that to paint the page
  // anew takes no longer than a turn.
  async function typesetAll() {
    MathJax.startup.document.updateDocument(); // its style, and the place for the outlines of letters
    const waiting = new Set(document.querySelectorAll(".math"));
    const near = new Set();
    const seen = new IntersectionObserver(
      (changes) => changes.forEach(({ target, isIntersecting }) => near[isIntersecting ? "add" : "delete"](target)),
      { rootMargin: "25% 0px" },
    );
    waiting.forEach((node) => seen.observe(node));
    addEventListener("beforeprint", () => {
      place(waiting);
      waiting.clear();
    });
    await painted();
    let size = 16;
    while (waiting.size) {
      const close = [...near].filter((node) => waiting.has(node));
      const group = close.length ? close : [...waiting].slice(0, size);
      await inTurns([...group], drawing);
      await idle();
      hold(() => place(group.filter((node) => waiting.has(node)))); // else set by a print meanwhile
      for (const node of group) {
        waiting.delete(node);
        near.delete(node);
        seen.unobserve(node);
      }
      const took = await painted();
      if (!close.length) size = Math.min(48, Math.max(4, Math.round((size * TURN) / Math.max(took, 1))));
      await breakEquations(group);
    }
  }

  // -- Equations that are too wide -----------------------------------------------------------------------------------

  // A formula in parts. It may break at a gap, else at a relation or a sum; never inside a bracket or a fraction.
  function parts(tex, onlyGaps) {
    const tokens = tex.match(/\\[a-zA-Z]+|\\.|[^]/g);
    const made = [""];
    let depth = 0;
    let last = "";
    for (const token of tokens) {
      if (/^(?:[{([]|\\\{|\\begin|\\left|\\langle|\\lfloor)$/.test(token)) depth++;
      if (/^(?:[})\]]|\\\}|\\end|\\right|\\rangle|\\rfloor)$/.test(token)) depth--;
      const sum = /^[+-]$/.test(token) && last && !"([{,".includes(last) && !RELATION.test(last);
      const free = !onlyGaps && depth === 0 && made.at(-1).trim() && !/[\^_]$|displaystyle$/.test(last);
      if (depth === 0 && GAP.test(token)) made.push(made.pop() + token, "");
      else if (free && (sum || RELATION.test(token))) made.push(`{}${token}`);
      else made[made.length - 1] += token;
      if (token.trim() && !/^\\[,;:!]$/.test(token)) last = token;
    }
    return depth === 0 ? made.filter((part) => part.trim()) : [tex];
  }

  async function breakEquations(nodes) {
    const wide = nodes.filter((node) => node.closest("article") && isWide(node));
    const halves = hold(() => wide.flatMap((node) => breakAt(node, true)));
    if (!halves.length) return;
    await painted();
    hold(() => halves.filter(isWide).forEach((node) => breakAt(node, false)));
  }

  // The parts that now stand in the place of a formula; itself, where it has no place to break.
  function breakAt(old, onlyGaps) {
    const text = written(old);
    const display = text.startsWith("\\[");
    const pieces = parts(text.slice(2, -2), onlyGaps);
    if (pieces.length < 2) return [old];
    const made = pieces.map((piece, i) => {
      const part = document.createElement(display ? "div" : "span");
      const tex = piece.replace(GAP, "");
      part.className = old.className;
      part.classList.toggle("rb-gap", tex !== piece || (old.matches(".rb-gap") && i === pieces.length - 1));
      part.classList.toggle("rb-row", i === 0 && Boolean(old.previousElementSibling?.matches(".rb-gap")));
      part.textContent = display ? `\\[\\displaystyle ${tex}\\]` : `\\(${tex}\\)`;
      return part;
    });
    place(made);
    const around = old.parentElement;
    if (around.matches(".rb-together")) {
      around.before(...(old.previousSibling ? [old.previousSibling] : []), ...made.slice(0, -1));
      old.replaceWith(made.at(-1)); // with the full stop behind it
    } else if (!display || around.matches(".rb-equation")) old.replaceWith(...made);
    else {
      const row = document.createElement("div");
      row.className = "rb-equation";
      row.append(...made);
      old.replaceWith(row);
    }
    return made;
  }

  // A letter may lean out of its formula by some pixels; that is not wide.
  const drawn = (area) => area.querySelector("svg")?.getBoundingClientRect().width ?? 0;
  const isWide = (area) => (area.matches("span.math") ? drawn(area) : area.scrollWidth) > area.clientWidth + 1;

  // -- Areas that scroll ---------------------------------------------------------------------------------------------

  const fade = (area, [left, right]) => {
    area.classList.toggle("rb-more-left", left);
    area.classList.toggle("rb-more-right", right);
  };
  const more = (area) => [area.scrollLeft > 1, area.scrollLeft + area.clientWidth < area.scrollWidth - 1];

  // All is read before anything is changed: else the page would be laid out for each area.
  function look() {
    const areas = [...document.querySelectorAll(AREAS)].filter((area) => area.clientWidth);
    const found = areas.map((area) => isWide(area) && more(area));
    areas.forEach((area, i) => {
      if (found[i]) {
        area.tabIndex = 0;
        area.onscroll = () => fade(area, more(area));
      } else if (area.tabIndex === 0) area.removeAttribute("tabindex");
      fade(area, found[i] || [false, false]);
    });
  }

  let asked = 0;
  const lookSoon = () => {
    cancelAnimationFrame(asked);
    asked = requestAnimationFrame(look);
  };

  // -- When ----------------------------------------------------------------------------------------------------------

  // The file that typesets is the largest by far: it is asked for when the text is on the screen. It may not come.
  function bringMathJax(src) {
    const promise = new Promise((done) => {
      const script = Object.assign(document.createElement("script"), { src, onerror: () => done() });
      MathJax.startup = { pageReady: () => typesetAll().then(done) };
      painted().then(() => document.head.append(script));
    });
    MathJax.startup.promise = promise;
    return promise;
  }

  // A page with formulas has settings for MathJax.
  const ready = window.MathJax && bringMathJax(new URL("tex-svg.js", document.currentScript.src));

  addEventListener("load", async () => {
    await painted();
    look();
    await ready;
    await painted();
    look();
    new ResizeObserver(lookSoon).observe(document.body);
    document.addEventListener("toggle", ({ target }) => {
      const shown = [...target.querySelectorAll(".math")].filter((node) => typesetNodes.has(node) && node.clientWidth);
      breakEquations(shown).then(lookSoon);
    }, true);
    document.documentElement.dataset.reading = "ready";
  });
})();
