// Areas that scroll can be reached by keyboard and fade out where there is more, a printed page is light, and what one
// copies of a formula is its TeX.
(() => {
  "use strict";
  function look(area) {
    const [left, right] = [area.scrollLeft > 1, area.scrollLeft + area.clientWidth < area.scrollWidth - 1];
    area.classList.toggle("rb-more-left", left);
    area.classList.toggle("rb-more-right", right);
    if (left || right) area.tabIndex = 0;
    else if (area.tabIndex === 0) area.removeAttribute("tabindex");
  }

  // The theme would look at all of them at once, and a phone lay out the whole page: it finds none.
  const all = document.querySelectorAll;
  document.querySelectorAll = (asked) => all.call(document, asked.startsWith("pre, .nboutput") ? ":not(*)" : asked);

  // Only what comes near the screen is measured, and again when its size changes.
  const sizes = new ResizeObserver((changes) => changes.forEach(({ target }) => look(target)));
  const near = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) sizes[isIntersecting ? "observe" : "unobserve"](target);
  }, { rootMargin: "25%" });
  const areas = document.querySelectorAll(
    "main :is(pre, .output, div.math, .pst-scrollable-table-container, .rope-piece > div)");
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

  // A link to an anchor needs the real heights of all sections above it.
  const { classList, dataset: page } = document.documentElement;
  const target = ({ hash }) => document.getElementById(decodeURIComponent(hash.slice(1)));
  function arrive() {
    if (!target(location)) return;
    classList.add("rb-laid-out");
    target(location).scrollIntoView();
  }
  arrive();
  addEventListener("hashchange", arrive);

  // A reload, also of a phone that had put the page away, comes back to the section in the middle of the screen: how
  // far down that is changes.
  const name = `place ${location.pathname}`;
  let stored = {};
  try { stored = sessionStorage; } catch {} // some readers forbid it
  const sections = [...document.querySelectorAll("article section")];
  addEventListener("visibilitychange", () => {
    const middle = document.elementsFromPoint(innerWidth / 2, innerHeight / 2);
    const at = sections.findLastIndex((one) => middle.includes(one));
    stored[name] = [at, sections[at]?.getBoundingClientRect().top];
  });
  const [at, top] = (stored[name] ?? "").split(",");
  const returns = performance.getEntriesByType("navigation")[0]?.type !== "navigate" && sections[at];
  history.scrollRestoration = returns ? "manual" : "auto";
  if (returns) {
    classList.add("rb-laid-out");
    scrollBy(0, returns.getBoundingClientRect().top - top);
  }

  // The contents show the last section that begins in the upper quarter, and scroll to it. The theme, a moment earlier,
  // looks at headings that come into sight, and so is wrong on the way up.
  const links = [...document.querySelectorAll(".page-toc a[href^='#']")];
  function show() {
    const here = links.findLast((link) => target(link)?.getBoundingClientRect().top < innerHeight / 4);
    for (const one of document.querySelectorAll(".page-toc :is(a, li)")) {
      one.classList.toggle("active", one.contains(here));
      one.ariaCurrent = one === here ? "true" : null;
    }
    if (!here) return;
    const list = here.closest(".bd-sidebar-secondary");
    const [at, of] = [here, list].map((one) => one.getBoundingClientRect());
    list.scrollTop += Math.min(0, at.top - of.top - 50) + Math.max(0, at.bottom - of.bottom + 20);
  }
  addEventListener("scroll", () => requestAnimationFrame(() => setTimeout(show, 50)), { passive: true });

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
