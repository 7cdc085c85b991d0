import type { LogprobConvention, SamplingParameters } from "../engine/engine.ts";
import { askDescription } from "../episode/ask-description.ts";
import type { EpisodeSetup } from "../episode/episode-setup.ts";
import { RolloutError, UsageError } from "../errors.ts";
import { given } from "../internal/given.ts";
import { isRow } from "../trajectory/violation.ts";
import type { RunManifest } from "./run-manifest.ts";

/** How a run's tokens were drawn, as `run.json` says it: what an engine knows by names of its own is left out. */
export type FoundSampling = Omit<SamplingParameters, "extra">;

/** What `run.json` says of sampling; absent members are not said. */
export interface SamplingFacts {
  readonly sampling?: FoundSampling;
  /** Which probabilities the recorded logprobs are of. */
  readonly logprobConvention?: LogprobConvention;
}

/** Settings of the command line, by what they are for an engine. */
const settingNames = {
  temperature: "temperature",
  topP: "top-p",
  topK: "top-k",
  minP: "min-p",
  seed: "sampling-seed",
} as const satisfies Partial<Record<keyof FoundSampling, string>>;

const conventions: readonly unknown[] = ["tempered", "raw", "processed"];

/** Reads how a run sampled: what `startRun()` noted goes before the settings of the command line. */
export function samplingFactsIn(found: unknown): SamplingFacts {
  const { sampling, settings, engine, logprobConvention } = isRow(found) ? found : {};
  const told = isRow(engine) ? engine["logprobConvention"] : undefined;
  const convention = told ?? logprobConvention;
  return {
    ...given({ sampling: isRow(sampling) ? numbersOf(sampling) : samplingOf(settings) }),
    ...(conventions.includes(convention) && {
      logprobConvention: convention as LogprobConvention,
    }),
  };
}

/** Whether the likeliest token is taken each time. */
export function isGreedy({ temperature, topK }: FoundSampling): boolean {
  return temperature === 0 || topK === 1;
}

/** What was noted of sampling, as settings of the command line. */
export function toSamplingSettings(sampling: FoundSampling): Readonly<Record<string, number>> {
  const names = Object.entries(settingNames) as [keyof typeof settingNames, string][];
  return Object.fromEntries(
    names.flatMap(([name, setting]) => {
      const value = sampling[name];
      return value === undefined ? [] : [[setting, value]];
    }),
  );
}

/**
 * What `run.json` does not say yet of how a setup samples; nothing where `extra` may replace that. An engine is asked
 * for the convention of its logprobs where sampling is greedy, for nobody could tell there whether logprobs of 0 were
 * reported. One that does not answer leaves that open: its episodes say why.
 *
 * @param signal - Ends the wait for the engine.
 */
export async function lackingSamplingFacts(
  found: RunManifest["found"],
  {
    sampling,
    engine,
    limits,
    clock,
  }: Pick<EpisodeSetup, "sampling" | "engine" | "limits" | "clock">,
  signal: AbortSignal,
): Promise<SamplingFacts> {
  const told = samplingFactsIn(found);
  if (told.sampling === undefined && isReplaced(sampling)) return {};
  const noted = told.sampling ?? numbersOf({ ...sampling });
  const lacking = told.sampling === undefined ? { sampling: noted } : {};
  if (told.logprobConvention !== undefined || !isGreedy(noted)) return lacking;
  try {
    const asked = { signal, timeoutMs: limits.engineTimeoutMs, ...given({ clock }) };
    const { logprobConvention } = await askDescription(engine, asked);
    return { ...lacking, logprobConvention };
  } catch (error) {
    if (signal.aborted || error instanceof RolloutError || error instanceof UsageError) {
      return lacking;
    }
    throw error;
  }
}

/** Whether what engines are given by names of their own may stand in the place of what the setup says. */
function isReplaced({ extra = {} }: SamplingParameters): boolean {
  const names = Object.keys(extra).map((name) => name.toLowerCase().replaceAll(/[^a-z]/g, ""));
  return names.some((name) => ["temperature", "topp", "topk", "minp"].includes(name));
}

function samplingOf(settings: unknown): FoundSampling | undefined {
  if (!isRow(settings) || typeof settings["temperature"] !== "number") return undefined;
  const names = Object.entries(settingNames);
  return numbersOf(Object.fromEntries(names.map(([name, setting]) => [name, settings[setting]])));
}

function numbersOf(values: Readonly<Record<string, unknown>>): FoundSampling {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => Number.isFinite(value)));
}
