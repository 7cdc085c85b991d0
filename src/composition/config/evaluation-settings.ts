import { UsageError } from "../../errors.ts";
import { runSettings, type RunSettings } from "./run-config.ts";
import { text, type GivenSettings, type Setting } from "./setting.ts";

/**
 * The settings of a run that an evaluation lacks, because it plays each task `trials` times from its start.
 */
const notOfEvaluations = [
  "epochs",
  "groups",
  "branch-at",
] as const satisfies readonly (keyof RunSettings)[];

/** Settings with other defaults in an evaluation than in a rollout. */
const replaced: Readonly<Record<string, Setting>> = {
  temperature: {
    name: "temperature",
    kind: { type: "number", min: 0, max: 100 },
    value: "t",
    help: "sampling temperature; 0 is greedy",
    default: 0,
  },
  split: { name: "split", kind: text, help: "split of the environment's tasks", default: "test" },
};

const leftOut: ReadonlySet<string> = new Set(notOfEvaluations);

/** The settings of an evaluation's run. */
export const evaluationSettings: readonly Setting[] = runSettings
  .filter(({ name }) => !leftOut.has(name))
  .map((setting) => replaced[setting.name] ?? setting);

/**
 * Returns the evaluation's own defaults for the settings that are not given.
 *
 * @throws UsageError for a setting that an evaluation does not have.
 */
export function evaluationDefaults(settings: GivenSettings): GivenSettings {
  for (const name of notOfEvaluations) {
    if (settings[name] === undefined) continue;
    throw new UsageError(
      `Cannot use ${name} in an evaluation: it plays each task as often as it has trials, each from the ` +
        "beginning, expected trials alone",
    );
  }
  const missing = Object.values(replaced).filter(({ name }) => settings[name] === undefined);
  return Object.fromEntries(missing.map(({ name, default: value }) => [name, value]));
}
