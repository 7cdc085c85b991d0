import { isObject } from "../../values/is-object.ts";
import { isDeepStrictEqual } from "node:util";
import type { LogprobConvention, SamplingParameters } from "../../engine/engine.ts";
import { askDescription } from "../../episode/ask-description.ts";
import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import type { RunManifest } from "../folder/run-manifest.ts";

/** A run's sampling parameters in `run.json`, without those that only one engine knows. */
type FoundSampling = Omit<SamplingParameters, "extra">;

/** The facts about sampling in `run.json`. Members that are not recorded are absent. */
interface SamplingFacts {
  readonly sampling?: FoundSampling;
  /** The kind of probabilities that the recorded logprobs have. */
  readonly logprobConvention?: LogprobConvention;
}

/** The names of sampling parameters on the command line. */
const settingNames = {
  temperature: "temperature",
  topP: "top-p",
  topK: "top-k",
  minP: "min-p",
  seed: "sampling-seed",
} as const satisfies Partial<Record<keyof FoundSampling, string>>;

const conventions: readonly unknown[] = ["tempered", "raw", "processed"];

/**
 * Reads how a run sampled. The parameters that `startRun()` got take precedence over those of the command line, which a
 * program may have replaced.
 */
export function samplingFactsIn(found: unknown): SamplingFacts {
  const { sampling, settings, engine, logprobConvention } = isObject(found) ? found : {};
  const described = isObject(engine) ? engine["logprobConvention"] : undefined;
  const convention = described ?? logprobConvention;
  return {
    ...withoutUndefined({
      sampling: isObject(sampling) ? numbersOf(sampling) : samplingOf(settings),
    }),
    ...(conventions.includes(convention) && {
      logprobConvention: convention as LogprobConvention,
    }),
  };
}

/**
 * Returns the sampling facts that the caller of this start gave in `found`. A fact that is missing in `found` is
 * `undefined`. Until the run has sampled a token, these facts replace those that earlier starts wrote.
 */
export function ownSamplingFacts(requested: unknown) {
  const { sampling, logprobConvention } = isObject(requested) ? requested : {};
  return { sampling, logprobConvention };
}

/** True if the most likely token is always sampled. */
export function isGreedy({ temperature, topK }: FoundSampling): boolean {
  return temperature === 0 || topK === 1;
}

/** Converts recorded sampling parameters to settings of the command line; `undefined` for the engine's defaults. */
export function toSamplingSettings(
  sampling: FoundSampling,
): Readonly<Record<string, number | undefined>> {
  const names = Object.entries(settingNames) as [keyof typeof settingNames, string][];
  return Object.fromEntries(names.map(([name, setting]) => [setting, sampling[name]]));
}

/**
 * Returns the facts about a setup's sampling that are missing in `run.json`, or differ there. Call it before anything
 * is sampled. Returns none if `extra` may replace the parameters, or if the setup has a `play` of its own. For greedy
 * sampling, asks the engine for its logprob convention: logprobs of 0 are ambiguous otherwise. If the engine does not
 * answer, the convention stays unknown.
 *
 * @param signal - Ends the wait for the engine.
 */
export async function newSamplingFacts(
  found: RunManifest["found"],
  {
    sampling,
    engine,
    limits,
    clock,
    play,
  }: Pick<EpisodeSetup, "sampling" | "engine" | "limits" | "clock" | "play">,
  signal: AbortSignal,
): Promise<SamplingFacts> {
  if (play !== undefined || isReplaced(sampling)) return {};
  const recorded = samplingFactsIn(found);
  const seen = numbersOf({ ...sampling });
  const differing = isDeepStrictEqual(recorded.sampling, seen) ? {} : { sampling: seen };
  const hasLogprobs = engine.complete === undefined;
  if (recorded.logprobConvention !== undefined || !hasLogprobs || !isGreedy(seen)) return differing;
  try {
    const options = {
      signal,
      timeoutMs: limits.engineTimeoutMs,
      ...(clock !== undefined && { clock }),
    };
    const { logprobConvention } = await askDescription(engine, options);
    return { ...differing, ...withoutUndefined({ logprobConvention }) };
  } catch (error) {
    if (signal.aborted || error instanceof RolloutError || error instanceof UsageError) {
      return differing;
    }
    throw error;
  }
}

/** True if parameters that only one engine knows may replace the setup's own. */
function isReplaced({ extra = {} }: SamplingParameters): boolean {
  const names = Object.keys(extra).map((name) => name.toLowerCase().replaceAll(/[^a-z]/g, ""));
  return names.some((name) => ["temperature", "topp", "topk", "minp"].includes(name));
}

function samplingOf(settings: unknown): FoundSampling | undefined {
  if (!isObject(settings) || typeof settings["temperature"] !== "number") return undefined;
  const names = Object.entries(settingNames);
  return numbersOf(Object.fromEntries(names.map(([name, setting]) => [name, settings[setting]])));
}

function numbersOf(values: Readonly<Record<string, unknown>>): FoundSampling {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => Number.isFinite(value)));
}
