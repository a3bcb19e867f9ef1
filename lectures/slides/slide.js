// Keys: arrows or space to move (what is marked "later" comes one by one, a row of a table at once), p the piece of the slide, Escape or a clicker's buttons back, s the notes in a window of their own, f full screen.
const root = document.documentElement, slides = [...document.querySelectorAll("section")];
let now = 0, speaker = null, begun = null;
root.classList.add("deck");

function show(index) {
  now = Math.max(0, Math.min(slides.length - 1, index));
  slides.forEach((slide, place) => slide.classList.toggle("now", place === now));
  history.replaceState(null, "", `#${now + 1}`);
  if (now && !begun) begun = Date.now();
  tell();
}
function next() {
  const later = slides[now].querySelector(".later:not(.seen)"), row = later?.closest("tr")?.querySelectorAll(".later") ?? [later];
  later ? row.forEach(one => one.classList.add("seen")) : show(now + 1);
}
function fit() { root.style.setProperty("--scale", Math.min(innerWidth / 1280, innerHeight / 720)); }
function open_(name) {
  close_();
  const stage = document.createElement("div"), frame = document.createElement("iframe"), back = document.createElement("button");
  stage.id = "stage";
  frame.title = name;
  frame.srcdoc = document.querySelector(`template[data-name="${name}"]`).content.textContent;
  back.textContent = "Back to the slide";
  back.onclick = close_;
  frame.onload = () => { frame.contentWindow.focus(); frame.contentWindow.addEventListener("keydown", leave); };
  stage.append(frame, back);
  document.body.append(stage);
}
function leave(event) { if (["Escape", "PageDown", "PageUp"].includes(event.key)) close_(); }
function close_() { document.getElementById("stage")?.remove(); window.focus(); }
function tell() {
  if (!speaker || speaker.closed) return;
  const slide = slides[now], next = slides[now + 1], passed = begun ? Math.floor((Date.now() - begun) / 60000) : 0;
  speaker.document.body.innerHTML =
    `<p>slide ${now + 1} of ${slides.length}, planned for ${slide.dataset.when}; since the second slide: ${passed} min</p>` +
    slide.querySelector("aside").innerHTML + `<p><em>Next: ${next ? next.querySelector("h1, h2").innerHTML : "the end"}</em></p>`;
}
function notes() {
  speaker = window.open("", "notes", "width=700,height=800");
  if (!speaker) return;
  speaker.document.title = "Notes";
  speaker.document.head.innerHTML = "<style>body{font:24px/1.4 sans-serif;margin:1em}</style>";
  speaker.onkeydown = key;
  tell();
}
function key(event) {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const staged = document.getElementById("stage"), piece = slides[now].querySelector("[data-piece]");
  if (staged) return leave(event);
  if (["ArrowRight", "PageDown", " "].includes(event.key)) next();
  else if (["ArrowLeft", "PageUp"].includes(event.key)) show(now - 1);
  else if (event.key === "Home") show(0);
  else if (event.key === "End") show(slides.length - 1);
  else if (event.key === "p" && piece) open_(piece.dataset.piece);
  else if (event.key === "s") notes();
  else if (event.key === "f") document.fullscreenElement ? document.exitFullscreen() : root.requestFullscreen();
  else return;
  event.preventDefault();
}
addEventListener("keydown", key);
addEventListener("resize", fit);
addEventListener("hashchange", () => show(location.hash.slice(1) - 1));
addEventListener("click", event => {
  const link = event.target.closest("a");
  if (link?.dataset.piece) { event.preventDefault(); open_(link.dataset.piece); }
  else if (!link && !event.target.closest("#stage")) next();
});
setInterval(tell, 20000);
fit();
show((location.hash.slice(1) || 1) - 1);
