// node styles.mjs <address of purgecss>: the sheets as one, less what no page or script uses. Standard input has both lists
// of files, {"css": [...], "content": [...]}. PurgeCSS gets their texts: a path may hold what it would take for a pattern.
import { readFileSync } from "node:fs";
import { extname } from "node:path";
const { PurgeCSS } = await import(process.argv[2]);
const files = JSON.parse(readFileSync(0, "utf8"));
const text = (path) => ({ raw: readFileSync(path, "utf8"), extension: extname(path).slice(1) });
const safelist = { greedy: [/tooltip/] }; // on which side one opens is decided in the page
const sheets = await new PurgeCSS().purge({ css: files.css.map(text), content: files.content.map(text), safelist });
process.stdout.write(sheets.map(({ css }) => css + "\n").join(""));
