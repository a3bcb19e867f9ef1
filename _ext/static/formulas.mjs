// TeX to MathML by Temml: in Node when the book is built (formulas.py), and in the page for what a live cell finds.
// Letters of queries, keys and scores get a class each, and long formulas places to break.
const COLOURS = { q: "rb-q", Q: "rb-q", "𝐪": "rb-q", k: "rb-k", K: "rb-k", "𝐤": "rb-k", g: "rb-s", S: "rb-s" };
const MACROS = { "\\mathit": "\\class{rb-plain}{#1}" }; // one of these letters where it means something else
const WIDE = 24; // in characters: about what fits beside a number on a phone

export function mathml(temml, tex, display) {
  const options = { displayMode: display, throwOnError: true, trust: true, macros: { ...MACROS } };
  const math = temml.__renderToMathMLTree(tex.replace(/^\s*\\displaystyle/, ""), options);
  colour(math);
  settle(math);
  const groups = breakable(inner(math));
  if (groups.flat().length === 1) return tight(math.toMarkup());
  // Several formulas in a line, as WebKit breaks none inside.
  const inline = new math.constructor("math", []);
  if (display) inline.attributes.displaystyle = "true";
  const line = (parts) => parts.map((part) => {
    inline.children = [new math.constructor("mrow", part)];
    return tight(inline.toMarkup());
  }).join("<wbr>");
  if (!display || groups.length === 1) return line(groups.flat());
  return groups.map((parts) => `<span class="rb-part">${line(parts)}</span>`).join("<wbr>"); // where there is a gap, first
}

// sympy writes \sin{\left(x\right)}, and Temml puts a space before such a bracket, as before a letter.
const tight = (markup) =>
  markup.replace(/<mo>\u2061<\/mo><mspace width="0.1667em"><\/mspace>(?=(<\/mrow>)?<mrow><mo fence="true" form="prefix")/g, "<mo>\u2061</mo>");

// Children of a node; Temml keeps some in fragments, which leave no trace in the page.
const children = (node) => node.children?.flatMap((one) => (one.type || one.text !== undefined ? [one] : children(one))) ?? [];
const sign = (node) => (node?.type === "mo" ? children(node)[0]?.text : undefined);
const inner = (math) => {
  const [row, more] = children(math);
  return !more && row?.type === "mrow" ? children(row) : children(math);
};

function colour(node, parent) {
  if (node.classes?.includes("rb-plain")) return;
  const letter = node.type === "mi" && !node.attributes.mathvariant && children(node)[0]?.text;
  const isSum = letter === "S" && parent.type.startsWith("msub") && children(parent)[0] === node; // the partial sums S_j
  if (COLOURS[letter] && !isSum) node.classes.push(COLOURS[letter]);
  children(node).forEach((child) => colour(child, node));
}

// sympy writes \left( \right) around everything. WebKit raises what it may stretch: brackets do so around what is tall only.
const TALL = /^(mfrac|mtable|msqrt|mroot|m?under|mover|munderover)$/;
const tall = (node) => TALL.test(node.type) || children(node).some(tall);
function settle(node) {
  const parts = children(node);
  if (!parts.some(tall))
    for (const { attributes } of parts) if (attributes?.fence && attributes.stretchy) attributes.stretchy = "false";
  parts.forEach(settle);
}

// About how many characters a formula is wide.
function width(node) {
  if (node.text !== undefined) return [...node.text].length;
  const [first = 0, ...others] = children(node).map(width);
  if (node.type === "mspace") return 2 * (parseFloat(node.attributes.width) || 0);
  if (node.type === "mo" && !node.attributes.fence) return 2 * first; // with the space around it
  if (node.type === "msqrt") return first + 1;
  if (/^msu[bp]/.test(node.type)) return first + 0.7 * Math.max(...others);
  if (/^(mfrac|m?under|mover|munderover|mtable)$/.test(node.type)) return Math.max(first, ...others);
  return others.reduce((sum, one) => sum + one, first);
}

// A long formula in groups of parts: it may break behind a gap; in a group that is still long before a relation or a sum;
// and then between brackets, but not between a function and its own.
function breakable(nodes) {
  const size = (part) => part.reduce((sum, node) => sum + width(node), 0);
  const is = (signs) => (node) => signs.includes(sign(node) ?? " ");
  const [opens, closes, isRelation, isSign] = ["([{⟨⌊", ")]}⟩⌋", "=<>≈≤≥≠≡→⟶≪≫∼⇔⟺⇒", "+−"].map(is);
  const isSum = (node, before) => isSign(node) && (before.type !== "mo" || closes(before));
  const isFunction = (node) => sign(children(node).at(-1)) === "\u2061";
  const isProduct = (node, before) =>
    (opens(node) || node.type === "mrow") && (closes(before) || (before.type === "mrow" && !isFunction(before)));
  const cut = (part, here) => {
    let depth = 0;
    return part.reduce((made, node, i) => {
      if (i === 0 || (depth === 0 && here(node, part[i - 1]))) made.push([]);
      depth += opens(node) - closes(node);
      made.at(-1).push(node);
      return made;
    }, []);
  };
  const isGap = (_, before) => before.type === "mspace" && parseFloat(before.attributes.width) >= 1;
  const short = (parts, here) => parts.flatMap((part) => (size(part) <= WIDE ? [part] : cut(part, here)));
  const groups = short([nodes], isGap).map((group) =>
    short(short([group], (node, before) => isRelation(node) || isSum(node, before)), isProduct));
  // A relation or a sign at the begin of a part would else be taken for the sign of a number.
  for (const [first] of groups.flat().slice(1)) if (first.type === "mo" && !opens(first)) first.attributes.form = "infix";
  return groups;
}
