// Proofs that run in the page. Nothing is loaded before the first "Try it", and what is typed stays in the page.
(() => {
  "use strict";
  const address = document.currentScript.src;
  const blocks = [...document.querySelectorAll("div.cell div.cell_input pre")];
  const texts = blocks.map((block) => block.textContent.trimEnd()); // on which the cells further down build
  const waiting = new Map(); // the cells that are to run or running, by number
  let python = null;

  const element = (tag, settings, ...children) => {
    const made = Object.assign(document.createElement(tag), settings);
    made.append(...children);
    return made;
  };

  function start() {
    if (python) return;
    const worker = python = new Worker(new URL("live_worker.js", address), { type: "module" });
    const lost = (words) => worker === python && end(words);
    let why = "the browser does not say why; it may be too old for it, or a file may be missing";
    document.addEventListener("securitypolicyviolation", ({ blockedURI, effectiveDirective }) => {
      if (/live_worker/.test(blockedURI)) why = `the content security policy of this page refuses its script: see ${effectiveDirective}`;
    });
    // The browser tells of its policy a moment after the failure.
    python.onerror = ({ message }) => setTimeout(() => lost(`Python did not start: ${message || why}.`), 50);
    python.onmessage = ({ data }) => {
      if (data.failed) lost(`Python ended: ${data.failed}.`);
      else if ("cell" in data) waiting.get(data.cell)?.finish(data);
      else for (const cell of waiting.size ? [next()] : Cell.open) cell.progress(data);
    };
  }

  const next = () => waiting.values().next().value;

  function end(words) {
    python.terminate();
    python = null;
    for (const cell of waiting.size ? waiting.values() : Cell.open) cell.ended(words);
    waiting.clear();
  }

  class Cell {
    static open = new Set();

    constructor(bar) {
      this.bar = bar;
      this.tryIt = bar.querySelector(".rb-try");
      this.breakIt = bar.querySelector("button:not(.rb-try)");
      this.input = bar.parentElement;
      this.number = blocks.indexOf(this.input.querySelector("pre"));
      this.coloured = blocks[this.number].innerHTML.split("\n");
      this.stored = bar.closest("div.cell").querySelector(".cell_output");
      this.text = texts[this.number];
      // What is seen has parts, which would be read one by one and once more; what is heard is one text.
      this.status = element("p", { className: "rb-status", ariaHidden: "true" });
      this.heard = element("p", { className: "visually-hidden", ariaLive: "polite" });
      // The focus comes when the editor is there: else Orca reads all of the code, and no name.
      this.tryIt.onclick = () => this.show() && setTimeout(() => this.code.focus(), 50);
      if (this.breakIt) this.breakIt.onclick = () => this.change();
      this.code = element("textarea", { className: "rb-code", value: this.text, wrap: "off", spellcheck: false,
        autocapitalize: "off", ariaLabel: "Python code of this cell. Control and Enter run it." });
      // Its text is not seen: below it lies the same one in colours.
      this.colours = element("pre", { className: "rb-colours highlight", ariaHidden: "true" });
      this.editor = element("div", { className: "rb-editor" }, this.colours, this.code);
      this.code.oninput = () => this.paint();
      this.code.onscroll = () => Object.assign(this.colours, { scrollLeft: this.code.scrollLeft, scrollTop: this.code.scrollTop });
      this.paint();
      this.code.setSelectionRange(0, 0);
      this.code.onkeydown = (event) => {
        if (event.key !== "Enter" || !(event.ctrlKey || event.metaKey || event.shiftKey)) return;
        event.preventDefault();
        this.run();
      };
      const button = (textContent, onclick) => element("button", { type: "button", textContent, onclick });
      this.runs = button("Run", () => (waiting.has(this.number) ? this.stop() : this.run()));
      this.reset = button("Reset", () => this.restore());
      this.close = button("Close", () => this.leave());
      this.meter = element("progress", { max: 1, hidden: true, ariaLabel: "Progress" });
    }

    // Open the editor; false where no Python can be had.
    show() {
      if (Cell.open.has(this)) return true;
      this.bar.append(this.status, this.heard);
      if (location.protocol === "file:") {
        const words = "A page from disk may not load Python. Run “make serve” or, in this folder, “python -m http.server”: " +
          "there you can edit and run this cell.";
        setTimeout(() => this.say(words), 50); // else not read aloud
        return false;
      }
      Cell.open.add(this);
      start();
      this.input.firstElementChild.hidden = true;
      this.bar.before(this.editor);
      this.tryIt.replaceWith(this.runs);
      this.status.before(this.reset, this.close);
      this.bar.append(this.meter);
      return true;
    }

    // A line of the book has the book's colours; in any other the part that differs is marked.
    paint() {
      const book = this.text.split("\n"), lines = this.code.value.split("\n");
      const one = (line, index) => {
        const known = book.indexOf(line);
        if (known >= 0) return element("span", { innerHTML: this.coloured[known] });
        const was = lines.length === book.length ? book[index] : "";
        let from = 0, to = 0;
        while (from < line.length && line[from] === was[from]) from++;
        while (to < Math.min(line.length, was.length) - from && line.at(-1 - to) === was.at(-1 - to)) to++;
        const end = line.length - to;
        return element("span", {}, line.slice(0, from), element("mark", { textContent: line.slice(from, end) }), line.slice(end));
      };
      this.code.rows = lines.length;
      this.colours.replaceChildren(...lines.flatMap((line, index) => [one(line, index), "\n"]));
    }

    say(...words) {
      this.status.replaceChildren(...words);
      this.heard.textContent = this.status.textContent.replaceAll(" - ", " − "); // a hyphen is not read
    }

    progress({ step, share, ready }) {
      this.meter.hidden = Boolean(ready) && !waiting.has(this.number);
      if (share === undefined) this.meter.removeAttribute("value");
      else this.meter.value = share;
      if (ready) this.say(waiting.size ? "Running." : "Python is ready.");
      else if (this.step !== step) this.say(`${step} (once for this page).`);
      this.step = step;
    }

    run() {
      if (waiting.has(this.number)) return;
      if (!python) start();
      waiting.set(this.number, this);
      this.runs.textContent = "Stop";
      this.reset.disabled = this.close.disabled = true;
      this.clear();
      this.meter.hidden = false;
      if (waiting.size === 1) this.begin();
      else this.say("Waits for another cell.");
    }

    begin() {
      this.say("Running.");
      python.postMessage({ cell: this.number, above: texts.slice(0, this.number), source: this.code.value });
    }

    // One that only waits is taken out; the one that runs can be stopped with Python alone.
    stop() {
      if (this === next()) return end("Stopped. The next run starts Python anew.");
      waiting.delete(this.number);
      this.ended("Stopped before it ran.");
    }

    // The prepared change, and a run.
    change() {
      if (!this.show() || waiting.has(this.number)) return;
      const { from, to } = this.bar.dataset;
      if (!this.code.value.includes(from)) this.code.value = this.text;
      const line = this.code.value.slice(0, this.code.value.indexOf(from)).split("\n").length;
      const column = this.code.value.split("\n")[line - 1].indexOf(from);
      this.code.value = this.code.value.replace(from, () => to);
      this.paint();
      const longest = Math.max(...this.code.value.split("\n").map((one) => one.length));
      this.code.scrollLeft = (this.code.scrollWidth * column) / longest - this.code.clientWidth / 2; // on a phone
      const [was, is] = [from, to].map((textContent) => element("code", { textContent }));
      this.changed = [`Changed in line ${line}: `, was, " is now ", is, ". "];
      this.run();
    }

    ended(words = "") {
      this.runs.textContent = "Run";
      this.reset.disabled = this.close.disabled = false;
      this.meter.hidden = true;
      this.changed = null;
      this.say(words);
    }

    finish({ error, code, words, printed, latex, text, seconds, claims, ...refuted }) {
      waiting.delete(this.number);
      next()?.begin();
      const changed = this.changed ?? [];
      this.ended();
      const time = `${seconds.toFixed(2)} s`;
      const shown = [printed, text].filter(Boolean).map((textContent) => element("pre", { textContent }));
      if (latex) shown.push(this.formula(latex));
      if (error) {
        const said = [...changed, element("strong", { textContent: `${error} ` }), `after ${time}. `];
        const known = changed.length && code?.includes(this.bar.dataset.to);
        if (code && !known) said.push(element("code", { textContent: code }), " ");
        if (words) said.push(element("span", { className: "rb-words", textContent: words }));
        this.say(...said);
        if (refuted.false) this.status.querySelector(".rb-words").replaceChildren(...this.counterExample(refuted));
      } else {
        texts[this.number] = this.code.value;
        this.say(...changed, `Ran in ${time}. ${claims ? "Every claim of the cell holds." : ""}`);
      }
      this.status.classList.toggle("rb-refused", Boolean(error));
      if (this.stored) this.stored.hidden = true;
      if (!shown.length) return;
      this.result = element("div", { className: "cell_output rb-result" }, ...shown);
      if (this.stored) this.stored.before(this.result);
      else this.input.after(this.result);
    }

    // What was heard in the words of the program is seen as formulas.
    counterExample({ false: claim, at, sides: [left, right] }) {
      const side = (name, value) => [` the ${name} side is `, element("strong", { textContent: value.replaceAll("-", "−").replace("*I", "i") })];
      return [this.formula(claim), "since at", this.formula(at), ...side("left", left), ",", ...side("right", right), "."];
    }

    // What sets it is loaded with the first; the book's own formulas came with the page.
    formula(tex) {
      const made = element("div", { className: "output text_latex math", textContent: tex });
      made.style.visibility = "hidden"; // until it is set
      made.dataset.tex = tex;
      Promise.all(["formulas.mjs", "live/temml.mjs"].map((name) => import(new URL(name, address))))
        .then(([{ mathml }, { default: temml }]) => (made.innerHTML = mathml(temml, tex, true)))
        .finally(() => (made.style.visibility = ""));
      return made;
    }

    // Away with what the last run showed.
    clear() {
      this.status.classList.remove("rb-refused");
      this.result?.remove();
    }

    restore() {
      this.code.value = texts[this.number] = this.text;
      this.paint();
      this.clear();
      if (this.stored) this.stored.hidden = false;
      this.say(this.stored ? "The text and the result of the book are back." : "The text of the book is back.");
    }

    leave() {
      this.restore();
      Cell.open.delete(this);
      this.editor.remove();
      this.runs.replaceWith(this.tryIt);
      this.say(); // else it would be read when the editor opens again
      for (const part of [this.reset, this.close, this.status, this.heard, this.meter]) part.remove();
      this.input.firstElementChild.hidden = false;
      this.tryIt.focus();
    }
  }

  for (const bar of document.querySelectorAll(".rb-live")) new Cell(bar);
})();
