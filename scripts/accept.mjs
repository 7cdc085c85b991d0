// Runs our exports, and attempts with several rows, through the code of the trainers that they are for.
//
//   npm run accept -- NAME...           exports: slime, trl, verl, …; `all` for all of them
//   npm run accept -- --rows NAME...    the weights of attempts with several rows
//   npm run accept -- --columns NAME... the places of side columns
//   npm run accept -- --rows --run FOLDER NAME...    the same for a run of your own
//
// Trainers that use HTTP (agent-lightning, nemo-gym), and slime's steps on a CPU (slime-live), run with the
// built service.
// Installs each trainer's pinned packages in a Python of its own, and its sources, in a folder outside the
// repository (TURNWRIGHT_TRAINERS, by default ~/.cache/turnwright/trainers). Runs the test of that name, and
// ends with a table. If a trainer cannot be installed here, the table says so and the exit status is 3. The
// status is 1 if a trainer's code refused the export, or weighed an attempt wrongly.
//
// TURNWRIGHT_TRAINERS_GIT names the place of the sources, where GitHub cannot be reached:
// `file:///mirrors/{owner}/{name}.git`. The commits are the same.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";
import { fileURLToPath } from "node:url";
import { parseArgs } from "node:util";
import { CannotInstall, findUv, run } from "../interop/install.mjs";
import { kinds, live, packagesOf, pythonOf, sourcesOf, welcomeOf } from "./trainers.mjs";

const root = fileURLToPath(new URL("../", import.meta.url));
const folder =
  process.env.TURNWRIGHT_TRAINERS ?? path.join(homedir(), ".cache/turnwright/trainers");
const repositories = process.env.TURNWRIGHT_TRAINERS_GIT ?? "https://github.com/{owner}/{name}";

/**
 * Installs a trainer, each step once.
 *
 * @returns the Python that imports it.
 * @throws CannotInstall
 */
function install(kind, name) {
  mkdirSync(folder, { recursive: true });
  const python = process.env.TURNWRIGHT_TRAINERS_PYTHON ?? newPython(kind, name);
  for (const spec of packagesOf(kind, name)) {
    once(path.join(folder, "pkgs", spec.split("==")[0]), spec, (target) => {
      const into = ["--no-deps", "--python", python, "--target", target];
      // It asks for a patch release of Python that few have.
      const patch = name === "nemo-gym" ? ["--python-version", "3.13.14"] : [];
      step(["pip", "install", "--quiet", ...into, ...patch, spec]);
    });
  }
  for (const one of sourcesOf(kind, name)) fetchSource(one);
  for (const one of welcomeOf(kind, name)) {
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
function newPython(kind, name) {
  const isWide = kind === "rows" || kind === "columns";
  const venv = path.join(folder, "venvs", isWide ? `${name}-rows` : name);
  const python = path.join(venv, "bin/python");
  once(venv, pythonOf(name), () => {
    step(["venv", "--quiet", "--clear", "--python", pythonOf(name), venv]);
  });
  const pinned = path.join(kinds[kind].requirements, `${name}.txt`);
  step(["pip", "install", "--quiet", "--python", python, "--requirement", pinned]);
  return python;
}

/** Makes a folder, unless it was made of the same pin. What was made of another pin is removed first. */
function once(target, pin, make) {
  const marker = `${target}.pin`;
  if (existsSync(target) && existsSync(marker) && readFileSync(marker, "utf8") === pin) return;
  rmSync(target, { recursive: true, force: true });
  make(target);
  writeFileSync(marker, pin);
}

function step(args) {
  const uv = findUv();
  console.log(`$ uv ${args.join(" ")}`);
  run(uv, args);
}

function fetchSource({ owner, name, commit, into }) {
  const url = repositories.replace("{owner}", owner).replace("{name}", name);
  once(path.join(folder, into), commit, (target) => {
    console.log(`$ git fetch --depth 1 ${url} ${commit} # into ${target}`);
    try {
      run("git", ["init", "--quiet", target]);
      run("git", ["-C", target, "fetch", "--quiet", "--depth", "1", url, commit]);
      run("git", ["-C", target, "checkout", "--quiet", "FETCH_HEAD"]);
    } catch (error) {
      rmSync(target, { recursive: true, force: true });
      if (error instanceof CannotInstall) throw new CannotInstall(`${url}: ${error.message}`);
      throw error;
    }
  });
}

/** Runs the trainer's program. */
function isAccepted(kind, name, python) {
  const env = { ...process.env, TURNWRIGHT_TRAINERS: folder, TURNWRIGHT_TRAINERS_PYTHON: python };
  if (kind === "live") {
    const modules = [path.join(folder, "pkgs", name), path.join(root, "integrations/python")];
    const program = path.join(kinds.live.programs, live[name]);
    // Files that the trainers leave stay in their own folders.
    return ends(python, [program], folder, {
      ...env,
      PYTHONPATH: modules.join(path.delimiter),
    });
  }
  const tests = {
    rows: ["test/export/rows-acceptance.test.ts", "-t", `as one ${name}$`],
    columns: ["test/export/columns-acceptance.test.ts", "-t", `at its token ${name}$`],
    exports: ["src/export/acceptance.test.ts", "-t", `kind of episode ${name}$`],
  };
  const vitest = ["node_modules/vitest/vitest.mjs", "run", ...tests[kind]];
  return ends(process.execPath, vitest, root, env);
}

function ends(command, args, cwd, env) {
  return spawnSync(command, args, { cwd, stdio: "inherit", env }).status === 0;
}

const { values, positionals } = readArguments();
if (values.run !== undefined) process.env.TURNWRIGHT_ROWS_RUN = path.resolve(values.run);

function readArguments() {
  const options = {
    rows: { type: "boolean", default: false },
    columns: { type: "boolean", default: false },
    run: { type: "string" },
    help: { type: "boolean", short: "h", default: false },
  };
  try {
    return parseArgs({ allowPositionals: true, options });
  } catch (error) {
    console.error(error.message);
    process.exit(2);
  }
}

/** Returns the programs that are asked for: by kind and name. */
function programsAskedFor() {
  const namesOf = (kind) =>
    readdirSync(kinds[kind].requirements)
      .map((file) => file.replace(/\.txt$/, ""))
      .filter((name) => name !== "base")
      .map((name) => ({ kind, name }));
  const one = values.columns ? "columns" : values.rows ? "rows" : undefined;
  const known = one ? namesOf(one) : [...namesOf("exports"), ...namesOf("live")];
  const isKnown = (asked) => asked === "all" || known.some(({ name }) => name === asked);
  const names = known.map(({ name }) => name).join(", ");
  const usage = `Usage: npm run accept -- [--columns | --rows [--run FOLDER]] NAME...; NAME is one of ${names}, all`;
  if (values.help) {
    console.log(usage);
    process.exit(0);
  }
  if (positionals.length === 0 || !positionals.every(isKnown)) {
    console.error(usage);
    process.exit(2);
  }
  return known.filter(({ name }) => positionals.includes("all") || positionals.includes(name));
}

const table = [];
for (const { kind, name } of programsAskedFor()) {
  try {
    const python = install(kind, name);
    table.push({ name, result: isAccepted(kind, name, python) ? "accepted" : "NOT ACCEPTED" });
  } catch (error) {
    if (!(error instanceof CannotInstall)) throw error;
    table.push({ name, result: `NOT CHECKED: ${error.message}` });
  }
}
console.log();
for (const { name, result } of table) console.log(`${name.padEnd(16)} ${result}`);
const results = table.map(({ result }) => result);
if (results.includes("NOT ACCEPTED")) process.exit(1);
process.exit(results.every((result) => result === "accepted") ? 0 : 3);
