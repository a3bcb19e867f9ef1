// On paper every fold is open, the page is light and the pieces show their first state; afterwards all is as it was.
(() => {
  let undo = [];
  const change = (object, key, value) => {
    const before = object[key];
    undo.push(() => { object[key] = before; });
    object[key] = value;
  };
  const draw = input => input.dispatchEvent(new Event("input", {bubbles: true}));
  addEventListener("beforeprint", () => {
    if (undo.length) return;
    change(document.documentElement.dataset, "theme", "light");
    document.querySelectorAll("details").forEach(fold => change(fold, "open", true));
    document.querySelectorAll(".rope-piece input").forEach(input => {
      undo.push(() => draw(input));
      change(input, "value", input.defaultValue);
      draw(input);
    });
  });
  addEventListener("afterprint", () => {
    undo.reverse().forEach(step => step());
    undo = [];
  });
})();
