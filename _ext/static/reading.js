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

  // Only what comes near the screen is measured, and again when its size changes.
  const sizes = new ResizeObserver((changes) => changes.forEach(({ target }) => look(target)));
  const near = new IntersectionObserver((changes) => {
    for (const { target, isIntersecting } of changes) sizes[isIntersecting ? "observe" : "unobserve"](target);
  }, { rootMargin: "25%" });
  for (const area of document.querySelectorAll(AREAS)) {
    near.observe(area);
    area.onscroll = () => look(area);
  }

  // A link to an anchor needs the real heights of all sections above it, so everything is laid out first.
  const place = () => document.getElementById(decodeURIComponent(location.hash.slice(1)));
  function arrive() {
    if (!place()) return;
    document.documentElement.classList.add("rb-laid-out");
    place().scrollIntoView();
  }
  arrive();
  addEventListener("hashchange", arrive);

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
