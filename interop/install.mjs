// Installs a server into a virtual environment of its own, once, outside the repository.
import { spawnSync } from "node:child_process";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { homedir } from "node:os";
import path from "node:path";

/** A machine that has not what an installation takes: Python, its packages, a network, room. */
export class CannotInstall extends Error {}

/** Where environments are kept: `XDG_CACHE_HOME`, or `~/.cache`. */
export function cacheFolder() {
  return path.join(
    process.env.XDG_CACHE_HOME ?? path.join(homedir(), ".cache"),
    "turnwright/interop",
  );
}

/**
 * Makes sure that a server is installed, and returns its folder: `venv` in it is the environment. What
 * was not installed to its end is installed again.
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
 * uv, installed from the package index once: it keeps packages that several environments share on the disk
 * only once.
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

/** Gives up soon where there is no network, and takes the Python that is there. */
const PATIENCE = { PIP_RETRIES: "1", PIP_DEFAULT_TIMEOUT: "20", UV_PYTHON_DOWNLOADS: "never" };

/** Longest step, in milliseconds. */
const STEP_MS = 60 * 60_000;

/** @throws CannotInstall where a command is absent, fails, or takes too long, with its last line. */
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
