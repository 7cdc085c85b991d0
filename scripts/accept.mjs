// Runs an export through the code of the trainer that it is for.
//
//   npm run accept -- NAME...       slime, trl, verl, …; `all` for all of them
//
// Installs the trainer's pinned packages and sources in a folder outside the repository
// (TURNWRIGHT_TRAINERS, by default ~/.cache/turnwright/trainers), and then runs the test of that name.
// What cannot be installed here is said, and the exit status is 3.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder =
  process.env.TURNWRIGHT_TRAINERS ?? path.join(homedir(), ".cache/turnwright/trainers");
const requirements = path.join(root, "integrations/accept/requirements");
const known = readdirSync(requirements)
  .map((name) => name.replace(/\.txt$/, ""))
  .filter((name) => name !== "base");

/** Packages whose own requirements would install engines and CUDA: only their files are read. */
const packages = {
  verl: ["verl==0.9.1"],
  skyrl: ["skyrl==0.3.0"],
  openrlhf: ["openrlhf==0.11.0"],
  areal: ["areal==1.0.4"],
  verifiers: ["verifiers==0.4.0"],
};

/** Trainers that are on no package index, at the commits that were read. */
const slime = { url: "https://github.com/THUDM/slime", commit: "624b824a8", into: "src/slime" };
const primeRl = {
  url: "https://github.com/PrimeIntellect-ai/prime-rl",
  commit: "559b44772",
  into: "src/prime-rl",
};
const nemoRl = { url: "https://github.com/NVIDIA-NeMo/RL", commit: "7ea279abf", into: "src/RL" };
const sources = {
  slime: [slime],
  "prime-rl": [primeRl],
  verifiers: [primeRl],
  "nemo-rl": [nemoRl],
};

function run(command, args, options = {}) {
  console.log(`$ ${[command, ...args].join(" ")}`);
  return spawnSync(command, args, { stdio: "inherit", ...options }).status === 0;
}

/** Why a trainer cannot be installed here; `undefined` where it is. */
function install(name, python) {
  const pinned = ["-m", "pip", "install", "--quiet"];
  if (!run(python, [...pinned, "-r", path.join(requirements, `${name}.txt`)])) {
    return `pip cannot install integrations/accept/requirements/${name}.txt`;
  }
  for (const spec of packages[name] ?? []) {
    const target = path.join(folder, "pkgs", spec.split("==")[0]);
    if (existsSync(target)) continue;
    if (!run(python, [...pinned, "--no-deps", "--target", target, spec])) {
      return `pip cannot install ${spec}`;
    }
  }
  for (const { url, commit, into } of sources[name] ?? []) {
    const target = path.join(folder, into);
    if (existsSync(target)) continue;
    const isThere =
      run("git", ["clone", "--quiet", "--filter=blob:none", url, target]) &&
      run("git", ["-C", target, "checkout", "--quiet", commit]);
    if (!isThere) return `git cannot fetch ${url} at ${commit}`;
  }
  return undefined;
}

const asked = process.argv.slice(2);
const names = asked.includes("all") ? known : asked;
const unknown = names.filter((name) => !known.includes(name));
if (names.length === 0 || unknown.length > 0) {
  console.error(`Usage: npm run accept -- NAME...; NAME is one of ${known.join(", ")}, all`);
  process.exit(2);
}
const failed = [];
const absent = [];
for (const name of names) {
  // A Python of its own for each: what one trainer pins, another need not bear.
  const venv = path.join(folder, "venvs", name);
  const python = process.env.TURNWRIGHT_TRAINERS_PYTHON ?? path.join(venv, "bin/python");
  mkdirSync(folder, { recursive: true });
  const isThere = existsSync(python) || run("python3", ["-m", "venv", venv]);
  const why = isThere ? install(name, python) : "python3 cannot make a virtual environment";
  if (why !== undefined) {
    absent.push(`${name} was NOT checked: ${why}`);
    continue;
  }
  const isAccepted = run(
    process.execPath,
    [
      "node_modules/vitest/vitest.mjs",
      "run",
      "src/export/acceptance.test.ts",
      "-t",
      `kind of episode ${name}$`,
    ],
    {
      cwd: root,
      env: { ...process.env, TURNWRIGHT_TRAINERS: folder, TURNWRIGHT_TRAINERS_PYTHON: python },
    },
  );
  if (!isAccepted) failed.push(name);
}
for (const line of absent) console.error(line);
if (failed.length > 0) console.error(`Not accepted: ${failed.join(", ")}`);
process.exit(failed.length > 0 ? 1 : absent.length > 0 ? 3 : 0);
