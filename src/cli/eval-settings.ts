import { handOutSettings } from "../queue/queue-settings.ts";
import { evaluationSettings } from "../composition/config/evaluation-settings.ts";
import { runSettings } from "../composition/config/run-config.ts";
import {
  completeSettings,
  count,
  flag,
  price,
  type GivenSettings,
  type Setting,
} from "../composition/config/setting.ts";
import type { EvaluationPlan } from "../report/evaluation-tally.ts";
import { displaySettings, pickSettings } from "./display-settings.ts";
import { watchSettings } from "./watch-settings.ts";

/** The flag for the `samples` of an evaluation. */
const trials: Setting = {
  name: "trials",
  kind: count(1),
  value: "k",
  help: "attempts per task: pass^1 to pass^k",
  default: 1,
};

/** The lowest reward of a success, for reports and the viewer. */
export const successThresholdSetting = {
  name: "success-threshold",
  kind: { type: "number", min: -Infinity, max: Infinity },
  value: "reward",
  help: "lowest reward of a success (default: the environment's own verdict, or the reward 1)",
} as const satisfies Setting;

/** The settings of a report: the prices of the policy's tokens, and the lowest reward of a success. */
export const reportSettings = [
  {
    name: "policy-input-price",
    kind: price,
    value: "usd",
    help: "US dollars per million prompt tokens, for the report",
  },
  {
    name: "policy-output-price",
    kind: price,
    value: "usd",
    help: "US dollars per million sampled tokens, for the report",
  },
  successThresholdSetting,
] as const satisfies readonly Setting[];

/** The settings of `turnwright eval`. */
export const evalSettings: readonly Setting[] = [
  ...evaluationSettings.map((setting) => (setting.name === "samples" ? trials : setting)),
  ...handOutSettings,
  ...displaySettings,
  ...watchSettings,
  {
    name: "resume",
    kind: flag,
    help: "continue the run in --out; missing settings come from that run",
  },
  ...reportSettings,
];

/** Converts an evaluation's settings to those of its run. */
export function toRunSettings(settings: GivenSettings): GivenSettings {
  const { trials: samples, ...values } = completeSettings(evalSettings, settings);
  return { ...pickSettings(runSettings, values), samples };
}

/** Returns the settings of an evaluation that continues a run with these settings. */
export function toEvalSettings({ samples, ...settings }: GivenSettings): GivenSettings {
  return samples === undefined ? settings : { ...settings, trials: samples };
}

/** The prices of the policy's tokens, and the lowest reward of a success. */
export type ReportTerms = Pick<EvaluationPlan, "prices" | "successThreshold">;

/** Reads the settings of a report. Prices are in US dollars per million tokens; if only one is given, the other is 0. */
export function readReportTerms(settings: GivenSettings): ReportTerms {
  const values = completeSettings(reportSettings, pickSettings(reportSettings, settings));
  const { "policy-input-price": inputUsd, "policy-output-price": outputUsd } = values;
  const successThreshold = values["success-threshold"];
  const hasPrices = inputUsd !== undefined || outputUsd !== undefined;
  return {
    ...(hasPrices && { prices: { inputUsd: inputUsd ?? 0, outputUsd: outputUsd ?? 0 } }),
    ...(successThreshold !== undefined && { successThreshold }),
  };
}
