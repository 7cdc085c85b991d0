// Prepares packages/create-turnwright for packing: one file without dependencies, and the files
// that it copies. Both come from the main package's own sources, so `npm create turnwright` does
// the same as `turnwright init`.
import { spawnSync } from "node:child_process";
import { chmodSync, copyFileSync, cpSync, mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { rolldown } from "rolldown";
import { build, isStale } from "./build.mjs";
import { nodeInput } from "./bundle.mjs";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "..");
const folder = path.join(root, "packages/create-turnwright");
const dist = path.join(folder, "dist");

/** The version that a folder's package has. */
function versionOf(dir) {
  return JSON.parse(readFileSync(path.join(dir, "package.json"), "utf8")).version;
}

if (versionOf(folder) !== versionOf(root)) {
  console.error(
    `Cannot build create-turnwright: its version is ${versionOf(folder)}, expected turnwright's ${versionOf(root)}`,
  );
  process.exit(1);
}
if (isStale()) await build();
rmSync(dist, { recursive: true, force: true });
const bundle = await rolldown({
  input: path.join(folder, "main.ts"),
  ...nodeInput,
});
await bundle.write({ file: path.join(dist, "main.js"), format: "esm" });
await bundle.close();
cpSync(path.join(root, "templates"), path.join(dist, "template"), { recursive: true });
copyFileSync(path.join(root, "LICENSE"), path.join(folder, "LICENSE"));
for (const name of ["start.cjs", "start-main.cjs"]) {
  copyFileSync(path.join(root, "src/cli", name), path.join(dist, name));
}
chmodSync(path.join(dist, "start.cjs"), 0o755);

// The configuration's schema, as the command line writes it.
const scratch = mkdtempSync(path.join(tmpdir(), "turnwright-create-"));
try {
  const cli = path.join(root, "dist/src/cli/start.cjs");
  const { status, stderr } = spawnSync(process.execPath, [cli, "init", scratch], {
    stdio: ["ignore", "ignore", "pipe"],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`turnwright init: ${stderr}`);
  const schema = "turnwright.schema.json";
  copyFileSync(path.join(scratch, schema), path.join(dist, "template", schema));
} finally {
  rmSync(scratch, { recursive: true });
}
