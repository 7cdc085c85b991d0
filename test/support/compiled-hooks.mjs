// Module hooks for Node's imports: TypeScript of this repository keeps its address, so files that
// it finds by `import.meta.url` are there, and gets the compiled text.
import { readFileSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = new URL("../../", import.meta.url).href;

/**
 * A TypeScript module of this repository, and the suffix that the test runner adds to a test's
 * address.
 */
const source = /^(?!.*\/node_modules\/)(.+)\.ts((?:\?|%3F)vitest=\d+)?$/;

/** A function that compiled text imports; it is among the compiled files. */
const helper = /^@oxc-project\/runtime\/helpers\/\w+$/;

export function resolve(specifier, context, next) {
  if (helper.test(specifier)) {
    const { href } = pathToFileURL(path.join(compiledFolder(), `${specifier}.js`));
    return { url: href, format: "module", shortCircuit: true };
  }
  const { parentURL = "" } = context;
  const isOwn = (url) => url.startsWith(root) && source.test(url);
  const isRelative = /^\.\.?\//.test(specifier) && isOwn(parentURL);
  const url = isRelative ? new URL(specifier, parentURL).href : specifier;
  if (!isOwn(url)) return next(specifier, context);
  return { url: url.replace("%3Fvitest=", "?vitest="), format: "module", shortCircuit: true };
}

export function load(url, context, next) {
  const [, name] = url.startsWith(root) ? (source.exec(url) ?? []) : [];
  if (name === undefined) return next(url, context);
  return { format: "module", source: readCompiled(name), shortCircuit: true };
}

function compiledFolder() {
  const { TURNWRIGHT_COMPILED: folder } = process.env;
  if (folder === undefined) throw new Error("Cannot run sources: TURNWRIGHT_COMPILED is not set");
  return folder;
}

function readCompiled(name) {
  const folder = compiledFolder();
  const within = path.relative(fileURLToPath(root), fileURLToPath(name));
  try {
    return readFileSync(path.join(folder, `${within}.js`));
  } catch (cause) {
    throw new Error(
      `Cannot import ${within}.ts: it is absent, or was when the tests were compiled (see compile.mjs)`,
      { cause },
    );
  }
}
