// The first click on a button of a cell brings live.js, which gives all of them their work, and then counts.
(() => {
  "use strict";
  const src = document.currentScript.src.replace(/try\.js.*/, "live.js");
  let asked = null;
  for (const button of document.querySelectorAll(".rb-live button"))
    button.onclick = () => {
      if (asked) return;
      const [onload, onerror] = [() => button.click(), () => (asked = null)]; // if it did not come, one may click again
      asked = Object.assign(document.createElement("script"), { src, onload, onerror });
      document.head.append(asked);
    };
})();
