import type { Generation } from "../../engine/engine.ts";
import type { TurnRecord } from "../episode.ts";

/** Facts about a turn that its generation does not have. */
type TurnFacts = Pick<
  TurnRecord,
  "turnIndex" | "text" | "reasoning" | "promptTokenCount" | "engineMs"
>;

/**
 * Returns the record of a sampled turn. The times of its steps are missing.
 *
 * @param results - The parsed calls and their results.
 */
export function describeTurn(
  generation: Generation,
  { turnIndex, text, reasoning, promptTokenCount, engineMs }: TurnFacts,
  results: Pick<TurnRecord, "attemptCounts" | "pieces" | "steps">,
): Omit<TurnRecord, "userMs" | "environmentMs"> {
  const { cachedTokenCount, discarded, finish, outputIds, pieces, queueMs } = generation;
  const interruptionCount = countInterruptions(generation);
  // No spread of a complete object: on Node 20 such a record costs a hundred times as much.
  return {
    turnIndex,
    text,
    ...(reasoning !== undefined && { reasoning }),
    finish: finish.type,
    sampledTokenCount: outputIds.length,
    promptTokenCount,
    ...(cachedTokenCount !== undefined && { cachedTokenCount }),
    attemptCounts: results.attemptCounts,
    ...(results.pieces !== undefined && { pieces: results.pieces }),
    steps: results.steps,
    ...(discarded.length > 0 && { discarded }),
    ...(interruptionCount > 0 && { interruptionCount }),
    pieces,
    engineMs,
    ...(queueMs !== undefined && { queueMs }),
  };
}

/** Counts the interruptions of a turn. After each one, the turn continued with another request. */
function countInterruptions({ pieces }: Generation): number {
  if (pieces.length <= 1) return 0;
  return Math.max(new Set(pieces.map(({ requestId }) => requestId)).size - 1, 0);
}
