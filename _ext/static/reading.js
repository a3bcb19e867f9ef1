// What depends on the screen or the paper: areas that scroll can be reached by keyboard and fade out where there is more,
// a printed page is light. And what one copies of a formula is its TeX.
(() => {
  "use strict";
  const AREAS = "main :is(pre, .output, div.math, .pst-scrollable-table-container, .rope-piece > div)";

  function look(area) {
    const [left, right] = [area.scrollLeft > 1, area.scrollLeft + area.clientWidth < area.scrollWidth - 1];
    area.classList.toggle("rb-more-left", left);
    area.classList.toggle("rb-more-right", right);
    if (left || right) area.tabIndex = 0;
    else if (area.tabIndex === 0) area.removeAttribute("tabindex");
  }

  // The theme looks at all of them at once, which lays out the whole page while a phone waits: a quarter of a second. It
  // finds none of them here.
  const all = document.querySelectorAll;
  document.querySelectorAll = (asked) => all.call(document, asked.startsWith("pre, .nboutput") ? ":not(*)" : asked);

  // Only what comes near the screen is measured, and again when its size changes.
  const sizes = new ResizeObserver((changes) => changes.forEach(({ target }) => look(target)));
  const near = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) sizes[isIntersecting ? "observe" : "unobserve"](target);
  }, { rootMargin: "25%" });
  const areas = [...document.querySelectorAll(AREAS)];
  for (const area of areas) {
    near.observe(area);
    area.onscroll = () => look(area);
  }
  const byKeyboard = ({ key }) => {
    if (key !== "Tab") return;
    removeEventListener("keydown", byKeyboard);
    areas.forEach(look); // who comes by keyboard may jump past what is near
  };
  addEventListener("keydown", byKeyboard);

  // A link to an anchor needs the real heights of all sections above it, so everything is laid out first.
  const place = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));
  function arrive() {
    if (!place()) return;
    document.documentElement.classList.add("rb-laid-out");
    place().scrollIntoView();
  }
  arrive();
  addEventListener("hashchange", arrive);

  // A reload comes back to the section in the middle of the screen, and so does a phone that had put the page away: how
  // far down that is changes with the sections that are laid out.
  const name = `place ${location.pathname}`;
  let stored = {};
  try { stored = sessionStorage; } catch {} // some readers forbid it
  const sections = [...document.querySelectorAll("article section")];
  addEventListener("visibilitychange", () => {
    const middle = document.elementsFromPoint(innerWidth / 2, innerHeight / 2);
    const at = sections.findLastIndex((one) => middle.includes(one));
    stored[name] = at < 0 ? "" : [at, sections[at].getBoundingClientRect().top];
  });
  const [at, top] = (stored[name] ?? "").split(",");
  const returns = performance.getEntriesByType("navigation")[0]?.type !== "navigate" && sections[at];
  history.scrollRestoration = returns ? "manual" : "auto";
  if (returns) {
    document.documentElement.classList.add("rb-laid-out");
    scrollBy(0, returns.getBoundingClientRect().top - top);
  }

  // The contents show the last section that begins in the upper quarter. The theme looks at headings that come into
  // sight, and so is wrong on the way up; a moment later it has done its work of a frame.
  const links = [...document.querySelectorAll(".page-toc a[href^='#']")];
  const headings = links.map(({ hash }) => document.getElementById(decodeURIComponent(hash.slice(1))));
  function show() {
    const here = links[headings.findLastIndex((one) => one?.getBoundingClientRect().top < innerHeight / 4)];
    for (const one of document.querySelectorAll(".page-toc :is(a, li)"))
      one.classList.toggle("active", one === here || (one.matches("li") && one.contains(here ?? null)));
    for (const link of links) link.ariaCurrent = link === here ? "true" : null;
  }
  if (links.length) addEventListener("scroll", () => requestAnimationFrame(() => setTimeout(show, 50)), { passive: true });

  // On paper the page is light.
  const page = document.documentElement.dataset;
  addEventListener("beforeprint", () => { [page.screen, page.theme] = [page.theme, "light"]; });
  addEventListener("afterprint", () => { page.theme = page.screen; });

  addEventListener("copy", (event) => {
    const selection = getSelection();
    if (!selection.rangeCount || event.target.closest?.("input, textarea")) return;
    const copied = selection.getRangeAt(0).cloneContents();
    const formulas = copied.querySelectorAll("[data-tex]");
    if (!formulas.length) return;
    for (const one of formulas) {
      const sign = one.matches("div") ? "$$" : "$";
      one.replaceChildren(`${sign}${one.dataset.tex}${sign}`);
    }
    const box = Object.assign(document.createElement("div"), { className: "visually-hidden" });
    box.append(copied);
    document.body.append(box); // what is laid out has its lines
    event.clipboardData.setData("text/plain", box.innerText);
    box.remove();
    event.preventDefault();
  });
})();
