import { completeSettings } from "../../composition/config/setting.ts";
import {
  readEnvironmentConfig,
  scopeSettings,
  type EnvironmentConfig,
} from "../../composition/config/scope-config.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";

/** The flags that configure the environment of an `env` command. */
export interface EnvironmentFlags {
  readonly data?: string | undefined;
  /** A JSON object. */
  readonly envArgs?: string | undefined;
  readonly python?: string | undefined;
}

/**
 * Returns the configuration of an environment that is named on the command line.
 * @throws UsageError for an unknown name, or for a flag of another kind of environment.
 */
export function environmentOf(
  name: string,
  { data, envArgs, python }: EnvironmentFlags,
): EnvironmentConfig {
  const given = withoutUndefined({ env: name, data, "env-args": envArgs, python });
  return readEnvironmentConfig(completeSettings(scopeSettings, given));
}
