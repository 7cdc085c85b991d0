// Installs a server once into its own virtual environment, outside the repository.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** The machine lacks a requirement of the installation: Python, its packages, a network, disk space. */
export class CannotInstall extends Error {}

/** The folder of the environments: in `XDG_CACHE_HOME`, or `~/.cache`. */
export function cacheFolder() {
  return path.join(
    process.env.XDG_CACHE_HOME ?? path.join(homedir(), ".cache"),
    "turnwright/interop",
  );
}

/**
 * Installs a server if necessary, and returns its folder. The environment is `venv` in it. An incomplete
 * installation is repeated.
 *
 * @throws CannotInstall
 */
export function install({ name, version, python, packages, overrides = [], finish }) {
  const folder = path.join(cacheFolder(), `${name}-${version}`);
  const marker = path.join(folder, "installed");
  if (existsSync(marker)) return folder;
  mkdirSync(folder, { recursive: true });
  const uv = findUv();
  const environment = path.join(folder, "venv");
  run(uv, ["venv", "--quiet", "--clear", "--python", python, environment]);
  const overridesFile = path.join(folder, "overrides.txt");
  writeFileSync(overridesFile, overrides.map((line) => `${line}\n`).join(""));
  for (const { options = [], names } of packages) {
    const target = ["--python", path.join(environment, "bin/python"), "--overrides", overridesFile];
    run(uv, ["pip", "install", "--quiet", ...target, ...options, ...names]);
  }
  finish?.(environment);
  writeFileSync(marker, "");
  return folder;
}

/**
 * Installs uv once from the package index. uv stores a package of several environments only once on the
 * disk.
 *
 * @throws CannotInstall
 */
export function findUv() {
  const tools = path.join(cacheFolder(), "uv");
  if (!existsSync(path.join(tools, "bin/uv"))) {
    run("python3", ["-m", "venv", tools]);
    run(path.join(tools, "bin/pip"), ["install", "--quiet", "--disable-pip-version-check", "uv"]);
  }
  return path.join(tools, "bin/uv");
}

/** Fails fast without a network, and uses the installed Python. */
const PATIENCE = { PIP_RETRIES: "1", PIP_DEFAULT_TIMEOUT: "20", UV_PYTHON_DOWNLOADS: "never" };

/** The time limit of a step, in milliseconds. */
const STEP_MS = 60 * 60_000;

/** @throws CannotInstall with the last line of output, if a command is absent, fails, or takes too long. */
export function run(command, args) {
  const { status, error, stderr } = spawnSync(command, args, {
    encoding: "utf8",
    env: { ...process.env, ...PATIENCE },
    timeout: STEP_MS,
  });
  if (status === 0) return;
  const [last = "no message"] = (stderr ?? "").trim().split("\n").slice(-1);
  throw new CannotInstall(`${path.basename(command)} ${args[0]}: ${error?.message ?? last}`);
}
