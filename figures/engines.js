// Two engines write behind one sentence, the right one and one whose rotation is broken. Their texts are stored; behind
// the reader's own sentence real engines write (engine.mjs), where the page can have them.
for (const piece of document.querySelectorAll("[data-script='engines.js']:not([data-live])")) {
  piece.dataset.live = "";
  if (piece.previousElementSibling?.matches(".rp-rest")) piece.previousElementSibling.remove();
  piece.hidden = false;
  const address = document.currentScript?.src;  // none in a notebook, whose output holds this script
  const {sentences, engines, settings, texts, borders, words: count} = JSON.parse(piece.dataset.states);
  const part = name => piece.querySelector(`.re-${name}`);
  const [slider, play, field, write, status, meter] = ["slider", "play", "field", "write", "status", "meter"].map(part);
  const [said, heard] = [".rp-said", "[aria-live]"].map(name => piece.querySelector(name));
  const [sentence, broken] = piece.querySelectorAll("fieldset");
  const at = fieldset => [...fieldset.elements].findIndex(one => one.checked);
  const mine = {given: "", right: [], wrong: []};  // the reader's own sentence; a word is [text, %, the likeliest, %]
  const isMine = () => at(sentence) === sentences.length;
  const mistake = () => at(broken) + 1;
  let timer = 0, asked = false;  // whether the reader has asked about a word

  // -- What is seen --
  const readable = text => text.replaceAll("\n", "↵\u200B");
  const quoted = text => text.trim() ? `“${text.trim()}”` : "a new line";
  const percent = p => p >= 10 ? `${p.toFixed(0)} %` : p >= 0.1 ? `${p.toFixed(1)} %` : "less than 0.1 %";
  const spans = (words, coloured) => words.flatMap(([text, p], i) => {
    const word = text.trimStart() ? text.replace(/^ +/, "") : text;
    const span = Object.assign(document.createElement("span"), {textContent: readable(word)});
    if (coloured && p !== undefined) span.className = `re-${borders.filter(border => p < border).length}`;
    if (coloured && asked && i + 1 === +slider.value) span.classList.add("re-at");
    if (timer && i >= slider.value) span.style.visibility = "hidden";  // while it plays
    span.dataset.at = i + 1;
    return [text.slice(0, -word.length), span];
  });
  const summary = words => {
    const [same, rare] = [([text,, best]) => text === best, ([, p]) => p < borders[0]].map(is => words.filter(is).length);
    return `The published engine would write ${same} of these ${words.length} words itself; ${rare} it finds unlikely.`;
  };
  const show = () => {
    const s = at(sentence);
    const {given, right, wrong} = isMine() ? mine : {given: sentences[s], right: texts[s][0], wrong: texts[s][mistake()]};
    slider.max = Math.max(right.length, wrong.length, 1);
    part("given").textContent = given;
    part("right").replaceChildren(...spans(right));
    part("wrong").replaceChildren(...spans(wrong, true));
    part("mistake").textContent = engines[mistake()];
    said.textContent = wrong.length && wrong.every(word => word.length > 1) ? summary(wrong) : "";
    const [text, p, best, bestP] = wrong[slider.value - 1] ?? [];
    const others = best === text ? "more than to any other" : `and ${percent(bestP)} to ${quoted(best ?? "")}`;
    part("word").textContent = p === undefined || !asked ? "" :
      `Word ${slider.value}, ${quoted(text)}: the published engine gives it ${percent(p)}, ${others}.`;
    slider.setAttribute("aria-valuetext", part("word").textContent);
    const alone = document.querySelector('a[href*="/engines.html"]');  // in full screen it goes on from here
    if (alone && !isMine()) alone.hash = [s, at(broken), slider.value - 1];
  };
  const stop = () => {
    clearInterval(timer);
    timer = 0;
    play.textContent = "Play";
    show();
  };
  const toEnd = () => {
    slider.max = slider.value = count;
    stop();
  };
  play.hidden = false;
  play.onclick = () => {
    if (timer) return stop();
    play.textContent = "Pause";
    asked = true;
    slider.value = 1;
    timer = setInterval(() => {
      slider.value++;
      show();
      if (slider.value === slider.max) stop();
    }, 350);
    show();
  };
  slider.oninput = () => {
    asked = true;
    stop();
  };
  piece.addEventListener("click", ({target}) => {  // on a word
    if (!target.dataset?.at) return;
    slider.value = target.dataset.at;
    slider.oninput();
  });
  const set = places => {
    [sentence, broken, slider].forEach((control, i) => {
      const to = places.split(",")[i];
      if (!to) return;
      if (control.elements) control.elements[to].checked = true;
      else control.value = +to + 1;
    });
    choose();
    heard.textContent = said.textContent;
  };
  piece.addEventListener("set", ({detail}) => set(detail));  // by a link in a sentence

  // -- A game: which of three is as published? --
  const ORDERS = [[1, 2, 0], [0, 1, 2], [2, 0, 1], [0, 2, 1]];  // for each sentence
  const three = engines.flatMap((_, e) => e === 0 || settings[e].rope_freq_base ? [e] : []);
  const drawGame = () => {
    const textOf = e => readable(texts[at(sentence)][e].map(([word]) => word).join(""));
    part("answer").textContent = "";
    if (part("game").hidden = isMine() || new Set(three.map(textOf)).size < 3) return;  // two have written the same
    const order = ORDERS[at(sentence) % ORDERS.length].map(i => three[i]);
    const [names, right] = ["ABC", "ABC"[order.indexOf(0)]];
    part("three").replaceChildren(...order.map((e, i) => {
      const textContent = `${names[i]}: …${textOf(e)} …`;
      const button = Object.assign(document.createElement("button"), {type: "button", textContent});
      const others = order.flatMap((e, i) => e ? [`${names[i]} has ${engines[e]}`] : []).join(", ");
      button.onclick = () => part("answer").textContent = `${e ? "No" : "Yes"}: ${right} is as published; ${others}.`;
      return button;
    }));
  };

  // -- The reader's own sentence: what writes behind it comes at the first press --
  let writer = null;
  write.onclick = async () => {
    try {
      if (location.protocol === "file:") throw Error("a page from disk may not load an engine. Run “make serve”: there it can");
      const {Writer} = await import(new URL("engine.mjs", address));
      const show = () => isMine() && toEnd();
      const heardNow = () => heard.textContent = said.textContent;
      writer ??= new Writer({mine, settings, count, mistake, show, heardNow, field, write, status, meter});
      writer.press();
    } catch ({message}) {
      status.textContent = `It does not start: ${message}.`;
    }
  };
  part("yours").hidden = !address;

  const choose = () => {
    part("own").hidden = !isMine();
    toEnd();
    drawGame();
  };
  sentence.onchange = broken.onchange = ({currentTarget}) => {
    choose();
    heard.textContent = said.textContent;
    if (currentTarget === broken && isMine()) writer?.again();
  };
  choose();
  if (location.hash && location.pathname.endsWith("/engines.html")) set(location.hash.slice(1));
}
