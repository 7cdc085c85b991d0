import { readVariable } from "../../secrets/read-variable.ts";
import type { Variables } from "../create-engine.ts";
import type { GivenSettings } from "./setting.ts";

/**
 * Checks that environment variables named by settings such as `--api-key-env` exist, even if the
 * run does not use them. Call it before anything is written.
 *
 * @throws UsageError for a variable that is not set.
 */
export function requireVariables(settings: GivenSettings, env: Variables): void {
  for (const [name, value] of Object.entries(settings)) {
    if (name.endsWith("-env") && typeof value === "string") readVariable(env, value, `--${name}`);
  }
}
