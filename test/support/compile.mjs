// Compiles all that tests import, once for all of them: to .compiled/, from where run-compiled.mjs takes it.
import { spawnSync } from "node:child_process";
import path from "node:path";
import { fileURLToPath, pathToFileURL } from "node:url";

const root = fileURLToPath(new URL("../../", import.meta.url));

/** What the test runner calls before the first test, and again where it watches. */
export default function setup(project) {
  compile();
  project.onTestsRerun(compile);
}

function compile() {
  const tsc = path.join(root, "node_modules/typescript/bin/tsc");
  // Lines are found in the sources, wherever the compiled text is.
  const sourceRoot = pathToFileURL(root).href;
  const args = [tsc, "-p", path.join(root, "tsconfig.tests.json"), "--sourceRoot", sourceRoot];
  const { status, stdout } = spawnSync(process.execPath, args, {
    stdio: ["ignore", "pipe", "inherit"],
    encoding: "utf8",
  });
  if (status !== 0) throw new Error(`Cannot compile the tests:\n${stdout}`);
}
