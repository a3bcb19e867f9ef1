// node pack_python.mjs <folder of pyodide> <folder of packages> <archive>: what pack_python.py makes of the packages, as a file.
import { readFileSync, writeFileSync } from "node:fs";
import { resolve } from "node:path";
import { pathToFileURL } from "node:url";

const [runtime, packages, archive] = process.argv.slice(2).map((path) => resolve(path));
const { loadPyodide } = await import(pathToFileURL(`${runtime}/pyodide.mjs`));
const python = await loadPyodide({ indexURL: `${runtime}/` });
python.mountNodeFS("/packages", packages);
python.runPython(readFileSync(new URL("pack_python.py", import.meta.url), "utf8"));
writeFileSync(archive, python.FS.readFile("/python.zip"));
