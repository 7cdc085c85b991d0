import { isSampledLogprob, logprobRange } from "../engine/logprob-range.ts";
import type { SampleParts } from "./sample-parts.ts";
import { isTokenId, largestTokenId } from "./token-id.ts";
import { isCount, quote, type Violation } from "./violation.ts";

/** What is known of the run that a row is of, and cannot be seen in the row. */
export interface SampleFacts {
  /** Number of ids that the policy's tokenizer has. */
  readonly vocabularySize?: number;
  /** Whether the engine names the policy's version. */
  readonly namesVersions?: boolean;
  /** Whether logprobs may all be 0: those of what a greedy choice left. */
  readonly mayBeCertain?: boolean;
}

/** So many sampled ids of one row are never all certain, where their logprobs are the policy's. */
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

/** Where every turn has its place, the mask follows; where not, it is at least a mask. */
function checkMask({ mask = [], turns }: SampleParts): Violation[] {
  const expected = turns?.every((turn) => turn !== undefined)
    ? new Array<number>(mask.length).fill(0)
    : undefined;
  for (const turn of turns ?? []) expected?.fill(1, turn!.start, turn!.end);
  const wrong = mask.findIndex((bit, index) =>
    expected === undefined ? bit !== 0 && bit !== 1 : bit !== expected[index],
  );
  if (wrong < 0) return [];
  const wanted = expected === undefined ? "0 or 1" : `${expected[wrong]} by the turns`;
  const detail = `lossMask[${wrong}] is ${quote(mask[wrong])}, expected ${wanted}`;
  return [{ rule: "mask", detail }];
}

function checkLogprobs(parts: SampleParts, { mayBeCertain = false }: SampleFacts): Violation[] {
  const { logprobs = [], mask = [], turns = [] } = parts;
  const found: Violation[] = [];
  const wrong = logprobs.findIndex((logprob, index) =>
    mask[index] === 1 ? !isSampledLogprob(logprob) : logprob !== 0,
  );
  if (wrong >= 0) {
    const { least, most } = logprobRange;
    const wanted =
      mask[wrong] === 1 ? `a number from ${least} to ${most}` : "0 where the mask is 0";
    const detail = `logprobs[${wrong}] is ${quote(logprobs[wrong])}, expected ${wanted}`;
    found.push({ rule: "logprobs", detail });
  }
  const sampled = turns.flatMap((turn) => logprobs.slice(turn?.start ?? 0, turn?.end ?? 0));
  const isCertain = sampled.length >= certainLimit && sampled.every((logprob) => logprob === 0);
  if (isCertain && !mayBeCertain) {
    const detail = `the logprobs of all ${sampled.length} sampled ids are 0: nobody reported them`;
    found.push({ rule: "logprobs", detail });
  }
  return found;
}

function checkVersions(parts: SampleParts, { namesVersions = false }: SampleFacts): Violation[] {
  const { versions = [], mask = [] } = parts;
  const found: Violation[] = [];
  const wrong = versions.findIndex(
    (version, index) => typeof version !== "string" || (mask[index] !== 1 && version !== ""),
  );
  if (wrong >= 0) {
    const detail = `policyVersions[${wrong}] is ${quote(versions[wrong])}, expected text, and "" where the mask is 0`;
    found.push({ rule: "policy-versions", detail });
  }
  const isNamed = namesVersions || hasVersions(parts);
  const nameless = isNamed
    ? versions.findIndex((version, index) => mask[index] === 1 && version === "")
    : -1;
  if (nameless >= 0) {
    const detail = `policyVersions[${nameless}] is "", and the engine names the policy's version`;
    found.push({ rule: "policy-versions", detail });
  }
  return found;
}

/** Whether any of the row's sampled ids has a version with a name. */
export function hasVersions({ versions = [], mask = [] }: Partial<SampleParts>): boolean {
  return versions.some((version, index) => mask[index] === 1 && version !== "");
}

/** Whether a value can be a number of ids. */
export function isVocabularySize(value: unknown): value is number {
  return isCount(value) && value > 0;
}
