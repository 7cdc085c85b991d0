import { readFile, stat } from "node:fs/promises";
import path from "node:path";

/** Most files of one module that are followed. */
const maxFiles = 1_000;

/**
 * The forms in which a module names another file: imports, re-exports, requires, and URLs relative
 * to itself.
 */
const references = [
  /\b(?:from|import|require)\s*\(?\s*(["'`])(\.{1,2}\/[^"'`\n]+)\1/g,
  /\bnew\s+URL\(\s*(["'`])(\.{1,2}\/[^"'`\n]+)\1\s*,\s*import\.meta\.url/g,
];

/** The endings that a name may leave out. */
const endings = ["", ".js", ".mjs", ".cjs", ".json", ".ts", "/index.js"];

/**
 * The files of a module that are its own: the file itself, and those that it names by a relative path
 * as its imports do, and so on. Packages are left out, and what is read by names that are put together
 * at run time. Absolute paths, the first one first.
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
