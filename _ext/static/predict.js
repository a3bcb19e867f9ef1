// Predict first: while the switch is on, the outputs of the marked cells are covered until one asks for them.
(() => {
  "use strict";
  const root = document.documentElement;
  const box = document.querySelector(".rb-predict input");
  const cells = [...document.querySelectorAll(".tag_predict")];
  const show = (cell) => cell?.classList.add("rb-shown");

  for (const cell of cells) {
    const output = cell.querySelector(".cell_output");
    const cover = Object.assign(document.createElement("button"), { type: "button", className: "rb-cover" });
    cover.append("What will come out? ", Object.assign(document.createElement("span"), { textContent: "Show" }));
    cover.onclick = () => {
      show(cell);
      output.tabIndex = -1;
      output.role = "group"; // with a name, so that it is announced, and then what is in it
      output.ariaLabel = "What came out";
      output.focus({ preventScroll: true });
    };
    output.prepend(cover);
  }

  function turn(on) {
    box.checked = on;
    root.classList.toggle("rb-predicting", on);
    for (const cell of cells) cell.classList.remove("rb-shown");
  }

  // A browser may forbid a page to remember; then the switch is for this page alone.
  function remembered() {
    try {
      return localStorage.predict === "on";
    } catch {
      return box.checked;
    }
  }

  box.onchange = () => {
    turn(box.checked);
    try {
      localStorage.predict = box.checked ? "on" : "off";
    } catch {}
  };

  // A link that leads into a covered output shows it.
  const showTarget = () => show(document.querySelector(":target")?.closest(".tag_predict"));

  turn(remembered());
  addEventListener("pageshow", () => {
    if (box.checked !== remembered()) turn(remembered()); // back from a page where it was changed
    showTarget();
  });
  addEventListener("hashchange", showTarget);
  addEventListener("click", ({ target }) => target.closest("a")?.hash === location.hash && showTarget());
})();
