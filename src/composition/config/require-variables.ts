import { readVariable } from "../../secrets/read-variable.ts";
import type { Variables } from "../create-engine.ts";
import type { GivenSettings } from "./setting.ts";

/**
 * Refuses settings that are to name an environment variable, such as `--api-key-env`, and name none that is set,
 * used or not: before anything is written.
 *
 * @throws UsageError
 */
export function requireVariables(settings: GivenSettings, env: Variables): void {
  for (const [name, value] of Object.entries(settings)) {
    if (name.endsWith("-env") && typeof value === "string") readVariable(env, value, `--${name}`);
  }
}
