import { pythonLibraries } from "../../environment/python/python-name.ts";
import { expectedName } from "../../../packages/python-values/src/support/nearest-name.ts";
import { UsageError } from "../../errors.ts";

/** The names of τ-bench's domains, which need a bundle of its data. */
const tauNames = ["tau-retail", "tau-airline"] as const;

/** One of τ-bench's domains. */
export type TauName = (typeof tauNames)[number];

/** The names of built-in environments, in the order of lists. */
export const environmentNames = [...tauNames, "storefront"] as const;

/** The name of a built-in environment. */
type EnvironmentName = (typeof environmentNames)[number];

/** True for the name of a τ-bench domain. */
export function isTauName(name: string): name is TauName {
  return (tauNames as readonly string[]).includes(name);
}

/** True if an environment is named by a module's path, such as `./lamps.js`. */
export function isModulePath(name: string): boolean {
  return /[/\\]|\.[cm]?[jt]s$/.test(name);
}

/**
 * Checks the name of a built-in environment.
 *
 * @throws UsageError for any other name.
 */
export function readEnvironmentName(name: string): EnvironmentName {
  const known = environmentNames.find((candidate) => candidate === name);
  if (known !== undefined) return known;
  const file = `./${/^\w[\w-]*$/.test(name) ? name : "my-environment"}`;
  const ofLibraries = name.includes(":")
    ? `, or an environment of a library: ${pythonLibraries.map((one) => `${one}:NAME`).join(", ")}`
    : "";
  throw new UsageError(
    `Cannot find environment "${name}": ${expectedName(name, environmentNames)}, ` +
      `or a module such as ${file}.js or ${file}.py${ofLibraries}`,
  );
}
