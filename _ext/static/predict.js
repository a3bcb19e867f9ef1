// Predict first: while the switch is on, the outputs of the marked cells are covered until one asks for them.
(() => {
  "use strict";
  const box = document.querySelector(".rb-predict input");
  const show = (node) => node?.closest(".tag_predict")?.classList.add("rb-shown");

  // On the root: for `:has(:checked)` each formula would have the style of all looked at again.
  function turn(on) {
    box.checked = on;
    document.documentElement.classList.toggle("rb-predicting", on);
    for (const cell of document.querySelectorAll(".rb-shown")) cell.classList.remove("rb-shown");
  }

  // Where a page may not remember, the switch is for it alone.
  let memory = {};
  try { memory = localStorage; } catch {}
  const remembered = () => memory.predict === "on";

  box.onchange = () => {
    turn(box.checked);
    memory.predict = box.checked ? "on" : "off";
  };

  for (const cover of document.querySelectorAll(".rb-cover"))
    cover.onclick = () => {
      show(cover);
      const output = cover.parentElement;
      const first = output.querySelector("math, pre, .rb-figure, img, table") ?? output; // read aloud, unlike what has a name
      if (first.tabIndex) first.tabIndex = -1; // 0 has what scrolls
      setTimeout(() => first.focus({ preventScroll: true }), 50); // at once it is not always read
    };

  // A link that leads into a covered output shows it.
  const showTarget = () => show(document.querySelector(":target"));

  turn(remembered());
  // Another page changed it: one that was left for this one, or one beside it.
  for (const event of ["pageshow", "storage"])
    addEventListener(event, () => box.checked !== remembered() && turn(remembered()));
  addEventListener("pageshow", showTarget);
  addEventListener("hashchange", showTarget);
  addEventListener("click", ({ target }) => target.closest("a")?.hash === location.hash && showTarget());
})();
