import { redactionMark } from "../../secrets/redactor.ts";
import { samplingFactsIn, toSamplingSettings } from "../../run/policy/found-sampling.ts";
import type { RunManifest } from "../../run/folder/run-folder.ts";
import { runSettings, type RunSettings } from "./run-config.ts";
import type { GivenSettings, Setting } from "./setting.ts";

/** Settings as a run's folder keeps them: all, and those that a run is resumed with as they were. */
export function describeSettings(settings: RunSettings): {
  readonly settings: GivenSettings;
  readonly configuration: GivenSettings;
} {
  const table: readonly Setting[] = runSettings;
  const kept = Object.entries(settings).filter(([, value]) => value !== undefined);
  const fixed = new Set(
    table.filter(({ operational }) => operational !== true).map(({ name }) => name),
  );
  return {
    settings: Object.fromEntries(kept),
    configuration: Object.fromEntries(kept.filter(([name]) => fixed.has(name))),
  };
}

/**
 * The settings that a stored run was played with, as far as a table has them; of one that a program started, those
 * of sampling. One that held a secret is left out, as if it had not been given: the secret is not in the folder.
 */
export function storedSettings(
  { found }: RunManifest,
  table: readonly Setting[] = runSettings,
): GivenSettings {
  const { sampling } = samplingFactsIn(found);
  const stored = {
    ...(found["settings"] as GivenSettings | undefined),
    ...(sampling && toSamplingSettings(sampling)),
  };
  const names = new Set(table.map(({ name }) => name));
  return Object.fromEntries(
    Object.entries(stored).filter(
      ([name, value]) =>
        value !== undefined && names.has(name) && !JSON.stringify(value).includes(redactionMark),
    ),
  );
}
