import { RolloutCheck } from "../../trajectory/rollout-check.ts";
import { toSamples } from "../../trajectory/sample.ts";
import { verifySample, type SampleFacts } from "../../trajectory/verify-sample.ts";
import type { RawRow } from "../../trajectory/violation.ts";
import { compareTree } from "./check-tree.ts";
import { compareTotals } from "./compare-totals.ts";
import { compareTurns } from "./compare-turns.ts";
import type { Episode } from "../episode.ts";

/**
 * Returns the first rule that the rows of a custom player's episode break, or `undefined`. Checks each row, all rows
 * together, and the rows against the episode's turns. The segments must have passed `segmentFault()`, and the rest of
 * the episode `checkStory()`.
 */
export function rowsFault(episode: Episode, facts: SampleFacts): string | undefined {
  const { segments, turns, counts, forkedFrom, outcome } = episode;
  const together = new RolloutCheck(facts);
  for (const [index, sample] of toSamples(segments, episode, episode).entries()) {
    const row: RawRow = { ...sample };
    const [violation] = [
      ...verifySample(row, facts),
      ...together.check(row, index),
      ...compareTurns(row, episode),
      ...compareTree(row, episode),
    ];
    if (violation === undefined) continue;
    return `segments[${index}] breaks the rule ${violation.rule}: ${violation.detail}`;
  }
  const stated = {
    outcome,
    rowCount: segments.length,
    turnCount: turns.length,
    turnCountBefore: forkedFrom?.turnIndex ?? 0,
    tokenCount: counts.tokenCount,
  };
  const [wrong] = compareTotals(stated, {
    turns: segments.reduce((sum, segment) => sum + segment.turns.length, 0),
    tokens: segments.reduce((sum, { tokenIds }) => sum + tokenIds.length, 0),
  });
  if (wrong === undefined) return undefined;
  return `its segments have ${wrong.actual} ${wrong.name}, expected ${String(wrong.stated)}`;
}
