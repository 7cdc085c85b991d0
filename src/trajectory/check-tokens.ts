import type { ColumnSpecs } from "../columns/column-specs.ts";
import { isSampledLogprob, logprobRange } from "../values/logprob-range.ts";
import type { SampleParts } from "./sample-parts.ts";
import { isTokenId, largestTokenId } from "../engine/token-id.ts";
import { quote, type Violation } from "./violation.ts";

/** Facts about a row's run that the row itself does not contain. */
export interface SampleFacts {
  /** Number of ids in the policy's vocabulary. */
  readonly vocabularySize?: number;
  /** True if the engine reports policy versions. */
  readonly namesVersions?: boolean;
  /** True if all logprobs may be 0, as in greedy sampling. */
  readonly mayBeCertain?: boolean;
  /** The side columns that each row with a trained token has. Default: not checked. */
  readonly columns?: ColumnSpecs;
}

/** With at least this many sampled ids, logprobs that are all 0 are not plausible. */
const certainLimit = 8;

/** Checks ids, mask, logprobs and policy versions, each entry against its place. */
export function checkTokens(parts: SampleParts, facts: SampleFacts): Violation[] {
  return [
    ...checkIds(parts, facts),
    ...checkMask(parts),
    ...checkLogprobs(parts, facts),
    ...checkVersions(parts, facts),
  ];
}

function checkIds({ ids = [] }: SampleParts, { vocabularySize }: SampleFacts): Violation[] {
  const wrong = ids.findIndex((id) => !isTokenId(id));
  if (wrong >= 0) {
    const detail = `tokenIds[${wrong}] is ${quote(ids[wrong])}, expected a whole number from 0 to ${largestTokenId}`;
    return [{ rule: "token-ids", detail }];
  }
  if (vocabularySize === undefined) return [];
  const foreign = ids.findIndex((id) => (id as number) >= vocabularySize);
  if (foreign < 0) return [];
  const detail = `tokenIds[${foreign}] is ${quote(ids[foreign])}, and the vocabulary has ${vocabularySize} ids`;
  return [{ rule: "vocabulary", detail }];
}

function checkMask({ mask = [], isSampled }: SampleParts): Violation[] {
  const wrong = mask.findIndex((bit, index) =>
    isSampled === undefined || index >= isSampled.length
      ? bit !== 0 && bit !== 1
      : bit !== Number(isSampled[index]),
  );
  if (wrong < 0) return [];
  const expected = isSampled?.[wrong];
  const wanted = expected === undefined ? "0 or 1" : `${Number(expected)} by the turns`;
  const detail = `lossMask[${wrong}] is ${quote(mask[wrong])}, expected ${wanted}`;
  return [{ rule: "mask", detail }];
}

function checkLogprobs(parts: SampleParts, { mayBeCertain = false }: SampleFacts): Violation[] {
  const { logprobs = [], isSampled } = parts;
  const found: Violation[] = [];
  const isWrong = (logprob: unknown, index: number): boolean => {
    const wasSampled = isSampled?.[index];
    if (wasSampled === undefined) return logprob !== 0 && !isSampledLogprob(logprob);
    return wasSampled ? !isSampledLogprob(logprob) : logprob !== 0;
  };
  const wrong = logprobs.findIndex(isWrong);
  if (wrong >= 0) {
    const { min, max } = logprobRange;
    const wanted =
      isSampled?.[wrong] === false
        ? "0 where nothing was sampled"
        : `a number from ${min} to ${max}`;
    const detail = `logprobs[${wrong}] is ${quote(logprobs[wrong])}, expected ${wanted}`;
    found.push({ rule: "logprobs", detail });
  }
  const sampled = logprobs.filter((_, index) => isSampled?.[index] === true);
  const isCertain = sampled.length >= certainLimit && sampled.every((logprob) => logprob === 0);
  if (isCertain && !mayBeCertain) {
    const detail = `the logprobs of all ${sampled.length} sampled ids are 0: they were not reported`;
    found.push({ rule: "logprobs", detail });
  }
  return found;
}

function checkVersions(parts: SampleParts, { namesVersions = false }: SampleFacts): Violation[] {
  const { versions = [], isSampled } = parts;
  const found: Violation[] = [];
  const wrong = versions.findIndex(
    (version, index) =>
      typeof version !== "string" || (isSampled?.[index] === false && version !== ""),
  );
  if (wrong >= 0) {
    const detail = `policyVersions[${wrong}] is ${quote(versions[wrong])}, expected text, and "" where nothing was sampled`;
    found.push({ rule: "policy-versions", detail });
  }
  const sampled = versions.filter((_, index) => isSampled?.[index] === true);
  // Ids that were sampled before the first version was announced have no version.
  const from = namesVersions ? 0 : sampled.findIndex((version) => version !== "");
  if (from >= 0 && sampled.includes("", from)) {
    const detail = `${sampled.filter((version) => version === "").length} of ${sampled.length} sampled ids have no policy version, and the engine names it`;
    found.push({ rule: "policy-versions", detail });
  }
  return found;
}
