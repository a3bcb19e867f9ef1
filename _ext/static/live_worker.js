// Python beside the page: started once, then one cell after the other. Ending this worker is how a run is stopped.
const place = new URL("live/", import.meta.url);
const started = start().catch((error) => postMessage({ failed: error.message }));

async function start() {
  const { bytes } = await (await fetch(new URL("live.json", place))).json();
  count(bytes);
  const { loadPyodide } = await import(new URL("pyodide.mjs", place));
  const [pyodide, modules] = await Promise.all([
    loadPyodide({ indexURL: place.href }),
    fetch(new URL("python.zip", place)).then((answer) => answer.arrayBuffer()),
  ]);
  pyodide.unpackArchive(modules, "zip");
  postMessage({ step: "Reading sympy" });
  pyodide.pyimport("sympy");
  postMessage({ ready: true });
  return pyodide.pyimport("in_page");
}

// Tell the page how many of the bytes have come.
function count(all) {
  const plain = self.fetch;
  let come = 0;
  self.fetch = async (...request) => {
    const answer = await plain(...request);
    if (!answer.ok || !answer.body) return answer;
    const counter = new TransformStream({
      transform(part, out) {
        come += part.length;
        postMessage(come < all ? { step: "Fetching Python", share: come / all } : { step: "Starting Python" });
        out.enqueue(part);
      },
    });
    return new Response(answer.body.pipeThrough(counter), { headers: answer.headers });
  };
}

onmessage = async ({ data: { cell, above, source } }) => {
  const python = await started;
  if (!python) return;
  try {
    postMessage({ cell, ...JSON.parse(python.run(JSON.stringify(above), source)) });
  } catch (error) {
    postMessage({ failed: error.message });
  }
};
