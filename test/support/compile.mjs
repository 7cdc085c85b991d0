// Compiles all modules that tests import, once, to a folder that run-compiled.mjs reads. Each run
// has a new folder, so no file in it is older than its source, and two runs do not interfere.
import { spawnSync } from "node:child_process";
import { rmSync } from "node:fs";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";
import { createOwnFolder } from "./own-folder.mjs";

const root = fileURLToPath(new URL("../../", import.meta.url));

/**
 * Called by the test runner before the first test, and again in watch mode. Returns a function that
 * the runner calls at the end.
 */
export default function setup(project) {
  const { dir, remove } = createOwnFolder(path.join(root, ".compiled"));
  process.env.TURNWRIGHT_COMPILED = dir;
  compile(dir);
  project.onTestsRerun(() => {
    try {
      compile(dir);
    } catch (error) {
      // In watch mode the sources change during the run.
      console.error(error.message);
    }
  });
  return remove;
}

function compile(dir) {
  // Compiled files of deleted sources are deleted too.
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
