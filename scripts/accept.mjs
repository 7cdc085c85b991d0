// Runs an export through the code of the trainer that it is for.
//
//   npm run accept -- NAME...       slime, trl, verl, …; `all` for all of them
//
// Trainers that use HTTP (agent-lightning, nemo-gym), and slime's steps on a CPU (slime-live), run with the
// built service.
// Installs each trainer's pinned packages in a Python of its own, and its sources, in a folder outside the
// repository (TURNWRIGHT_TRAINERS, by default ~/.cache/turnwright/trainers). Runs the test of that name, and
// ends with a table. If a trainer cannot be installed here, the table says so and the exit status is 3. The
// status is 1 if a trainer's code refused the export.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readdirSync, rmSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { CannotInstall, findUv, run } from "../interop/install.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder =
  process.env.TURNWRIGHT_TRAINERS ?? path.join(homedir(), ".cache/turnwright/trainers");
const requirements = path.join(root, "integrations/accept/requirements");
const known = readdirSync(requirements)
  .map((name) => name.replace(/\.txt$/, ""))
  .filter((name) => name !== "base");

/** Trainers that call a service themselves: the oldest Python that they take, and the program. */
const live = {
  "slime-live": { python: "python3", program: "train_by_slime.py" },
  "agent-lightning": { python: "3.12", program: "manage_by_agl.py" },
  "nemo-gym": { python: "3.13", program: "collect_by_gym.py" },
};
known.push(...Object.keys(live));

/** Packages whose own requirements would install engines and CUDA: only their files are read. */
const packages = {
  verl: ["verl==0.9.1"],
  skyrl: ["skyrl==0.3.0"],
  openrlhf: ["openrlhf==0.11.0"],
  areal: ["areal==1.0.4"],
  verifiers: ["verifiers==0.4.0"],
  "nemo-gym": ["nemo-gym==0.7.0"],
};

/** Trainers that are on no package index, at the commits that were read. */
const source = (owner, name, commit) => ({
  url: `https://github.com/${owner}/${name}`,
  commit,
  into: `src/${name}`,
});
const slime = source("THUDM", "slime", "624b824a8");
const primeRl = source("PrimeIntellect-ai", "prime-rl", "559b44772");
const verifiers = source("PrimeIntellect-ai", "verifiers", "a60a606ec");
const nemoRl = source("NVIDIA-NeMo", "RL", "7ea279abf");
const sources = {
  slime: [slime],
  "slime-live": [slime],
  "prime-rl": [primeRl],
  "nemo-rl": [nemoRl],
};

/**
 * Additional checks that need a download: prime-rl's conversion requires one commit of verifiers.
 */
const welcome = { verifiers: [primeRl, verifiers] };

/**
 * Installs a trainer, each step once.
 *
 * @returns the Python that imports it.
 * @throws CannotInstall
 */
function install(name) {
  mkdirSync(folder, { recursive: true });
  const python = process.env.TURNWRIGHT_TRAINERS_PYTHON ?? newPython(name);
  for (const spec of packages[name] ?? []) {
    const target = path.join(folder, "pkgs", spec.split("==")[0]);
    if (existsSync(target)) continue;
    const into = ["--no-deps", "--python", python, "--target", target];
    // It asks for a patch release of Python that few have.
    const patch = name === "nemo-gym" ? ["--python-version", "3.13.14"] : [];
    step(["pip", "install", "--quiet", ...into, ...patch, spec]);
  }
  for (const one of sources[name] ?? []) fetchSource(one);
  for (const one of welcome[name] ?? []) {
    try {
      fetchSource(one);
    } catch (error) {
      if (!(error instanceof CannotInstall)) throw error;
      console.error(`${name} is checked in part: ${error.message}`);
    }
  }
  return python;
}

/** Each trainer has its own Python environment, because their pinned versions conflict. */
function newPython(name) {
  const venv = path.join(folder, "venvs", name);
  const python = path.join(venv, "bin/python");
  const version = live[name]?.python ?? "python3";
  if (!existsSync(python)) step(["venv", "--quiet", "--python", version, venv]);
  const place = name in live ? "integrations/accept/live/requirements" : requirements;
  const pinned = path.resolve(root, place, `${name}.txt`);
  step(["pip", "install", "--quiet", "--python", python, "--requirement", pinned]);
  return python;
}

function step(args) {
  const uv = findUv();
  console.log(`$ uv ${args.join(" ")}`);
  run(uv, args);
}

function fetchSource({ url, commit, into }) {
  const target = path.join(folder, into);
  if (existsSync(target)) return;
  console.log(`$ git clone ${url} ${target} # at ${commit}`);
  try {
    run("git", ["clone", "--quiet", "--filter=blob:none", "--no-checkout", url, target]);
    run("git", ["-C", target, "checkout", "--quiet", commit]);
  } catch (error) {
    rmSync(target, { recursive: true, force: true });
    if (error instanceof CannotInstall) throw new CannotInstall(`${url}: ${error.message}`);
    throw error;
  }
}

/** Runs the trainer's program over an export of every kind of episode. */
function isAccepted(name, python) {
  if (name in live) {
    const program = path.join(root, "integrations/accept/live", live[name].program);
    const modules = [path.join(folder, "pkgs", name), path.join(root, "integrations/python")];
    const env = {
      ...process.env,
      TURNWRIGHT_TRAINERS: folder,
      PYTHONPATH: modules.join(path.delimiter),
    };
    // Files that the trainers leave stay in their own folders.
    return spawnSync(python, [program], { cwd: folder, stdio: "inherit", env }).status === 0;
  }
  const test = ["src/export/acceptance.test.ts", "-t", `kind of episode ${name}$`];
  const { status } = spawnSync(
    process.execPath,
    ["node_modules/vitest/vitest.mjs", "run", ...test],
    {
      cwd: root,
      stdio: "inherit",
      env: { ...process.env, TURNWRIGHT_TRAINERS: folder, TURNWRIGHT_TRAINERS_PYTHON: python },
    },
  );
  return status === 0;
}

const asked = process.argv.slice(2);
const names = asked.includes("all") ? known : asked;
const unknown = names.filter((name) => !known.includes(name));
if (names.length === 0 || unknown.length > 0) {
  console.error(`Usage: npm run accept -- NAME...; NAME is one of ${known.join(", ")}, all`);
  process.exit(2);
}
const table = [];
for (const name of names) {
  try {
    const python = install(name);
    table.push({ name, result: isAccepted(name, python) ? "accepted" : "NOT ACCEPTED" });
  } catch (error) {
    if (!(error instanceof CannotInstall)) throw error;
    table.push({ name, result: `NOT CHECKED: ${error.message}` });
  }
}
console.log();
for (const { name, result } of table) console.log(`${name.padEnd(10)} ${result}`);
const results = table.map(({ result }) => result);
if (results.includes("NOT ACCEPTED")) process.exit(1);
process.exit(results.every((result) => result === "accepted") ? 0 : 3);
