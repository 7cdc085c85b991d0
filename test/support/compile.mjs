// Compiles all that tests import, once for all of them, to a folder from where run-compiled.mjs takes it. Each run
// has a new one: nothing in it is older than its source, and two runs do not meet.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createOwnFolder } from "./own-folder.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** What the test runner calls before the first test, and again where it watches; it returns what is called last. */
export default function setup(project) {
  const { dir, remove } = createOwnFolder(path.join(root, ".compiled"));
  process.env.TURNWRIGHT_COMPILED = dir;
  compile(dir);
  project.onTestsRerun(() => {
    try {
      compile(dir);
    } catch (error) {
      // Whoever watches goes on typing.
      console.error(error.message);
    }
  });
  return remove;
}

function compile(dir) {
  // What was compiled of a source that is gone goes with it.
  rmSync(dir, { recursive: true, force: true });
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  // Lines are found in the sources, wherever the compiled text is.
  const places = ["--outDir", dir, "--sourceRoot", pathToFileURL(root).href];
  const args = [tsc, "-p", path.join(root, "tsconfig.tests.json"), ...places];
  const { status, stdout } = spawnSync(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`Cannot compile the tests:\n${stdout}`);
}
