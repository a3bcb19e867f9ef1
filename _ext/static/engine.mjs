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
