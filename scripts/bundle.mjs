// Joins the modules that a process starts with into few files, each entry in the place of its own
// compiled module. Node finds, opens and links every module apart, and with hundreds of them that is
// most of a command's start. All entries share their chunks: a module is one module whichever way it
// is reached, so that an error of the library is the same class to the command line.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { rolldown } from "rolldown";

const require = createRequire(import.meta.url);

/** The oldest Node that the package runs on. */
export const oldestNode = { target: "node20.19" };

/** A bundle of which the bundler warns is none. */
export const strict = {
  logLevel: "warn",
  onLog(_level, log) {
    throw new Error(log.message);
  },
};

/** Returns the entries by their path below dist/, without the extension: the package's exports and the command line. */
function findEntries(root) {
  const { exports } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  const files = Object.values(exports).flatMap((entry) => entry.default ?? []);
  const exported = files.map((file) => file.replace(/^\.\/dist\/(.*)\.js$/, "$1"));
  const environments = readdirSync(path.join(root, "environments"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `environments/${name}/index`);
  const cli = ["src/cli/main", "src/cli/run-command-line"];
  const names = [...exported.filter((name) => !name.includes("*")), ...cli, ...environments];
  return Object.fromEntries(names.map((name) => [name, path.join(root, `${name}.ts`)]));
}

/**
 * Bundles the sources into dist/. Packages stay where they are: their owners keep them up to date. Zod alone
 * comes along with the fifth of it that is used, since every start would load its hundred modules; it only
 * looks at values.
 */
export async function bundle(root) {
  rmSync(path.join(root, "dist/chunks"), { recursive: true, force: true });
  const build = await rolldown({
    input: findEntries(root),
    platform: "node",
    transform: oldestNode,
    // But the few lines that lower newer syntax come with the bundler.
    external: /^(?!\0|@oxc-project\/runtime|zod$|\/)[^./]/,
    ...strict,
  });
  await build.write({
    dir: path.join(root, "dist"),
    format: "esm",
    sourcemap: true,
    // What V8 reads fastest: one byte a character, and nothing that only people read.
    charset: "ascii",
    comments: { legal: true, annotation: false, jsdoc: false },
    entryFileNames: "[name].js",
    chunkFileNames: "chunks/[name]-[hash].js",
  });
  await build.close();
  const license = path.join(path.dirname(require.resolve("zod/package.json")), "LICENSE");
  copyFileSync(license, path.join(root, "dist/chunks/zod.LICENSE"));
}

/** Bundles the viewer's page: one script with all that it needs, and one style sheet. */
export async function bundlePage(root) {
  const from = path.join(root, "src/viewer/page");
  const to = path.join(root, "dist/src/viewer/page");
  mkdirSync(to, { recursive: true });
  const build = await rolldown({
    input: path.join(from, "main.ts"),
    platform: "browser",
    transform: { target: "es2023" },
    ...strict,
  });
  await build.write({ file: path.join(to, "viewer.js"), format: "iife", minify: true });
  await build.close();
  copyFileSync(path.join(from, "viewer.css"), path.join(to, "viewer.css"));
}
