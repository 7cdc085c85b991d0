import { execFile, execFileSync } from "node:child_process";
import { fileURLToPath } from "node:url";
import { promisify } from "node:util";
import { expect, test } from "vitest";

const folder = fileURLToPath(new URL("../../integrations/python", import.meta.url));
const python = process.env["TURNWRIGHT_TRAINERS_PYTHON"] ?? "python3";

/** The reason why the Python package's tests cannot run here; `undefined` if they can. */
function obstacle(): string | undefined {
  try {
    execFileSync(python, ["-c", "import sys, pytest; assert sys.version_info >= (3, 10)"], {
      stdio: "ignore",
    });
    return undefined;
  } catch {
    return `${python} is no Python of 3.10 or newer with pytest (TURNWRIGHT_TRAINERS_PYTHON names one)`;
  }
}

const why = obstacle();
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
