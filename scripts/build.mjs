// Compiles the TypeScript sources to dist/ and joins what starts together. Messages go to standard error, so that a command that
// triggers a build keeps its standard output clean.
import { spawnSync } from "node:child_process";
import {
  chmodSync,
  copyFileSync,
  existsSync,
  readdirSync,
  rmSync,
  statSync,
  utimesSync,
} from "node:fs";
import { fileURLToPath } from "node:url";
import path from "node:path";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const main = path.join(root, "dist/src/cli/main.js");
const stamp = path.join(root, "dist/.tsbuildinfo");

/** Returns the source folders of the library packages, whose sources the build bundles. */
function librarySources() {
  const names = readdirSync(path.join(root, "packages"));
  return names.map((name) => `packages/${name}/src`);
}

/** True where a source file is newer than the last build. */
export function isStale() {
  if (!existsSync(main) || !existsSync(stamp)) return true;
  const built = statSync(stamp).mtimeMs;
  const newest = (folder) =>
    readdirSync(path.join(root, folder), { withFileTypes: true, recursive: true })
      .filter((entry) => entry.isFile() && /\.(ts|css|cjs)$/.test(entry.name))
      .some((entry) => statSync(path.join(entry.parentPath, entry.name)).mtimeMs > built);
  return (
    ["src", "environments", "bench", "examples", ...librarySources()].some(
      (f) => existsSync(path.join(root, f)) && newest(f),
    ) ||
    ["tsconfig.json", "tsconfig.build.json", "package.json"].some(
      (f) => statSync(path.join(root, f)).mtimeMs > built,
    )
  );
}

/** Compiles; on failure prints the errors and exits with a status of its own. */
export async function build() {
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  if (!existsSync(tsc)) {
    console.error("Cannot build: the compiler is not installed, run `npm ci` first");
    process.exit(2);
  }
  const result = spawnSync(process.execPath, [tsc, "-p", path.join(root, "tsconfig.build.json")], {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  if (result.status !== 0) {
    process.stderr.write(result.stdout);
    process.exit(result.status ?? 1);
  }
  try {
    const { bundle, bundlePage } = await import("./bundle.mjs");
    await bundle(root);
    await bundlePage(root);
  } catch (error) {
    rmSync(stamp, { force: true });
    console.error(`Cannot bundle: ${error instanceof Error ? error.message : String(error)}`);
    process.exit(1);
  }
  for (const name of ["start.cjs", "start-main.cjs"]) {
    copyFileSync(path.join(root, "src/cli", name), path.join(root, "dist/src/cli", name));
  }
  for (const name of ["main.js", "start.cjs"])
    chmodSync(path.join(root, "dist/src/cli", name), 0o755);
  // The compiler does not touch the file if nothing changed.
  utimesSync(stamp, new Date(), new Date());
}

// With --if-stale an existing build stays: installing a checkout has built it just before.
if (process.argv[1] === fileURLToPath(import.meta.url)) {
  if (!process.argv.includes("--if-stale") || isStale()) await build();
}
