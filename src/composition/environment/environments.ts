import { stat } from "node:fs/promises";
import path from "node:path";
import type { TauEnvironment } from "../../../environments/tau-bench/index.ts";
import type { Environment } from "../../environment/environment.ts";
import type { PythonEnvironment } from "../../environment/python/create-python-environment.ts";
import { isPythonEnvironment } from "../../environment/python/python-name.ts";
import { UsageError } from "../../errors.ts";
import type { User } from "../../user/user.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import type { EnvironmentConfig } from "../config/scope-config.ts";
import { loadModuleEnvironment, loadModuleUser } from "./environment-module.ts";
import { isModulePath, isTauName, readEnvironmentName, type TauName } from "./environment-names.ts";

/**
 * Loads a τ-bench domain.
 * @throws UsageError if its bundle is missing or broken.
 */
export async function loadTauEnvironment(
  name: TauName,
  dataDir: string | undefined,
): Promise<TauEnvironment> {
  const { createTauAirline, createTauRetail, loadTauBenchBundle } =
    await import("../../../environments/tau-bench/index.ts");
  const dir = await bundleDir(dataDir);
  switch (name) {
    case "tau-retail":
      return createTauRetail({ bundle: await loadTauBenchBundle(dir, { only: ["retail"] }) });
    case "tau-airline":
      return createTauAirline({ bundle: await loadTauBenchBundle(dir, { only: ["airline"] }) });
  }
}

/**
 * Loads an environment: by its name, from a module, or in Python.
 * @throws UsageError for an unknown name, an invalid module, or missing or broken data.
 */
export async function loadEnvironment(config: EnvironmentConfig): Promise<Environment> {
  const { name, dataDir } = config;
  if (isPythonEnvironment(name)) return await loadPython(config);
  if (isModulePath(name)) return await loadModuleEnvironment(name);
  const known = readEnvironmentName(name);
  if (isTauName(known)) return await loadTauEnvironment(known, dataDir);
  return (await import("../../../environments/storefront/index.ts")).createStorefront();
}

/**
 * Returns the environment's own user, or `undefined` if it has none.
 * @throws UsageError as `loadEnvironment()` does.
 */
export async function loadOwnUser(config: EnvironmentConfig): Promise<User | undefined> {
  const { name } = config;
  if (isPythonEnvironment(name)) return (await loadPython(config)).user;
  if (isModulePath(name)) return await loadModuleUser(name);
  if (readEnvironmentName(name) !== "storefront") return undefined;
  return (await import("../../../environments/storefront/index.ts")).createStorefrontUser();
}

/** The environments in Python that are loaded, by their configuration. Their processes are started once. */
const pythonEnvironments = new Map<string, Promise<PythonEnvironment>>();

/**
 * Loads an environment in Python.
 * @throws UsageError if it cannot be loaded.
 */
export async function loadPython(config: EnvironmentConfig): Promise<PythonEnvironment> {
  const { name: environment, args, python, processes } = config;
  const options = { environment, ...withoutUndefined({ args, python, processes }) };
  const key = JSON.stringify(options);
  const known = pythonEnvironments.get(key);
  if (known !== undefined) return await known;
  const { createPythonEnvironment } =
    await import("../../environment/python/create-python-environment.ts");
  const created = createPythonEnvironment(options);
  pythonEnvironments.set(key, created);
  created.catch(() => pythonEnvironments.delete(key));
  return await created;
}

/** The usual folder of a bundle, if neither a flag nor a variable names one. */
const usualBundle = "data/tau-bench";

/**
 * Returns the folder of τ-bench's bundle: that of `TURNWRIGHT_TAU_BENCH`, otherwise
 * `data/tau-bench`. Returns `undefined` if neither has one.
 */
export async function findBundle(): Promise<string | undefined> {
  const fromVariable = process.env["TURNWRIGHT_TAU_BENCH"];
  const places = fromVariable === undefined ? [usualBundle] : [fromVariable, usualBundle];
  for (const place of places) {
    const found = await stat(path.join(place, "retail")).catch(() => undefined);
    if (found?.isDirectory() === true) return place;
  }
  return undefined;
}

/**
 * Returns the folder of τ-bench's bundle.
 * @throws UsageError if none is named and none is found.
 */
export async function bundleDir(dataDir: string | undefined): Promise<string> {
  const dir = dataDir ?? (await findBundle());
  if (dir !== undefined) return dir;
  throw new UsageError(
    "Cannot find τ-bench's data: fetch it with `turnwright env pull tau-bench --to data/tau-bench`, or " +
      `name a bundle folder with --data DIR or TURNWRIGHT_TAU_BENCH (looked in ${usualBundle})`,
  );
}
