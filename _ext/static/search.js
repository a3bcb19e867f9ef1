// Answers the search: sections, statements, terms and functions, each with the words around the hit.
(() => {
  const MOST = 50, AROUND = 220, LAST = /reference|bibliography/;
  const SPACES = /[\s,;:!?"“”()]+/;
  const SMALL = new Set(("a about an and are as at be but by can do does for from has have how i if in into is it its my " +
    "not of on one or so than that the their then there they this to vs was we what when where which who why will with you"
  ).split(" "));
  const ALSO = {alpha: "α", beta: "β", gamma: "γ", delta: "Δ", theta: "θ", phi: "φ", rotate: "turn", rotation: "turn",
    bf16: "bfloat16", fp16: "float16|16 bits", fp32: "float32|32 bits", thm: "theorem", eq: "equation", "2d": "image",
    "3d": "video", extend: "longer"};
  const SAME = {"what is rope": "rope in five minutes", "long term": "long-range"};
  const {pages, places} = Search.book;
  const stemmer = new Stemmer();
  const escaped = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const wordsOf = text => text.match(/[\p{L}\p{N}_]+(?:[.’'-][\p{L}\p{N}_]+)*/gu) || [];
  const lower = text => text.toLowerCase();
  const vocabulary = new Set(places.flatMap(([, title, , , text]) => wordsOf(lower(`${title} ${text}`))));

  // A word of the query as a pattern: it begins a word of the text, or has the same stem. Chinese has no spaces,
  // 500000 may have commas, and 128k is 131072.
  const commas = text => text.replace(/\d(?=(\d{3})+$)/g, "$&,?");
  const pattern = word => {
    if (/\p{Script=Han}/u.test(word)) return escaped(word);
    const stem = stemmer.stemWord(word);
    const forms = /^[a-z]+$/.test(word)
      ? [...vocabulary].filter(other => !other.startsWith(word) && stemmer.stemWord(other) === stem) : [];
    const whole = /\d$/.test(word) || word.length < 3 ? "(?![\\p{L}\\p{N}]|[.,]\\d)" : "";
    const more = /^\d+k$/.test(word) ? commas(`${1024 * parseInt(word)}`) : ALSO[word];
    const also = forms.map(form => `|${escaped(form)}(?![\\p{L}\\p{N}])`).join("") + (more ? `|${more}` : "");
    const typed = /^\d+$/.test(word) ? commas(word) : escaped(word).replace(/(?<=[a-z])-(?=[a-z]{2})/g, "[- ]?");
    return `(?<![\\p{L}\\p{N}])(?:${typed}${whole}${also})`;
  };

  // Words with another letter, one more or less, or two exchanged, the commonest first. Fingers slip in some ways only.
  const similar = word => [...vocabulary].map(other => ({other, near: other.length > 3 && nearness(word, other)}))
    .filter(({near}) => near)
    .map(one => ({...one, having: places.filter(([, , , , text]) => lower(text).includes(one.other)).length}))
    .sort((a, b) => b.having - a.having).slice(0, 3);
  const nearness = (a, b) => {
    const most = Math.min(a.length, b.length);
    let from = 0, back = 0;
    while (from < most && a[from] === b[from]) from += 1;
    while (back < most - from && a.at(-1 - back) === b.at(-1 - back)) back += 1;
    const [x, y] = [a, b].map(text => text.slice(from, text.length - back));
    if (x.length === 2 && y.length === 2 && x === y[1] + y[0]) return "slip";
    return x.length < 2 && y.length < 2 && (!x || (!y && x === a[from - 1]) ? "slip" : "another");
  };

  // How well a place answers, and at which of its names to open it. Rare words weigh more; the library and figures come last.
  const rate = ([page, title, anchor, names, text], phrase, patterns, all) => {
    let best = 0, at = anchor;
    for (const [name, place] of Object.entries(names)) {
      if (!patterns.every(({test}) => test.test(name))) continue;
      const score = lower(name) === phrase ? 1000 : 200 + 300 * Math.min(1, phrase.length / name.length);
      if (score > best) [best, at] = [score, place];
    }
    const found = patterns.filter(({test}) => test.test(title) || test.test(text));
    if (!found.length || (all && found.length < patterns.length)) return [0, at];
    const sum = some => some.reduce((all, {rare}) => all + rare, 0);
    const weigh = some => sum(some) / sum(patterns);
    const exact = lower(text).includes(phrase) ? 60 : 0;
    const inTitle = 40 * weigh(patterns.filter(({test}) => test.test(title)));
    const onPage = 25 * weigh(patterns.filter(({test}) => test.test(pages[page][1])));
    const whole = 30 * weigh(patterns.filter(one => one.whole.test(title) || one.whole.test(text)));
    const symbols = /notation/.test(pages[page][0]) && patterns.every(({sign}) => sign) ? 300 : 0;
    const score = best + symbols + exact + inTitle + onPage + whole + 40 * weigh(found) + 10 / (1 + text.length / 500);
    const late = (best < 1000 && LAST.test(pages[page][0])) || (!best && anchor.startsWith("fig-"));
    return [late ? score / 6 : score, at];
  };

  const element = (tag, settings, ...children) => {
    const made = Object.assign(document.createElement(tag), settings);
    made.append(...children);
    return made;
  };

  // The words around the rarest hit.
  const excerpt = (text, any, patterns) => {
    const rarest = patterns.filter(({test}) => test.test(text)).sort((a, b) => b.rare - a.rare)[0];
    const hit = rarest ? text.search(rarest.test) : 0;
    const from = hit < 80 ? 0 : text.indexOf(" ", hit - 80) + 1;
    const cut = text.slice(from, from + AROUND);
    const whole = from + AROUND >= text.length;
    const parts = (whole ? cut : cut.slice(0, cut.lastIndexOf(" ") + 1 || AROUND)).split(new RegExp(`(${any})`, "iu"));
    const marked = parts.map((part, i) => (i % 2 ? element("mark", {}, part) : part));
    return element("p", {className: "context"}, from ? "… " : "", ...marked, whole ? "" : "…");
  };

  const show = ([number, title, , , text], anchor, any, patterns) => {
    const [page, name] = pages[number];
    const href = page + DOCUMENTATION_OPTIONS.LINK_SUFFIX + (anchor && `#${anchor}`);
    const where = anchor ? [" ", element("span", {className: "rb-where"}, name)] : [];
    const link = element("a", {href}, element("strong", {}, anchor ? title : name), ...where);
    Search.output.append(element("li", {}, link, text ? excerpt(text, any, patterns) : ""));
  };

  Search.query = query => {
    const asked = lower(query).trim().replace(/\s+/g, " ");
    const phrase = Object.entries(SAME).reduce((text, [one, other]) => text.replace(one, other), asked);
    const typed = phrase.replace(/(?<=\d),(?=\d{3})/g, "").split(SPACES);
    let words = [...new Set(typed.map(word => word.replace(/\.$/, "")).filter(Boolean))];
    if (words.some(word => !SMALL.has(word))) words = words.filter(word => !SMALL.has(word));
    const patternOf = word => {
      const test = new RegExp(pattern(word), "iu");
      const having = places.filter(([, title, , , text]) => test.test(title) || test.test(text)).length;
      return {
        word, test, having, rare: Math.log(1 + places.length / (1 + having)),
        whole: new RegExp(`(?<![\\p{L}\\p{N}])${escaped(word)}(?![\\p{L}\\p{N}])`, "iu"),
        sign: word.length < 2 || ALSO[word]?.length === 1,
      };
    };
    const unknown = []; // to the book
    const meant = word => {
      const typed = query.split(SPACES).find(one => lower(one).startsWith(word)) || word;
      const others = /^[a-z]{4,}$/.test(word) ? similar(word) : [];
      const mended = word.length > 4 && !/.\p{Lu}/u.test(typed) && others[0]?.near === "slip";
      unknown.push({typed, others, mended});
      return mended ? others[0].other : word;
    };
    const patterns = words.map(patternOf).map(one => one.having ? one : patternOf(meant(one.word)));
    const any = patterns.map(({test}) => test.source).join("|");
    const answers = all => places.map(place => [place, ...rate(place, phrase, patterns, all)])
      .filter(([, score]) => score).sort((a, b) => b[1] - a[1])
      .filter(([[page], , at], i, every) => i === every.findIndex(([[other], , there]) => other === page && there === at));
    let found = words.length ? answers(true) : [];
    const every = found.length > 0;
    if (!every && words.length > 1) found = answers(false);
    Search.stopPulse();
    Search.title.textContent = "Search Results";
    const what = `${found.length} ${found.length === 1 ? "place" : "places"}`;
    const first = found.length > MOST ? ` The first ${MOST}:` : "";
    const total = !found.length ? (unknown.length ? "" : "Nothing found.")
      : every ? `${what} found.${first}` : `No place has all the words. ${what} with some of them.${first}`;
    const link = (typed, other) => element("a", {href: `?q=${encodeURIComponent(query.replace(typed, other))}`}, other);
    Search.status.replaceChildren(...unknown.flatMap(({typed, others, mended}) => [`Nothing found for “${typed}”. `,
      ...(mended ? [`With “${others[0].other}”: `] : others.flatMap(({other}, i) => [i ? ", " : "Similar: ", link(typed, other)])),
      others.length && !mended ? ". " : ""]), total);
    Search.status.ariaLive = "polite"; // read when it comes; of a `status` Orca reads only that it is one
    found.slice(0, MOST).forEach(([place, , anchor]) => show(place, anchor, any, patterns));
  };
})();
