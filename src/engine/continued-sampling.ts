import { toArray } from "../values/to-array.ts";
import type { ColumnParts } from "../columns/column-part.ts";
import { isOfAllTokens, namesOf, type ColumnName } from "../columns/column-specs.ts";
import type { ColumnRequest, GenerateRequest, SamplingParameters } from "./engine.ts";
import { findOutputRule } from "./output-rule.ts";

/**
 * Returns the request for the rest of a turn after the ids that were already sampled.
 *
 * Returns the same request if no ids were sampled. Returns `undefined` if the turn must be sampled
 * again from its start: a rule applies to its complete output (`findOutputRule()`), or the sampled ids lack a column
 * that no later request returns. The result's `maxNewTokens` can be 0.
 *
 * @param columns - The columns of the sampled ids. The rest of the turn starts after their rows.
 */
export function remainingRequest(
  request: GenerateRequest,
  sampledIds: readonly number[],
  columns?: ColumnParts,
): GenerateRequest | undefined {
  const sampledCount = sampledIds.length;
  if (sampledCount === 0) return request;
  if (findOutputRule(request) !== undefined) return undefined;
  if (findLostColumn(request, sampledCount, columns) !== undefined) return undefined;
  return {
    ...request,
    ...(request.columns && { columns: remainingColumns(request.columns, columns) }),
    promptIds: toArray(request.promptIds).concat(sampledIds),
    sampling: samplingAfter(request.sampling, sampledCount),
    maxNewTokens: request.maxNewTokens - sampledCount,
  };
}

/**
 * Returns the name of a column that some of the sampled ids lack and that no later request returns: one with a row for
 * each sampled token. A later request returns the rows of all computed tokens.
 */
export function findLostColumn(
  { columns: wanted }: Pick<GenerateRequest, "columns">,
  sampledCount: number,
  columns: ColumnParts | undefined,
): ColumnName | undefined {
  if (wanted === undefined || sampledCount === 0) return undefined;
  return namesOf(wanted.specs).find(
    (name) => !isOfAllTokens(name) && countRows(columns, name) !== sampledCount,
  );
}

function remainingColumns(
  { specs, knownRows }: ColumnRequest,
  columns: ColumnParts | undefined,
): ColumnRequest {
  const name = namesOf(specs).find(isOfAllTokens);
  return { specs, knownRows: knownRows + (name === undefined ? 0 : countRows(columns, name)) };
}

/** Returns the number of rows of a column. */
export function countRows(columns: ColumnParts | undefined, name: ColumnName): number {
  return (columns?.[name] ?? []).reduce((sum, { rows }) => sum + rows, 0);
}

/**
 * An odd number near 2³¹ divided by the golden ratio. Its multiples modulo 2³¹ are spread evenly.
 */
const seedStep = 1_327_217_885;

/** The names of the parameter for the least number of sampled tokens, in SGLang and vLLM. */
const minimumParameters = ["min_new_tokens", "min_tokens"];

/**
 * Returns the sampling parameters for the rest of a turn.
 *
 * vLLM and llama.cpp restart their random numbers for each request, so the first request's seed
 * would repeat the same draws. The new seed depends only on the number of ids, not on where the
 * turn was interrupted. A minimum number of tokens applies to the turn, so the tokens that were
 * already sampled count towards it.
 */
function samplingAfter(sampling: SamplingParameters, sampledCount: number): SamplingParameters {
  const { seed, extra } = sampling;
  return {
    ...sampling,
    ...(seed !== undefined && { seed: seedAfter(seed, sampledCount) }),
    ...(extra !== undefined && { extra: extraAfter(extra, sampledCount) }),
  };
}

function extraAfter(
  extra: NonNullable<SamplingParameters["extra"]>,
  sampledCount: number,
): NonNullable<SamplingParameters["extra"]> {
  const remaining = minimumParameters.flatMap((name) => {
    const minimum = extra[name];
    return typeof minimum === "number" ? [[name, Math.max(0, minimum - sampledCount)]] : [];
  });
  return { ...extra, ...(Object.fromEntries(remaining) as Record<string, number>) };
}

/** Returns the seed of a request that continues a turn after `sampledCount` ids. */
export function seedAfter(seed: number, sampledCount: number): number {
  return ((seed % 2 ** 31) + sampledCount * seedStep) % 2 ** 31;
}
