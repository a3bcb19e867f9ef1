// Each piece of the page that is not set up yet.
for (const piece of document.querySelectorAll(".rope-piece:not([data-live], [data-script])")) {
  const name = piece.id.replace("piece-", "");
  piece.dataset.live = "";
  if (piece.previousElementSibling?.matches(".rp-rest")) piece.previousElementSibling.remove();
  piece.hidden = false;
  const {steps, tables} = JSON.parse(piece.dataset.states);
  const controls = [...piece.querySelectorAll("input[type=range],fieldset")];
  const [drawing, heard, button] = ["svg", "[aria-live]", "button"].map(name => piece.querySelector(name));
  const said = heard.previousElementSibling;
  const nodes = Object.fromEntries([...piece.querySelectorAll("[data-part]")].map(node => [node.dataset.part, node]));
  const at = control => control.elements ? [...control.elements].findIndex(one => one.checked) : +control.value;
  const chain = text => {
    let d = "M0 0";
    for (let i = 0; i < text.length; i += 2) {
      const [x, y] = [0, 1].map(j => text.charCodeAt(i + j) - 94);
      d += `l${8 * x} ${8 * y}l${-2 * x - y} ${x - 2 * y}l${2 * x + y} ${2 * y - x}`;
      d += `l${y - 2 * x} ${-x - 2 * y}l${2 * x - y} ${x + 2 * y}`;
    }
    return d;
  };
  const bars = text => `M0 0${text.replace(/./g, one => `V${94 - one.charCodeAt()}h1`)}V0Z`;
  let timer = 0, touched = false, grip = null;
  const tell = () => {
    if (timer || grip || !touched || heard.textContent === said.textContent) return;
    heard.textContent = said.textContent;
    said.setAttribute("aria-hidden", "true");
  };
  const show = () => {
    const now = controls.map(at);
    for (const [on, columns, rows] of tables) {
      const row = rows[on.reduce((place, i) => place * steps[i].length + now[i], 0)];
      columns.forEach(([part, attribute], i) => {
        if (attribute === "text") nodes[part].textContent = row[i];
        else if (attribute === "chain") nodes[part].setAttribute("d", chain(row[i]));
        else if (attribute === "bars") nodes[part].setAttribute("d", bars(row[i]));
        else nodes[part].setAttribute(attribute, row[i]);
      });
    }
    controls.forEach((control, i) => {
      if (control.elements) return;
      control.setAttribute("aria-valuetext", steps[i][now[i]]);
      control.nextElementSibling.textContent = steps[i][now[i]];
    });
    const alone = document.querySelector(`a[href*="/${name}.html"]`);  // in full screen it goes on from here
    if (alone) alone.hash = now;
    tell();
  };
  piece.addEventListener("focusin", () => touched = true);
  controls.forEach(control => control.addEventListener("input", show));
  if (button) {
    const {slider, pace, auto} = button.dataset, moving = controls[slider];
    const stop = () => {
      clearInterval(timer);
      timer = 0;
      button.textContent = "Play";
      tell();
    };
    const go = to => {
      moving.value = to;
      show();
    };
    const play = () => {
      button.textContent = "Pause";
      heard.textContent = "";
      said.removeAttribute("aria-hidden");
      timer = setInterval(() => {
        go(+moving.value + 1);
        if (moving.value === moving.max) stop();
      }, pace);
      if (moving.value === moving.max) go(0);
    };
    button.hidden = false;
    button.addEventListener("click", () => timer ? stop() : play());
    moving.addEventListener("input", event => event.isTrusted && stop());
    if (auto && !matchMedia("(prefers-reduced-motion: reduce)").matches)
      new IntersectionObserver((seen, watcher) => {
        if (!seen[0].isIntersecting) return;
        watcher.disconnect();
        if (!timer && document.activeElement !== moving) play();
      }, {threshold: 0.6}).observe(piece);
  }
  // A grip follows the pointer: its slider goes to the nearest of some steps around, as long as that brings it nearer.
  for (const one of piece.querySelectorAll("[data-grip]")) {
    one.addEventListener("touchstart", event => event.preventDefault());  // else a finger scrolls the page
    one.addEventListener("pointerdown", event => {
      event.preventDefault();
      [grip, touched] = [one, true];
      piece.classList.add("rp-held");
      if (timer) button.click();
    });
  }
  piece.addEventListener("pointermove", ({clientX, clientY}) => {
    if (!grip) return;
    const slider = controls[grip.dataset.grip];
    const far = to => {
      slider.value = to;
      show();
      const {left, top, width, height} = grip.getBoundingClientRect();
      return Math.hypot(left + width / 2 - clientX, top + height / 2 - clientY);
    };
    let at = +slider.value, from = -1;
    while (from !== at) {
      from = at;
      const near = [...Array(9).keys()].map(i => from + i - 4).filter(to => to >= 0 && to <= slider.max);
      [, at] = near.map(to => [far(to), to]).reduce((best, one) => one[0] < best[0] ? one : best, [far(from), from]);
    }
    far(at);
  });
  for (const end of ["pointerup", "pointercancel"])
    window.addEventListener(end, () => {
      if (!grip) return;
      grip = null;
      piece.classList.remove("rp-held");
      tell();
    });
  let held = "";
  for (const word of piece.querySelectorAll("[data-word]"))
    word.addEventListener("pointerdown", () => held = word.dataset.word);
  window.addEventListener("pointerup", () => held = "");
  piece.addEventListener("pointermove", event => {
    if (!held) return;
    const order = steps[0][controls[0].value].split(" "), box = drawing.getBoundingClientRect();
    const over = Math.floor((event.clientX - box.left) / box.width * order.length);
    if (over < 0 || over >= order.length || order[over] === held) return;
    order.splice(over, 0, ...order.splice(order.indexOf(held), 1));
    controls[0].value = steps[0].indexOf(order.join(" "));
    show();
  });
  const set = places => {
    places.split(",").forEach((to, i) => {
      if (to === "") return;  // this one stays
      if (controls[i].elements) controls[i].elements[to].checked = true;
      else controls[i].value = to;
    });
    show();
  };
  piece.addEventListener("set", ({detail}) => {  // by a link in a sentence
    touched = true;
    if (timer) button.click();
    set(detail);
  });
  piece.addEventListener("click", ({target}) => {
    if (target.dataset.set) set(target.dataset.set);
  });
  if (location.hash && location.pathname.endsWith(`/${name}.html`)) set(location.hash.slice(1));
}
