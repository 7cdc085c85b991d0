import { execFile } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";
import { python, pythonObstacle } from "../../src/python/python.fixture.ts";

const folder = fileURLToPath(new URL("../../integrations/python", import.meta.url));

const why = pythonObstacle("pytest");
if (why !== undefined) console.warn(`Skipping the tests of the Python package: ${why}`);

test.skipIf(why !== undefined)("the Python package passes its tests", async () => {
  // Tests that need a trainer's own classes are skipped there, and reported.
  const { stdout } = await promisify(execFile)(
    python,
    ["-m", "pytest", "-q", "-rs", "-p", "no:cacheprovider", "tests"],
    { cwd: folder, env: { ...process.env, PYTHONDONTWRITEBYTECODE: "1" } },
  );
  expect(stdout).toMatch(/\d+ passed/);
  for (const line of stdout.split("\n")) {
    if (line.startsWith("SKIPPED")) console.warn(line);
  }
});
