import { expectedName } from "../../../packages/python-values/src/support/nearest-name.ts";
import { UsageError } from "../../errors.ts";

/** τ-bench's domains: they play on a bundle of its data. */
const tauNames = ["tau-retail", "tau-airline"] as const;

/** One of τ-bench's domains. */
export type TauName = (typeof tauNames)[number];

/** Every environment that has a name of its own, in the order in which they are listed. */
export const environmentNames = [...tauNames, "storefront"] as const;

/** One of the environments that have a name. */
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
 * The name of an environment that there is.
 *
 * @throws UsageError for any other.
 */
export function readEnvironmentName(name: string): EnvironmentName {
  const known = environmentNames.find((candidate) => candidate === name);
  if (known !== undefined) return known;
  throw new UsageError(
    `Cannot find environment "${name}": ${expectedName(name, environmentNames)}, ` +
      `or a module such as ./${/^\w[\w-]*$/.test(name) ? name : "my-environment"}.js`,
  );
}
