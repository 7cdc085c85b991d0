import { RolloutError } from "../../errors.ts";
import { checkScoreRequest } from "../check-request.ts";
import type { GenerateRequest, SamplingParameters, ScoreRequest } from "../engine.ts";
import { badRequest } from "./bad-request.ts";
import { isGreedy } from "./is-greedy.ts";
import { checkColumns, type ColumnLimits } from "./check-columns.ts";
import { findForeignId, idExpectation } from "../token-id.ts";

/** Sampling parameters with every default filled in. */
export type CheckedSampling = Readonly<
  Required<Pick<SamplingParameters, "temperature" | "topP" | "topK" | "minP" | "seed">>
>;

/** The limits that requests must respect. */
export interface RequestLimits {
  readonly vocabularySize: number;
  /** Maximum length of prompt and output together, in tokens. */
  readonly contextLength: number;
  /** The side columns that the engine returns. Absent if it returns none. */
  readonly columns?: ColumnLimits;
}

/**
 * Checks a policy call.
 *
 * @throws RolloutError `engine/prompt-too-long` if prompt and output exceed the context,
 *   `engine/bad-request` for any other request that cannot be sampled.
 */
export function checkGenerateRequest(request: GenerateRequest, limits: RequestLimits): void {
  const { promptIds, maxNewTokens } = request;
  if (!Number.isSafeInteger(maxNewTokens) || maxNewTokens < 1) {
    throw badRequest(`maxNewTokens is ${maxNewTokens}`, "a whole number of at least 1");
  }
  if (promptIds.length === 0) throw badRequest("promptIds is empty", "at least one id");
  const foreign = findForeignId(promptIds, limits.vocabularySize);
  if (foreign >= 0) {
    const expected = idExpectation(limits.vocabularySize);
    throw badRequest(`promptIds[${foreign}] is ${promptIds[foreign]}`, expected);
  }
  if (request.constraint !== undefined) {
    throw badRequest(`constraint is ${request.constraint.type}`, "none: this engine has none");
  }
  checkColumns(request, limits.columns);
  if (promptIds.length + maxNewTokens <= limits.contextLength) return;
  throw new RolloutError(
    "engine/prompt-too-long",
    `Cannot sample: ${promptIds.length} prompt tokens and ${maxNewTokens} new ones exceed the ` +
      `context, expected at most ${limits.contextLength} together`,
  );
}

/**
 * Checks a request to score against an engine's limits, and returns the first index to score.
 *
 * @throws RolloutError `engine/prompt-too-long` if the ids exceed the context, `engine/bad-request`
 *   for any other request that cannot be scored.
 */
export function checkScoreLimits(request: ScoreRequest, limits: RequestLimits): number {
  const from = checkScoreRequest({ ...request, vocabularySize: limits.vocabularySize });
  const { length } = request.ids;
  if (length <= limits.contextLength) return from;
  throw new RolloutError(
    "engine/prompt-too-long",
    `Cannot score: ${length} tokens exceed the context, expected at most ${limits.contextLength}`,
  );
}

/** Checks a temperature. Returns 0 if it is greedy. */
export function checkTemperature(temperature = 1): number {
  if (!(temperature >= 0 && temperature < Infinity)) {
    throw badRequest(`temperature is ${temperature}`, "a number of at least 0");
  }
  return isGreedy(temperature) ? 0 : temperature;
}

/**
 * Fills in the defaults. `randomSeed` returns the seed if the request has none.
 *
 * @throws RolloutError `engine/bad-request` for a parameter that is out of range or not supported.
 */
export function checkSampling(
  sampling: SamplingParameters,
  randomSeed: () => number,
): CheckedSampling {
  const { topP = 1, topK = -1, minP = 0, seed = randomSeed() } = sampling;
  const within = (name: string, accepts: boolean, expected: string): void => {
    if (!accepts) throw badRequest(`${name} is ${sampling[name as "topP"]}`, expected);
  };
  within("topP", topP > 0 && topP <= 1, "a number above 0, at most 1");
  within("topK", topK === -1 || (Number.isSafeInteger(topK) && topK >= 1), "-1, or at least 1");
  within("minP", minP >= 0 && minP <= 1, "a number from 0 to 1");
  within("seed", Number.isSafeInteger(seed), "a whole number");
  const { frequencyPenalty = 0, presencePenalty = 0, repetitionPenalty = 1 } = sampling;
  within("frequencyPenalty", frequencyPenalty === 0, "0: this engine has no penalties");
  within("presencePenalty", presencePenalty === 0, "0: this engine has no penalties");
  within("repetitionPenalty", repetitionPenalty === 1, "1: this engine has no penalties");
  const [extra] = Object.keys(sampling.extra ?? {});
  if (extra !== undefined) {
    throw badRequest(`extra has ${extra}`, "nothing: this engine has no parameters of its own");
  }
  return { temperature: checkTemperature(sampling.temperature), topP, topK, minP, seed };
}
