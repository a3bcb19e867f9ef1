// node styles.mjs <folder of purgecss> <folder of pages> <sheet> ...: the sheets as one, less what no page or script uses.
const [purgecss, pages, ...css] = process.argv.slice(2);
const { PurgeCSS } = await import(purgecss);
const content = [`${pages}/**/*.html`, `${pages}/_static/**/*.js`];
const skippedContentGlobs = ["searchindex.js", "_static/places.js", "_static/live/**"].map((name) => `${pages}/${name}`);
const safelist = { greedy: [/tooltip/] }; // on which side one opens is decided in the page
const sheets = await new PurgeCSS().purge({ css, content, skippedContentGlobs, safelist });
console.log(sheets.map(({ css }) => css).join("\n"));
