import { redactionMark } from "../../secrets/redactor.ts";
import { samplingFactsIn, toSamplingSettings } from "../../run/policy/found-sampling.ts";
import type { RunManifest } from "../../run/folder/run-folder.ts";
import { runSettings } from "./run-config.ts";
import type { GivenSettings, Setting } from "./setting.ts";

/**
 * Returns the settings to store in a run's folder: all of them, and those that must stay the same
 * when the run is resumed.
 */
export function describeSettings(
  settings: object,
  table: readonly Setting[] = runSettings,
): { readonly settings: GivenSettings; readonly configuration: GivenSettings } {
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
 * Returns the stored settings of a run that `table` lists. A run that a program started stores only its settings of
 * sampling. Leaves out a setting with a redacted secret, because the folder does not have the secret.
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
