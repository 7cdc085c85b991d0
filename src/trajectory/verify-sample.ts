import { isObject } from "../values/is-object.ts";
import { checkColumns } from "./check-columns.ts";
import { checkEnd } from "./check-end.ts";
import { checkTokens, type SampleFacts } from "./check-tokens.ts";
import { checkTurns } from "./check-turns.ts";
import { readSampleParts } from "./sample-parts.ts";
import { type Violation } from "./violation.ts";

export type { Violation };
export type { SampleFacts };

/**
 * Checks one training row: shapes, the mask against the turns, logprobs and policy versions against the mask, ids
 * against the hashes taken when they were sent and returned, and reward and failure against the outcome.
 *
 * @param facts - Facts about the row's run.
 * @returns the violations found, the first of each kind. Empty for a sound row.
 */
export function verifySample(row: unknown, facts: SampleFacts = {}): readonly Violation[] {
  if (!isObject(row)) return [{ rule: "shape", detail: "the line is not a JSON object" }];
  const { parts, found } = readSampleParts(row);
  return [
    ...found,
    ...checkTurns(parts),
    ...checkTokens(parts, facts),
    ...checkColumns(parts, facts.columns),
    ...checkEnd(row),
  ];
}
