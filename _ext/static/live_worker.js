// Python beside the page: started once, then one cell after the other. Ending this worker is how a run is stopped.
const place = new URL("live/", import.meta.url);
const SILENCE = 30, START = 120; // seconds without a byte; and for Python to start once all bytes are there
const fail = (words) => postMessage({ failed: words });
const started = start().catch((error) => fail(error.message));

async function start() {
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
  let come = 0, waiting;
  const wait = (seconds, words) => {
    clearTimeout(waiting);
    waiting = setTimeout(fail, 1000 * seconds, words);
  };
  self.fetch = async (...request) => {
    const name = String(request[0].url ?? request[0]).split("/").at(-1);
    wait(SILENCE, `the server sent nothing of ${name} for ${SILENCE} seconds`);
    const answer = await plain(...request);
    if (!answer.ok) {
      fail(`the server answers ${answer.status} for ${name}, which is among the files in _static/live`);
      throw new Error(answer.statusText);
    }
    const counter = new TransformStream({
      transform(part, out) {
        come += part.length;
        if (come < all) wait(SILENCE, `the server sent ${come} of ${all} bytes, and nothing more for ${SILENCE} seconds`);
        else wait(START, `all files came, and Python did not start within ${START} seconds`);
        postMessage(come < all ? { step: `Fetching Python, ${Math.round(all / 1e6)} MB`, share: come / all } : { step: "Starting Python" });
        out.enqueue(part);
      },
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
