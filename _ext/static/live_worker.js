// Python beside the page: started once, then one cell after the other. Ending this worker is how a run is stopped.
const place = new URL("live/", import.meta.url);
const SILENCE = 30, START = 120; // seconds without a byte; and for Python to start once all bytes are there

// What the page's content security policy refused. The browser tells it a moment after the failure.
let policy = "";
addEventListener("securitypolicyviolation", ({ disposition, effectiveDirective, blockedURI }) => {
  if (disposition !== "enforce" || policy) return;
  policy = "the content security policy of this page " + (blockedURI.startsWith("wasm")
    ? "refuses WebAssembly: its script-src lacks 'wasm-unsafe-eval'"
    : `refuses ${blockedURI.split("/").at(-1)}: see its ${effectiveDirective}`);
});
const fail = (words) => setTimeout(() => postMessage({ failed: policy || words }), 50);
const started = start().catch((error) => fail(error.message));

async function start() {
  // The eight bytes of an empty program: where it cannot be compiled, loadPyodide would wait for ever.
  await WebAssembly.compile(Uint8Array.of(0, 97, 115, 109, 1, 0, 0, 0));
  const { bytes } = await (await fetch(new URL("live.json", place))).json();
  const counted = count(bytes);
  const { loadPyodide } = await import(new URL("pyodide.mjs", place));
  const [pyodide, modules] = await Promise.all([
    loadPyodide({ indexURL: place.href }),
    fetch(new URL("python.zip", place)).then((answer) => answer.arrayBuffer()),
  ]);
  counted();
  pyodide.unpackArchive(modules, "zip");
  postMessage({ step: "Reading sympy" });
  pyodide.pyimport("sympy");
  postMessage({ ready: true });
  return pyodide.pyimport("in_page");
}

// Tell the page how many of the bytes have come. Servers differ, and where a file does not come as it should, loadPyodide
// waits for ever instead of failing: so what is amiss is told from here. The answer ends the count.
function count(all) {
  const plain = self.fetch;
  const coming = new Set(); // the files that were asked for and have not come whole
  let come = 0, waiting;
  const wait = () => {
    clearTimeout(waiting);
    waiting = setTimeout(silence, 1000 * (come < all ? SILENCE : START));
  };
  const silence = () => fail(
    coming.size ? `nothing more of ${[...coming].join(" and ")} came for ${SILENCE} seconds, after ${come} of ${all} bytes ` +
      "in all; the server may have stopped sending"
    : come < all ? `all came that it asked for, ${come} of ${all} bytes, and for ${SILENCE} seconds it asked for nothing ` +
      "more; this browser may not run it"
    : `all files came, and Python did not start within ${START} seconds; this machine may be too slow, or its memory too small`);
  self.fetch = async (...request) => {
    const name = String(request[0].url ?? request[0]).split("/").at(-1);
    coming.add(name);
    wait();
    const answer = await plain(...request);
    if (!answer.ok) {
      fail(`the server answers ${answer.status} for ${name}, which is among the files in _static/live`);
      throw new Error(answer.statusText);
    }
    const counter = new TransformStream({
      transform(part, out) {
        come += part.length;
        wait();
        postMessage(come < all ? { step: `Fetching Python, ${Math.round(all / 1e6)} MB`, share: come / all } : { step: "Starting Python" });
        out.enqueue(part);
      },
      flush: () => coming.delete(name),
    });
    const headers = new Headers(answer.headers); // some servers know no type for WebAssembly, and it would be refused
    if (name.endsWith(".wasm")) headers.set("Content-Type", "application/wasm");
    return new Response(answer.body.pipeThrough(counter), { headers });
  };
  return () => {
    clearTimeout(waiting);
    self.fetch = plain;
  };
}

onmessage = async ({ data: { cell, above, source } }) => {
  const python = await started;
  if (!python) return;
  try {
    postMessage({ cell, ...JSON.parse(python.run(JSON.stringify(above), source)) });
  } catch (error) {
    fail(error.message);
  }
};
