import { differenceOf } from "../environment/state/difference.ts";
import type { TurnRecord, TurnStep } from "../episode/episode.ts";
import { shownSteps } from "../episode/turn/shown-steps.ts";
import type { Message } from "../message.ts";
import type { EpisodeRow } from "../run/folder/run-folder.ts";
import { countOf } from "../text/count-of.ts";
import { describeDifference } from "./describe-difference.ts";
import { indented, printable, shortened, type TextStyle } from "./text-style.ts";

/** Options for showing an episode. */
interface ShowOptions {
  readonly style: TextStyle;
  /** True to show long texts in full. */
  readonly full: boolean;
}

const shownLength = 800;

/** Formats a conversation for people: messages, calls, answers, and how it ended. */
export function showEpisode(row: EpisodeRow, options: ShowOptions): string {
  return [
    showHead(row, options),
    ...openingOf(row.messages).map((message) => showMessage(message, options)),
    ...row.turns.map((turn) => showTurn(turn, shownSteps(row, turn), options)),
    showEnd(row, options),
  ].join("\n\n");
}

function showHead(
  { rolloutId, seed, counts, durationMs }: EpisodeRow,
  { style }: ShowOptions,
): string {
  const facts =
    `${countOf(counts.turnCount, "turn")}, ${countOf(counts.toolCallCount, "tool call")}, ` +
    `${countOf(counts.sampledTokenCount, "sampled token")}, ${(durationMs / 1000).toFixed(1)} s, seed ${seed}`;
  return `${style.heading(printable(rolloutId))}\n${style.faint(facts)}`;
}

/** Returns the messages before the policy's first turn. */
function openingOf(messages: readonly Message[]): readonly Message[] {
  const first = messages.findIndex(({ role }) => role === "assistant");
  return first < 0 ? messages : messages.slice(0, first);
}

function showMessage({ role, content }: Message, { style, full }: ShowOptions): string {
  // The system message is long, and the same in every episode.
  const length = full ? Infinity : role === "system" ? 200 : shownLength;
  return `${style.heading(role)}\n${indented(shortened(printable(content), length))}`;
}

function showTurn(turn: TurnRecord, steps: readonly TurnStep[], options: ShowOptions): string {
  const { style, full } = options;
  const { turnIndex, sampledTokenCount, promptTokenCount, finish, engineMs, text } = turn;
  const facts =
    `turn ${turnIndex}: ${sampledTokenCount} tokens after ${promptTokenCount}, ${Math.round(engineMs)} ms` +
    (finish === "length" ? ", cut off by length" : "");
  // An agent that keeps its own conversations reports its calls without the markup around them.
  const shown = text.trim() === "" ? callsOf(turn) : text;
  const said = shortened(printable(shown), full ? Infinity : 4 * shownLength);
  return [
    `${style.heading("agent")}  ${style.faint(facts)}\n${indented(said)}`,
    ...steps.map((step) => showStep(step, options)),
  ].join("\n\n");
}

function callsOf({ steps }: TurnRecord): string {
  const calls = steps.filter((step) => step.arguments !== undefined);
  return calls.map((step) => `${step.source}(${step.arguments})`).join("\n");
}

function showStep(
  { source, observation, result, isError }: TurnStep,
  { style, full }: ShowOptions,
): string {
  const verdict = result !== "acted" ? `  ${result}` : isError === true ? "  error" : "";
  // A user may answer with nothing, and a tool may return nothing.
  const text =
    observation === ""
      ? style.faint("(nothing)")
      : shortened(printable(observation), full ? Infinity : shownLength);
  return `${style.heading(printable(source))}${style.warning(verdict)}\n${indented(text)}`;
}

function showEnd(row: EpisodeRow, { style, full }: ShowOptions): string {
  const { outcome, stopReason, reward, failure, troubles = [], rewardDetails, userUsage } = row;
  const difference = differenceOf(rewardDetails);
  const lines = difference === undefined ? [] : describeDifference(difference);
  const user =
    userUsage.callCount === 0
      ? []
      : [
          `the user's model: ${userUsage.callCount} calls, ${userUsage.inputTokenCount} tokens in, ` +
            `${userUsage.outputTokenCount} out` +
            (userUsage.costUsd === undefined ? "" : `, $${userUsage.costUsd.toFixed(4)}`),
        ];
  return [
    style.heading(`${outcome} (${stopReason}), reward ${reward ?? "none: nothing scored it"}`),
    ...(failure === undefined
      ? []
      : [style.warning(`${failure.code}: ${printable(failure.message)}`)]),
    ...showParts(row).map((line) => indented(printable(line))),
    ...lines.map((line) => indented(style.warning(printable(line)))),
    ...(difference !== undefined && lines.length === 0
      ? ["  nothing differs from what was wanted"]
      : []),
    ...showDetails(row, full).map((line) => indented(printable(line))),
    ...troubles.map(({ code, message }) =>
      style.warning(`trouble that cost it nothing: ${code}: ${printable(message)}`),
    ),
    ...user.map((line) => style.faint(line)),
  ].join("\n");
}

/** Shows the environment's own verdict and the components of the reward, one a line. A weight of 1 is not shown. */
function showParts({ success, rewardComponents = {} }: EpisodeRow): readonly string[] {
  const parts = Object.entries(rewardComponents).map(([name, { value, weight }]) => {
    const times = weight === 1 ? "" : `, weight ${weight}`;
    return `${name.replace(/\s+/g, " ")}: ${value}${times}`;
  });
  return success === undefined ? parts : [`success: ${success ? "yes" : "no"}`, ...parts];
}

/** Shows the other details of the score. If there is a difference, shows them only in full mode. */
function showDetails(row: EpisodeRow, full: boolean): readonly string[] {
  const { reward, rewardComponents, rewardDetails = {} } = row;
  const { difference, ...details } = rewardDetails;
  if (reward === undefined || (difference !== undefined && !full)) return [];
  if (Object.keys(details).length > 0) {
    return [`details: ${shortened(JSON.stringify(details), full ? Infinity : shownLength)}`];
  }
  return difference === undefined && rewardComponents === undefined
    ? ["why is not said: what score() returns as `wanted`, `outputs` or `details` is shown here"]
    : [];
}

/** Formats an episode as one line of a list. */
export function listEpisode({
  rolloutId,
  reward,
  outcome,
  stopReason,
  counts,
}: EpisodeRow): string {
  const score = reward === undefined ? "–" : String(reward);
  return `${printable(rolloutId)}  reward ${score}  ${outcome} (${stopReason})  ${countOf(counts.turnCount, "turn")}`;
}
