// A language model in the page: llama.cpp as WebAssembly (wllama), one engine for each way of turning queries and keys.
// It comes when a reader asks for it. What is typed stays in the page.
import { Wllama } from "./engine/index.min.js";

const here = (name) => new URL(`engine/${name}`, import.meta.url).href;
// It says nothing in the console, and keeps nothing: for a store it would ask the browser, and not each has one.
const SETTINGS = { logger: { debug() {}, log() {}, warn() {}, error() {} }, cacheManager: {} };
const FULL_STOP = 30; // a token
const PART_OF_A_SIGN = "the next token is only a part of a sign, and this engine hands over whole signs";
const HEAD = 4096; // bytes: where the file says its architecture

// The weights, with a word on how far it is.
export async function fetchWeights(tell, signal) {
  const answer = await fetch(here("model.gguf"), { signal });
  if (!answer.ok) throw new Error(`the server answers ${answer.status} for model.gguf`);
  const total = Number(answer.headers.get("Content-Length"));
  const reader = answer.body.getReader();
  const chunks = [];
  let loaded = 0;
  for (;;) {
    const { done, value } = await reader.read();
    if (done) return new Blob(chunks);
    chunks.push(value);
    loaded += value.length;
    tell(loaded, total);
  }
}

// The same file under the name of an architecture whose pairs are i and i + head_dim / 2: its name, and its keys' first part.
async function readHalfSplit(file) {
  const head = new Uint8Array(await file.slice(0, HEAD).arrayBuffer());
  const [from, to] = ["llama", "qwen2"].map((name) => new TextEncoder().encode(name));
  for (let at = 0; at + from.length < HEAD; at++) if (from.every((byte, i) => head[at + i] === byte)) head.set(to, at);
  return new Blob([head, file.slice(HEAD)]);
}

export class Engine {
  // settings as llama.cpp calls them; `half_split` reads the pairs in the other layout.
  static async start(file, { half_split: halfSplit, ...settings } = {}) {
    const engine = new Engine();
    engine.wllama = new Wllama({ default: here("wllama.wasm") }, SETTINGS);
    engine.wllama.setCompat(null); // else it would fetch another program from elsewhere for some browsers
    const read = halfSplit ? await readHalfSplit(file) : file;
    await engine.wllama.loadModel([read], { n_ctx: 512, n_threads: 1, n_gpu_layers: 0, n_parallel: 1, ...settings });
    return engine;
  }

  end() {
    return this.wllama.exit();
  }

  // What comes behind a text: a token, its probability, and the likeliest one with its probability. With `forced` it is
  // that token. null where the model ends its text.
  async next(prompt, forced) {
    const ask = async (only) => {
      const bias = only === undefined ? {} : { logit_bias: { [only]: 1000 } };
      const asked = { prompt, max_tokens: 1, temperature: 0, logprobs: 1, ...bias };
      return (await this.wllama.createCompletion(asked)).choices[0].logprobs.content[0] ?? null;
    };
    const said = await ask(forced).catch(async (error) => {
      const { top_logprobs: [{ bytes }] } = await ask(FULL_STOP);
      throw new TextDecoder().decode(new Uint8Array(bytes)).includes("\uFFFD") ? new Error(PART_OF_A_SIGN) : error;
    });
    if (said === null) return null;
    const { id, token, logprob, top_logprobs: [best] } = said;
    return { id, text: token, p: Math.exp(logprob), best: best.token, bestP: Math.exp(best.logprob) };
  }

  // Words one after the other, as long as `wanted` says so.
  async write(prompt, count, tell, wanted = () => true) {
    const words = [];
    let text = prompt;
    while (words.length < count && wanted()) {
      const word = await this.next(text);
      if (word === null) break;
      words.push(word);
      text += word.text;
      tell?.(words);
    }
    return words;
  }

  // What this engine would have said to words that another has written.
  async judge(prompt, words, tell, wanted = () => true) {
    const judged = [];
    let text = prompt;
    for (const { id, text: written } of words) {
      if (!wanted()) break;
      judged.push({ ...(await this.next(text, id)), text: written });
      text += written;
      tell?.(judged);
    }
    return judged;
  }
}

// -- What the reader sees of it --

const SIMD = [0, 97, 115, 109, 1, 0, 0, 0, 1, 5, 1, 96, 0, 1, 123, 3, 2, 1, 0, 10, 10, 1, 8, 0, 65, 0, 253, 15, 253, 98, 11];

// What is missing, in words; "" if it can begin.
async function missing() {
  const lacks = "This browser’s WebAssembly lacks what the engine needs: ";
  if (!globalThis.WebAssembly?.validate(new Uint8Array(SIMD))) return `${lacks}SIMD.`;
  try {
    new WebAssembly.Memory({ address: "i64", initial: 1n });
  } catch {
    return `${lacks}addresses of 64 bits.`;
  }
  const { ok, status } = await fetch(here("model.gguf"), { method: "HEAD" });
  if (status === 404) return "This server has no weights. Where “make test” has run once, “make serve” offers them.";
  return ok ? "" : `The server answers ${status} for the weights.`;
}

// Behind the reader's sentence: both engines write, then the right one judges the other's words. The piece hands over what
// it shows (mine), its elements, and what to call when something is to be shown.
export class Writer {
  constructor(piece) {
    Object.assign(this, piece, { abort: null });
  }

  // One button, to begin and to stop.
  press() {
    if (this.abort) this.abort.abort();
    else this.run();
  }

  // After another mistake was chosen: what is being written stops first.
  again() {
    this.wanted = this.abort !== null;
    if (this.abort) this.abort.abort();
    else if (this.mine.right.length) this.run();
  }

  say(words) {
    this.status.textContent = words;
  }

  async engines(signal) {
    this.file ??= await fetchWeights((loaded, total) => {
      this.meter.value = loaded / total;
      this.say(`Loading the weights: ${Math.round(loaded / 1e6)} of ${Math.round(total / 1e6)} MB.`);
    }, signal);
    this.meter.removeAttribute("value");
    this.say("The engines start.");
    const now = this.mistake();
    if (this.started !== now) {
      await this.wrong?.end();
      this.wrong = null;
    }
    this.right ??= await Engine.start(this.file, this.settings[0]);
    this.wrong ??= await Engine.start(this.file, this.settings[now]);
    this.started = now;
    return [this.right, this.wrong];
  }

  async run() {
    const { signal } = this.abort = new AbortController();
    this.wanted = false;
    const { mine, count, meter } = this;
    const given = this.field.value.trimEnd(); // behind a space the model expects no word that begins with one
    const wanted = () => !signal.aborted;
    let seen = 0;
    const keep = (list, row) => (words) => {
      list.splice(0, words.length, ...words.map(row));
      meter.value = ++seen / (3 * count);
      this.show();
    };
    const whole = ({ text, p, best, bestP }) => [text, 100 * p, best, 100 * bestP];
    this.write.textContent = "Stop";
    meter.hidden = false;
    try {
      const fault = given ? await missing() : "Type how a sentence begins.";
      if (fault) return this.say(fault);
      const [right, wrong] = await this.engines(signal);
      Object.assign(mine, { given, right: [], wrong: [] });
      const begin = performance.now();
      this.say("Both write.");
      const [, words] = await Promise.all([
        right.write(given, count, keep(mine.right, whole), wanted),
        wrong.write(given, count, keep(mine.wrong, ({ text }) => [text]), wanted),
      ]);
      this.say("The published engine reads what the other has written.");
      await right.judge(given, words, keep(mine.wrong, whole), wanted);
      const seconds = ((performance.now() - begin) / 1000).toFixed(0);
      this.say(wanted() ? `${seen} words were written and read in ${seconds} s.` : "Stopped.");
      this.heardNow();
    } catch (error) {
      this.say(signal.aborted ? "Stopped." : `It ended: ${error.message}.`);
    } finally {
      meter.hidden = true;
      this.write.textContent = "Write";
      this.abort = null;
      if (this.wanted) this.run();
    }
  }
}
