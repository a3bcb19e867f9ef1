// A link in a sentence sets the piece of the page, which comes to the sentence if it is out of sight, and goes home when
// its home is seen.
(() => {
  "use strict";
  const homes = new Map();

  function bring(piece, link) {
    const cell = piece.closest(".cell"), { top, bottom } = cell.getBoundingClientRect();
    if (bottom < 0 || top > innerHeight) {
      const before = link.getBoundingClientRect().top;
      document.documentElement.classList.add("rb-laid-out"); // else heights above change while one looks
      if (!homes.has(cell)) homes.set(cell, homeOf(cell));
      const home = homes.get(cell);
      if (home.hidden) Object.assign(home, { hidden: false }).style.height = `${cell.offsetHeight}px`;
      let block = link;
      while (!block.parentElement.matches("section, details")) block = block.parentElement;
      block.after(cell);
      scrollBy(0, link.getBoundingClientRect().top - before); // the sentence stays where it was
    }
    piece.scrollIntoView({ block: "nearest" });
  }

  function homeOf(cell) {
    const home = Object.assign(document.createElement("div"), { hidden: true });
    cell.before(home);
    new IntersectionObserver(([{ isIntersecting }]) => {
      if (!isIntersecting) return;
      home.after(cell);
      home.hidden = true;
    }).observe(home);
    return home;
  }

  for (const link of document.querySelectorAll("a.rb-set"))
    link.addEventListener("click", (event) => {
      event.preventDefault();
      const piece = document.querySelector(link.hash);
      bring(piece, link);
      piece.dispatchEvent(new CustomEvent("set", { detail: link.dataset.set }));
    });
})();
