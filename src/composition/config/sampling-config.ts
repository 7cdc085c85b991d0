import type { SamplingParameters } from "../../engine/engine.ts";
import { count, type Setting, type SettingValues } from "./setting.ts";

/** The settings of sampling. */
export const samplingSettings = [
  {
    name: "temperature",
    kind: { type: "number", min: 0, max: 100 },
    value: "t",
    help: "sampling temperature",
    default: 1,
  },
  {
    name: "top-p",
    kind: { type: "number", min: 0, max: 1 },
    value: "p",
    help: "nucleus sampling",
    default: 1,
  },
  {
    name: "top-k",
    kind: { type: "number", min: -1, max: Infinity, whole: true },
    value: "k",
    help: "most likely tokens kept; -1 for all",
    default: -1,
  },
  {
    name: "min-p",
    kind: { type: "number", min: 0, max: 1 },
    value: "p",
    help: "least share of the top token",
    default: 0,
  },
  {
    name: "sampling-seed",
    kind: count(0),
    value: "n",
    help: "seed for repeatable sampling, if the engine supports it",
  },
] as const satisfies readonly Setting[];

/** Reads the sampling parameters. */
export function readSampling(
  values: SettingValues<(typeof samplingSettings)[number]>,
): SamplingParameters {
  const seed = values["sampling-seed"];
  return {
    temperature: values.temperature,
    topP: values["top-p"],
    topK: values["top-k"],
    minP: values["min-p"],
    ...(seed !== undefined && { seed }),
  };
}
