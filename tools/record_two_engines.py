"""Record what the engine in the page writes: python -m tools.record_two_engines

Run it after `make book`, where `make test` has brought the weights. The page's own script, engine.mjs, runs in the
system's Chromium; it writes lab/published_models/two_engines.json (some minutes).
"""

import json
import threading
from functools import partial
from pathlib import Path

from _ext.weights import PLACE, weights
from figures.engines import ENGINES, SENTENCES, STORED, WORDS
from tools.chromium import chromium
from tools.serve import PAGES, Pages, Server

ROOT = Path(__file__).resolve().parent.parent
WRITE = """async ([sentences, engines, count]) => {
  const {Engine, fetchWeights} = await import("/_static/engine.mjs");
  const file = await fetchWeights(() => {});
  const right = await Engine.start(file, engines[0]);
  const texts = sentences.map(() => []);
  const row = ({text, p, best, bestP}) => [text, 100 * p, best, 100 * bestP];
  for (const settings of engines) {
    const engine = settings === engines[0] ? right : await Engine.start(file, settings);
    for (const [i, sentence] of sentences.entries()) {
      const words = await engine.write(sentence, count);
      texts[i].push((engine === right ? words : await right.judge(sentence, words)).map(row));
    }
    if (engine !== right) await engine.end();
  }
  await right.end();
  return texts;
}"""


def written(browser: object, sentences: list[str], engines: list[dict], count: int) -> list:
    """For each sentence and engine its words, with what the first engine thinks of them: see figures/engines.py."""
    with Server(("127.0.0.1", 0), partial(Pages, directory=str(PAGES))) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        page = browser.new_page()
        page.goto(f"http://127.0.0.1:{server.server_port}/_static/engine.mjs")  # any page of the same server
        try:
            return page.evaluate(WRITE, [sentences, engines, count])
        finally:
            page.close()
            server.shutdown()


def main() -> None:
    with chromium() as browser:
        texts = written(browser, [*SENTENCES.values()], [*ENGINES.values()], WORDS)
    rounded = [[[[w, float(f"{p:.3g}"), b, float(f"{q:.3g}")] for w, p, b, q in e] for e in s] for s in texts]
    sizes = {path.name: path.stat().st_size for path in (PAGES / PLACE / "wllama.wasm", weights())}
    stored = json.dumps({"bytes": sizes, "texts": rounded}, ensure_ascii=False)
    (ROOT / "lab" / STORED).write_text(stored.replace("]], [[", "]],\n[[") + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
