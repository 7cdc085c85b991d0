// Bundles the package's entries and the command line into few files, each entry in the place of its compiled
// module. Node resolves and links every module separately, which takes most of a command's start if there are
// hundreds. The entries share chunks: each module exists once, so an error class is one class in all entries.
import { copyFileSync, mkdirSync, readdirSync, readFileSync, rmSync } from "node:fs";
import { createRequire } from "node:module";
import path from "node:path";
import { rolldown } from "rolldown";

const require = createRequire(import.meta.url);

/** The oldest Node that the package runs on. */
const oldestNode = { target: "node20.19" };

/** Options that turn a warning of the bundler into an error. */
const strict = {
  logLevel: "warn",
  onLog(_level, log) {
    throw new Error(log.message);
  },
};

/** Options of the bundler for code that runs on Node.js. */
export const nodeInput = { platform: "node", transform: oldestNode, ...strict };

/** Options with which a package's bundle is written. */
export const packageOutput = {
  format: "esm",
  // V8 reads one-byte characters fastest. Only people need comments.
  charset: "ascii",
  comments: { legal: true, annotation: false, jsdoc: false },
  entryFileNames: "[name].js",
  chunkFileNames: "chunks/[name]-[hash].js",
};

/** Returns the entries by their path below dist/, without the extension: the package's exports and the programs. */
function findEntries(root) {
  const { exports } = JSON.parse(readFileSync(path.join(root, "package.json"), "utf8"));
  const files = Object.values(exports).flatMap((entry) => entry.default ?? []);
  const exported = files.map((file) => file.replace(/^\.\/dist\/(.*)\.js$/, "$1"));
  const environments = readdirSync(path.join(root, "environments"), { withFileTypes: true })
    .filter((entry) => entry.isDirectory())
    .map(({ name }) => `environments/${name}/index`);
  const programs = [
    "src/cli/main",
    "src/cli/run-command-line",
    "src/doctor/live/thread/worker",
    "src/engine/reference/thread/worker",
    "src/queue/local/worker-process",
    "src/testing/protocol-servers/test-server-main",
  ];
  const names = [...exported.filter((name) => !name.includes("*")), ...programs, ...environments];
  return Object.fromEntries(names.map((name) => [name, path.join(root, `${name}.ts`)]));
}

/**
 * Bundles the sources into dist/. Packages stay external, so that they can be updated. Only zod is
 * bundled, with the fifth of it that is used, because every start would load its hundred modules.
 */
export async function bundle(root) {
  rmSync(path.join(root, "dist/chunks"), { recursive: true, force: true });
  const build = await rolldown({
    input: findEntries(root),
    ...nodeInput,
    // The helpers for newer syntax are part of the bundler.
    external: /^(?!\0|@oxc-project\/runtime|zod$|\/)[^./]/,
  });
  await build.write({
    dir: path.join(root, "dist"),
    sourcemap: true,
    ...packageOutput,
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
