// Makes charts.min.js and LICENCES.txt, from the packages of package.json.
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const made = await build({
  entryPoints: ["charts.mjs"], outfile: "charts.min.js", bundle: true, minify: true, format: "iife", target: "es2022",
  legalComments: "none", metafile: true,
  alias: { vega: "vega-util" }, // Vega-Lite takes four helpers from the whole of Vega, which stand there
});

// Packages of which something is in the script, by the text of their licence.
const inputs = Object.entries(made.metafile.outputs["charts.min.js"].inputs);
const packages = inputs.filter(([, input]) => input.bytesInOutput).map(([path]) => /node_modules\/([^/]+)\//.exec(path)?.[1]);
const licences = new Map();
for (const name of [...new Set(packages.filter(Boolean))].sort()) {
  const folder = `node_modules/${name}`;
  const file = readdirSync(folder).find((it) => /^licen[cs]e/i.test(it));
  const { license, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const text = readFileSync(`${folder}/${file}`, "utf8").trim();
  licences.set(text, [...(licences.get(text) ?? []), `${name} ${version} (${license})`]);
}
const rule = "=".repeat(78);
const parts = [...licences].map(([text, names]) => `${rule}\n${names.join("\n")}\n${"-".repeat(78)}\n${text}\n`);
writeFileSync("LICENCES.txt",
  `The chart library is made of the packages below; each stands under the licence that follows its name.\n\n${parts.join("\n")}`);
