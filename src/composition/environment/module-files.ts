import { readFile, stat } from "node:fs/promises";
import path from "node:path";

/** Maximum number of files of one module. */
const maxFiles = 1_000;

/**
 * Patterns by which a module names another file: imports, re-exports, requires, and URLs relative
 * to itself.
 */
const references = [
  /\b(?:from|import|require)\s*\(?\s*(["'`])(\.{1,2}\/[^"'`\n]+)\1/g,
  /\bnew\s+URL\(\s*(["'`])(\.{1,2}\/[^"'`\n]+)\1\s*,\s*import\.meta\.url/g,
];

/** File name endings that an import may omit. */
const endings = ["", ".js", ".mjs", ".cjs", ".json", ".ts", "/index.js"];

/**
 * Returns the files of a module: the file itself, and all files that are imported from it by relative
 * paths, directly or through others. Leaves out packages, and files with computed names. Paths are
 * absolute, and `entry` comes first.
 */
export async function findModuleFiles(entry: string): Promise<readonly string[]> {
  const found = new Set([path.resolve(entry)]);
  for (const file of found) {
    if (!/\.(?:[cm]?[jt]s)$/.test(file)) continue;
    const text = await readFile(file, "utf8").catch(() => "");
    for (const pattern of references) {
      for (const [, , name] of text.matchAll(pattern)) {
        const named = await findFile(path.resolve(path.dirname(file), name as string));
        if (named !== undefined && found.size < maxFiles) found.add(named);
      }
    }
  }
  return [...found];
}

async function findFile(name: string): Promise<string | undefined> {
  for (const ending of endings) {
    const facts = await stat(name + ending).catch(() => undefined);
    if (facts?.isFile() === true) return name + ending;
  }
  return undefined;
}
