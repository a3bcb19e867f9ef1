// Answers the search: sections, statements, terms and functions, each with the words around the hit.
(() => {
  const MOST = 50, AROUND = 220;
  const {pages, places} = Search.book;
  const stemmer = new Stemmer();
  const escaped = text => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
  const wordsOf = text => text.match(/[\p{L}\p{N}_]+(?:[.’'-][\p{L}\p{N}_]+)*/gu) || [];
  const lower = text => text.toLowerCase();
  let vocabulary;

  // A word of the query as a pattern: it begins a word of the text, or has the same stem. Chinese has no spaces.
  const pattern = word => {
    if (/\p{Script=Han}/u.test(word)) return escaped(word);
    vocabulary ||= new Set(places.flatMap(([, title, , , text]) => wordsOf(lower(`${title} ${text}`))));
    const stem = stemmer.stemWord(word);
    const forms = /^[a-z]+$/.test(word)
      ? [...vocabulary].filter(other => !other.startsWith(word) && stemmer.stemWord(other) === stem) : [];
    const whole = /\d$/.test(word) || word.length < 3 ? "(?![\\p{L}\\p{N}]|\\.\\d)" : "";
    const also = forms.map(form => `|${escaped(form)}(?![\\p{L}\\p{N}])`).join("");
    return `(?<![\\p{L}\\p{N}])(?:${escaped(word)}${whole}${also})`;
  };

  // How well a place answers, and at which of its names to open it.
  const rate = ([, title, anchor, names, text], phrase, patterns, all) => {
    let best = 0, at = anchor;
    for (const [name, place] of Object.entries(names)) {
      if (!patterns.every(one => one.test(name))) continue;
      const score = lower(name) === phrase ? 1000 : 200 + 300 * Math.min(1, phrase.length / name.length);
      if (score > best) [best, at] = [score, place];
    }
    const found = patterns.filter(one => one.test(title) || one.test(text));
    if (!found.length || (all && found.length < patterns.length)) return [0, at];
    const exact = lower(text).includes(phrase) ? 60 : 0;
    const inTitle = 15 * patterns.filter(one => one.test(title)).length;
    return [best + exact + inTitle + 20 * found.length / patterns.length + 10 / (1 + text.length / 500), at];
  };

  const marked = (text, any) => {
    const node = document.createElement("span");
    let done = 0;
    for (const hit of text.matchAll(new RegExp(any, "giu"))) {
      node.append(text.slice(done, hit.index), Object.assign(document.createElement("mark"), {textContent: hit[0]}));
      done = hit.index + hit[0].length;
    }
    node.append(text.slice(done));
    return node;
  };

  // The words around the first hit.
  const excerpt = (text, any) => {
    const hit = Math.max(0, text.search(new RegExp(any, "iu")));
    const from = hit < 80 ? 0 : text.indexOf(" ", hit - 80) + 1;
    const cut = text.slice(from, from + AROUND);
    const whole = from + AROUND >= text.length;
    const node = document.createElement("p");
    node.className = "context";
    node.append(from ? "… " : "", marked(whole ? cut : cut.slice(0, cut.lastIndexOf(" ") + 1 || AROUND), any), whole ? "" : "…");
    return node;
  };

  const show = ([number, title, , , text], anchor, any) => {
    const [page, name] = pages[number];
    const item = document.createElement("li"), link = document.createElement("a");
    link.href = page + DOCUMENTATION_OPTIONS.LINK_SUFFIX + (anchor && `#${anchor}`);
    link.append(Object.assign(document.createElement("strong"), {textContent: anchor ? title : name}));
    if (anchor) link.append(" ", Object.assign(document.createElement("span"), {textContent: name, className: "rb-where"}));
    item.append(link);
    if (text) item.append(excerpt(text, any));
    Search.output.append(item);
  };

  Search.query = query => {
    const phrase = lower(query).trim().replace(/\s+/g, " ");
    const words = [...new Set(phrase.split(/[\s,;:!?"“”()]+/).map(word => word.replace(/\.$/, "")).filter(Boolean))];
    const each = words.map(pattern), any = each.join("|");
    const patterns = each.map(one => new RegExp(one, "iu"));
    const answers = all => places.map(place => [place, ...rate(place, phrase, patterns, all)])
      .filter(([, score]) => score).sort((a, b) => b[1] - a[1]);
    let found = words.length ? answers(true) : [];
    const every = found.length > 0;
    if (!every && words.length > 1) found = answers(false);
    Search.stopPulse();
    Search.title.textContent = "Search Results";
    const what = `${found.length} ${found.length === 1 ? "place" : "places"}`;
    const first = found.length > MOST ? ` The first ${MOST}:` : "";
    Search.status.textContent = !found.length ? "Nothing found. Is every word spelled as in the book?"
      : every ? `${what} found.${first}` : `No place has all the words. ${what} with some of them.${first}`;
    Search.status.ariaLive = "polite"; // read when it comes; of a `status` Orca reads only that it is one
    found.slice(0, MOST).forEach(([place, , anchor]) => show(place, anchor, any));
  };
})();
