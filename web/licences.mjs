// The licences of all that ends up in the built files, as one text beside them.

import { existsSync, readdirSync, readFileSync } from "node:fs";
import { dirname, join } from "node:path";

const readJson = (file) => JSON.parse(readFileSync(file, "utf8"));

/** The folder of the package that a module belongs to; nothing for our own. */
function folderOf(module) {
  const path = module.split("?")[0];
  if (!path.includes("/node_modules/")) return null;
  for (let folder = dirname(path); !folder.endsWith("/node_modules"); folder = dirname(folder)) {
    const file = join(folder, "package.json");
    if (existsSync(file) && readJson(file).version) return folder;
  }
  return null;
}

/** Name, version and licence of a package, with the texts that it brings along. */
function textOf(folder) {
  const own = readJson(join(folder, "package.json"));
  const files = readdirSync(folder).filter((name) => /^(licen[cs]e|copying|notice)/i.test(name)).sort();
  const texts = files.map((name) => readFileSync(join(folder, name), "utf8").replaceAll("\r\n", "\n").trim());
  if (texts.length === 0) throw new Error(`${own.name} brings no text of its licence (${own.license}) along`);
  return `${own.name} ${own.version} (${own.license})\n\n${texts.join("\n\n")}\n`;
}

export function licences() {
  return {
    name: "licences",
    generateBundle(_, bundle) {
      const chunks = Object.values(bundle).filter((part) => part.type === "chunk");
      const folders = new Set(chunks.flatMap((chunk) => chunk.moduleIds.map(folderOf)).filter((folder) => folder !== null));
      const head = "The dashboard of Waypost (MIT OR Apache-2.0) is built with these packages; parts of them are in its files.\n";
      const texts = [...folders].map(textOf).sort();
      this.emitFile({ type: "asset", fileName: "licences.txt", source: [head, ...texts].join(`\n${"-".repeat(100)}\n\n`) });
    },
  };
}
