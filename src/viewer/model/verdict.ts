import { countOf } from "../../text/count-of.ts";
import { differenceOf, type Difference } from "../../environment/state/difference.ts";
import type { EpisodeRow } from "../../run/folder/episode-row.ts";
import { ownSuccess } from "./own-success.ts";
import { rewardTone } from "./reward-tone.ts";
import type { StopReason } from "../../trajectory/sample.ts";

/** An explanation of an episode's reward. */
interface Verdict {
  readonly tone: "good" | "bad" | "mixed" | "failed" | "unscored";
  readonly headline: string;
  /** The end of the episode. */
  readonly ending: string;
  /** Reasons for and against success, one sentence each. */
  readonly reasons: readonly string[];
  /** The difference between the expected and the actual result, if the environment reports it. */
  readonly difference?: Difference;
}

type Judged = Pick<
  EpisodeRow,
  "outcome" | "stopReason" | "reward" | "rewardDetails" | "failure" | "counts"
> &
  Partial<Pick<EpisodeRow, "environment" | "success">>;

const endings: Readonly<Record<StopReason, (turns: number) => string>> = {
  "user-left": (turns) => `The user left after ${countOf(turns, "turn")}.`,
  "terminal-tool": (turns) => `A call ended the conversation after ${countOf(turns, "turn")}.`,
  finished: (turns) => `The environment was finished after ${countOf(turns, "turn")}.`,
  "max-turns": (turns) =>
    `Cut off: the conversation was not over when it reached its limit of ${countOf(turns, "turn")}.`,
  length: (turns) => `Cut off: turn ${turns - 1} reached the limit of tokens for one turn.`,
  "max-tokens": () => "Cut off: the episode reached its limit of sampled tokens.",
  "context-full": () => "Cut off: the model's context was full.",
  deadline: (turns) => `Cut off: the episode's time was over after ${countOf(turns, "turn")}.`,
  "format-errors": () => "Cut off: too many turns held no call that could be read.",
  interrupted: (turns) => `Interrupted from outside after ${countOf(turns, "turn")}.`,
  unscored: (turns) => `Over after ${countOf(turns, "turn")}, without a score.`,
  failure: (turns) => `Ended by a failure after ${countOf(turns, "turn")}.`,
};

/**
 * Explains why an episode has its reward, from the facts in its row.
 *
 * @param successThreshold - The lowest reward of a success. Default: see `ownSuccess()`.
 */
export function verdictOf(row: Judged, successThreshold?: number): Verdict {
  const { reward, stopReason, failure, counts, rewardDetails } = row;
  const difference = differenceOf(rewardDetails);
  // The client of a gateway's session decides when it ends.
  const isSession = row.environment === "gateway" && stopReason === "finished";
  const about = {
    ending: isSession
      ? `The session was ended after ${countOf(counts.turnCount, "turn")}.`
      : endingOf(stopReason, counts.turnCount),
    reasons: [
      ...(difference === undefined ? [] : differenceReasons(difference)),
      ...formReasons(counts),
    ],
    ...(difference !== undefined && { difference }),
  };
  if (failure !== undefined) {
    const whose = failure.party === "internal" ? "our own fault" : `the ${failure.party}'s failure`;
    return { tone: "failed", headline: `No reward: ${whose}, ${failure.code}`, ...about };
  }
  if (reward === undefined) {
    return { tone: "unscored", headline: "No reward: nothing scored this episode", ...about };
  }
  const success = ownSuccess(row, successThreshold);
  const judged = success === undefined ? "" : success ? ": a success" : ": no success";
  return {
    tone: rewardTone({ reward, success }),
    headline: `Reward ${Number.isInteger(reward) ? reward : Number(reward.toPrecision(6))}${judged}`,
    ...about,
  };
}

/**
 * Returns the sentence for a stop reason. Also accepts a reason that this release does not know.
 */
function endingOf(stopReason: string, turns: number): string {
  const known: Partial<Record<string, (turns: number) => string>> = endings;
  return known[stopReason]?.(turns) ?? `Ended by ${stopReason}.`;
}

function differenceReasons(difference: Difference): string[] {
  const { state, moreState = 0, missingCalls, extraCalls, missingOutputs } = difference;
  const places = state.length + moreState;
  const reasons = [
    ...(places === 0
      ? []
      : [
          `${countOf(places, "place")} in the records ${places === 1 ? "is" : "are"} not as wanted.`,
        ]),
    ...(missingCalls.length === 0
      ? []
      : [
          `${countOf(missingCalls.length, "wanted call")} ${wasWere(missingCalls.length)} never made.`,
        ]),
    ...(extraCalls.length === 0
      ? []
      : [
          `${countOf(extraCalls.length, "call")} ${wasWere(extraCalls.length)} made that the task did not want.`,
        ]),
    ...(missingOutputs.length === 0
      ? []
      : [
          `${countOf(missingOutputs.length, "wanted output")} ${wasWere(missingOutputs.length)} not said to the user.`,
        ]),
  ];
  return reasons.length > 0 ? reasons : ["Nothing differs from what was wanted."];
}

function formReasons({ formatErrorCount, turnCount, repairedCallCount = 0 }: Judged["counts"]) {
  return [
    ...(formatErrorCount === 0
      ? []
      : [
          `${formatErrorCount} of ${countOf(turnCount, "turn")} ${wasWere(formatErrorCount)} malformed.`,
        ]),
    ...(repairedCallCount === 0
      ? []
      : [
          `${countOf(repairedCallCount, "malformed call")} ${wasWere(repairedCallCount)} mended and performed.`,
        ]),
  ];
}

function wasWere(count: number): string {
  return count === 1 ? "was" : "were";
}
