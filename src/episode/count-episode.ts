import type { AttemptStatus } from "../parser/tool-call-parser.ts";
import type { Segment } from "../trajectory/trajectory-recorder.ts";
import type { EpisodeCounts, TurnRecord } from "./episode.ts";

/** The sums over an episode's turns and segments. */
export function countEpisode(
  turns: readonly TurnRecord[],
  segments: readonly Segment[],
  formatErrorCount: number,
  /** The first turn whose ids are the episode's own: those before it belong to what it forked from. */
  firstTurn = 0,
): EpisodeCounts {
  const attemptCounts: Partial<Record<AttemptStatus, number>> = {};
  for (const turn of turns) {
    for (const [status, count] of Object.entries(turn.attemptCounts)) {
      const key = status as AttemptStatus;
      attemptCounts[key] = (attemptCounts[key] ?? 0) + count;
    }
  }
  return {
    turnCount: turns.length,
    sampledTokenCount: sum(turns.slice(firstTurn).map((turn) => turn.sampledTokenCount)),
    tokenCount: sum(segments.map((segment) => segment.tokenIds.length)),
    toolCallCount: countToolCalls(turns),
    formatErrorCount,
    attemptCounts,
    ...present({
      repairedCallCount: sum(
        turns.map(({ steps }) => steps.filter((step) => step.repaired === true).length),
      ),
      leakedMarkupCount: turns.filter(({ format }) => format?.leakedMarkup === true).length,
      malformedThinkingCount: turns.filter(({ format }) => format?.thinkingMalformed === true)
        .length,
    }),
  };
}

/** The tool calls that the world performed in the turns. */
export function countToolCalls(turns: readonly TurnRecord[]): number {
  return sum(
    turns.map(
      ({ steps }) =>
        steps.filter((step) => step.result === "acted" && step.source !== "user").length,
    ),
  );
}

/** The counts that are not 0. */
function present<Key extends string>(
  counts: Readonly<Record<Key, number>>,
): Partial<Record<Key, number>> {
  return Object.fromEntries(
    Object.entries<number>(counts).filter(([, count]) => count > 0),
  ) as Partial<Record<Key, number>>;
}

function sum(values: readonly number[]): number {
  return values.reduce((total, value) => total + value, 0);
}
