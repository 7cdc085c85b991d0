// Shows that the simulation can fail: plants one bug after the other in a copy of the sources, and says how
// many seeds it takes until one fails. Usage: node test/simulation/plant-bugs.mjs [--seeds N] [--only WORDS]
import { execFile } from "node:child_process";
import { cp, mkdtemp, readFile, rm, symlink, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { bugs, queueBugs } from "./planted-bugs.mjs";

const root = path.resolve(path.dirname(fileURLToPath(import.meta.url)), "../..");
const at = process.argv.indexOf("--seeds");
const seeds = at < 0 ? "400" : process.argv[at + 1];
const onlyAt = process.argv.indexOf("--only");
const only = onlyAt < 0 ? "" : process.argv[onlyAt + 1];
const copy = await mkdtemp(path.join(tmpdir(), "turnwright-planted-"));
let isMissed = false;
try {
  for (const name of [
    "src",
    "test",
    "environments",
    "packages",
    "package.json",
    "tsconfig.json",
    "vitest.config.ts",
  ]) {
    await cp(path.join(root, name), path.join(copy, name), { recursive: true });
  }
  await symlink(path.join(root, "node_modules"), path.join(copy, "node_modules"));
  for (const bug of [...bugs, ...queueBugs]) {
    const [what, name, from, to] = bug;
    if (!what.includes(only)) continue;
    const env = queueBugs.includes(bug) ? { SIMULATION_QUEUE: "1" } : {};
    const file = path.join(copy, "src", name);
    const source = await readFile(file, "utf8");
    if (!source.includes(from)) throw new Error(`Cannot plant "${what}": ${name} reads otherwise`);
    await writeFile(file, source.replace(from, to));
    const seed = await firstFailure(env);
    await writeFile(file, source);
    isMissed ||= seed === undefined;
    console.log(
      seed === undefined
        ? `MISSED within ${seeds} seeds: ${what}`
        : `found with ${seed + 1} seeds: ${what}`,
    );
  }
} finally {
  await rm(copy, { recursive: true });
}
process.exitCode = isMissed ? 1 : 0;

/**
 * Returns the first seed that fails, or `undefined`. `env` sets further variables of the
 * simulation.
 */
function firstFailure(env) {
  return new Promise((resolve) => {
    execFile(
      process.execPath,
      ["node_modules/vitest/vitest.mjs", "run", "test/simulation"],
      { cwd: copy, env: { ...process.env, ...env, SIMULATION_SEEDS: seeds }, maxBuffer: 2 ** 26 },
      (_error, stdout, stderr) => {
        const match = /seed (\d+); play it again/.exec(stdout + stderr);
        resolve(match === null ? undefined : Number(match[1]));
      },
    );
  });
}
