import { isDeepStrictEqual } from "node:util";
import type { LogprobConvention, SamplingParameters } from "../../engine/engine.ts";
import { askDescription } from "../../episode/ask-description.ts";
import type { EpisodeSetup } from "../../episode/episode-setup.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { isRow } from "../../trajectory/violation.ts";
import type { RunManifest } from "../folder/run-manifest.ts";

/** How a run's tokens were drawn, as `run.json` says it: what an engine knows by names of its own is left out. */
type FoundSampling = Omit<SamplingParameters, "extra">;

/** What `run.json` says of sampling; absent members are not said. */
interface SamplingFacts {
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

/**
 * Reads how a run sampled: what `startRun()` saw goes before the settings of the command line, which a program may
 * have replaced.
 */
export function samplingFactsIn(found: unknown): SamplingFacts {
  const { sampling, settings, engine, logprobConvention } = isRow(found) ? found : {};
  const told = isRow(engine) ? engine["logprobConvention"] : undefined;
  const convention = told ?? logprobConvention;
  return {
    ...withoutUndefined({ sampling: isRow(sampling) ? numbersOf(sampling) : samplingOf(settings) }),
    ...(conventions.includes(convention) && {
      logprobConvention: convention as LogprobConvention,
    }),
  };
}

/**
 * The members of `run.json` in which starts note how they sample, as whoever opened the folder says them now. As long as
 * nothing is sampled, they stand in the place of those that an earlier start noted: that sampled nothing.
 */
export function ownSamplingFacts(asked: unknown) {
  const { sampling, logprobConvention } = isRow(asked) ? asked : {};
  return { sampling, logprobConvention };
}

/** Whether the likeliest token is taken each time. */
export function isGreedy({ temperature, topK }: FoundSampling): boolean {
  return temperature === 0 || topK === 1;
}

/** What was noted of sampling, as settings of the command line: `undefined` for what was left to the engine. */
export function toSamplingSettings(
  sampling: FoundSampling,
): Readonly<Record<string, number | undefined>> {
  const names = Object.entries(settingNames) as [keyof typeof settingNames, string][];
  return Object.fromEntries(names.map(([name, setting]) => [setting, sampling[name]]));
}

/**
 * What `run.json` does not say, or says otherwise, of how a setup samples: to be asked for before anything is sampled.
 * Nothing where `extra` may replace that, or attempts are played by a `play` of the setup's own. An engine is asked
 * for the convention of its logprobs where sampling is greedy, for nobody could tell there whether logprobs of 0 were
 * reported. One that does not answer leaves that open: its episodes say why.
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
  const told = samplingFactsIn(found);
  const seen = numbersOf({ ...sampling });
  const differing = isDeepStrictEqual(told.sampling, seen) ? {} : { sampling: seen };
  if (told.logprobConvention !== undefined || !isGreedy(seen)) return differing;
  try {
    const asked = {
      signal,
      timeoutMs: limits.engineTimeoutMs,
      ...(clock !== undefined && { clock }),
    };
    const { logprobConvention } = await askDescription(engine, asked);
    return { ...differing, logprobConvention };
  } catch (error) {
    if (signal.aborted || error instanceof RolloutError || error instanceof UsageError) {
      return differing;
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
