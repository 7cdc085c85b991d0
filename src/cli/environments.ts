import { stat } from "node:fs/promises";
import path from "node:path";
import type { TauEnvironment } from "../../environments/tau-bench/index.ts";
import type { Environment } from "../environment/environment.ts";
import { UsageError } from "../errors.ts";
import type { User } from "../user/user.ts";
import { isModulePath, loadModuleEnvironment, loadModuleUser } from "./environment-module.ts";

/** How an environment is found by name. */
interface EnvironmentEntry {
  readonly name: string;
  /** Whether it plays on a τ-bench bundle. */
  readonly needsBundle: boolean;
  readonly load: (dataDir: string | undefined) => Promise<Environment>;
  /** Who speaks for the environment's users where no model does; absent: nobody of its own. */
  readonly loadUser?: () => Promise<User>;
}

/** Every environment that the command line knows by name. */
export const environmentEntries: readonly EnvironmentEntry[] = [
  { name: "tau-retail", needsBundle: true, load: (dir) => loadTauEnvironment("tau-retail", dir) },
  { name: "tau-airline", needsBundle: true, load: (dir) => loadTauEnvironment("tau-airline", dir) },
  {
    name: "storefront",
    needsBundle: false,
    load: async () => (await import("../../environments/storefront/index.ts")).createStorefront(),
    loadUser: async () => (await import("../../environments/storefront/index.ts")).storefrontUser(),
  },
];

/**
 * Loads one of τ-bench's domains.
 *
 * @throws UsageError for any other environment, or a bundle that is absent or broken.
 */
export async function loadTauEnvironment(
  name: string,
  dataDir: string | undefined,
): Promise<TauEnvironment> {
  const { createTauAirline, createTauRetail, loadTauBenchBundle } =
    await import("../../environments/tau-bench/index.ts");
  switch (name) {
    case "tau-retail": {
      const bundle = await loadTauBenchBundle(await bundleDir(dataDir), { only: ["retail"] });
      return createTauRetail({ bundle });
    }
    case "tau-airline": {
      const bundle = await loadTauBenchBundle(await bundleDir(dataDir), { only: ["airline"] });
      return createTauAirline({ bundle });
    }
    default:
      throw new UsageError(`Cannot play "${name}" this way: expected tau-retail or tau-airline`);
  }
}

/** Whether the name is one of τ-bench's domains. */
export function isTauName(name: string): boolean {
  return environmentEntries.some((entry) => entry.name === name && entry.needsBundle);
}

/**
 * Loads an environment by its name, or from a module by its path. `dataDir` is the folder given by
 * `--data`, where one was.
 *
 * @throws UsageError for an unknown name, a module that is none, or data that is absent or broken.
 */
export async function loadEnvironment(
  name: string,
  dataDir: string | undefined,
): Promise<Environment> {
  if (isModulePath(name)) return await loadModuleEnvironment(name);
  return await findEntry(name).load(dataDir);
}

/**
 * The user that an environment brings itself, if it does.
 *
 * @throws UsageError as `loadEnvironment()` does.
 */
export async function loadOwnUser(name: string): Promise<User | undefined> {
  if (isModulePath(name)) return await loadModuleUser(name);
  return await findEntry(name).loadUser?.();
}

function findEntry(name: string): EnvironmentEntry {
  const entry = environmentEntries.find((candidate) => candidate.name === name);
  if (entry !== undefined) return entry;
  const known = environmentEntries.map((candidate) => candidate.name).join(", ");
  throw new UsageError(
    `Cannot find environment "${name}": expected one of ${known}, or a module such as ./${name}.js`,
  );
}

/** Where a bundle is looked for when no folder is named, in this order. */
const bundlePlaces = ["data/tau-bench", "../shared/data/tau-bench"];

/** The τ-bench bundle at hand, or `undefined` where there is none. */
export async function findBundle(): Promise<string | undefined> {
  const fromVariable = process.env["TURNWRIGHT_TAU_BENCH"];
  const places = fromVariable === undefined ? bundlePlaces : [fromVariable, ...bundlePlaces];
  for (const place of places) {
    const found = await stat(path.join(place, "retail")).catch(() => undefined);
    if (found?.isDirectory() === true) return place;
  }
  return undefined;
}

async function bundleDir(dataDir: string | undefined): Promise<string> {
  const dir = dataDir ?? (await findBundle());
  if (dir !== undefined) return dir;
  throw new UsageError(
    "Cannot find τ-bench's data: name a bundle folder with --data DIR or TURNWRIGHT_TAU_BENCH " +
      `(looked in ${bundlePlaces.join(", ")})`,
  );
}
