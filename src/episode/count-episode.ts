import type { AttemptStatus } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { lengthOf, type Segment } from "../trajectory/segment.ts";
import type { EpisodeCounts, TurnRecord } from "./episode.ts";

/** Adds up an episode's turns and segments. */
export function countEpisode(
  turns: readonly TurnRecord[],
  segments: readonly Segment[],
  formatErrorCount: number,
  /** The index of the episode's first own turn. The ids of a fork's earlier turns are counted in the original. */
  firstTurn = 0,
): EpisodeCounts {
  const attemptCounts: Partial<Record<AttemptStatus, number>> = {};
  let sampledTokenCount = 0;
  let repairedCallCount = 0;
  let leakedMarkupCount = 0;
  let malformedThinkingCount = 0;
  for (let place = 0; place < turns.length; place++) {
    const turn = turns[place]!;
    if (place >= firstTurn) sampledTokenCount += turn.sampledTokenCount;
    for (const [status, count] of Object.entries(turn.attemptCounts)) {
      const key = status as AttemptStatus;
      attemptCounts[key] = (attemptCounts[key] ?? 0) + count;
    }
    for (const step of turn.steps) if (step.repaired === true) repairedCallCount += 1;
    if (turn.format?.leakedMarkup === true) leakedMarkupCount += 1;
    if (turn.format?.thinkingMalformed === true) malformedThinkingCount += 1;
  }
  let tokenCount = 0;
  for (const segment of segments) tokenCount += lengthOf(segment);
  return {
    turnCount: turns.length,
    sampledTokenCount,
    tokenCount,
    toolCallCount: countToolCalls(turns),
    formatErrorCount,
    attemptCounts,
    ...(repairedCallCount > 0 && { repairedCallCount }),
    ...(leakedMarkupCount > 0 && { leakedMarkupCount }),
    ...(malformedThinkingCount > 0 && { malformedThinkingCount }),
  };
}

/** Counts the tool calls that the world performed. */
export function countToolCalls(turns: readonly TurnRecord[]): number {
  let count = 0;
  for (const { steps } of turns) {
    for (const { result, source } of steps) if (result === "acted" && source !== "user") count += 1;
  }
  return count;
}
