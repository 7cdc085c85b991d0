import type { Observed, Reading } from "../../agent/agent.ts";
import { RolloutError } from "../../errors.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import type { Message } from "../../message.ts";
import { opensReasoning } from "../../renderer/continues.ts";
import type { EnvironmentDelta, RenderedIds } from "../../renderer/renderer.ts";
import { rendererOf } from "../renderer-of.ts";
import { textTooLong } from "../../tokenizer/text-length.ts";
import { checkMessages } from "../check/check-agent.ts";
import { callAgent, type Play, type TurnsEnd } from "../play.ts";

/**
 * Adds a turn's observations to the ledger, as the next prompt.
 *
 * @returns the reason why the episode is over if the observations are too long to encode; otherwise `undefined`.
 */
export async function addObservations(
  play: Play,
  turn: {
    readonly reading: Reading;
    readonly observed: readonly Observed[];
    readonly lastSampledId: number | undefined;
  },
): Promise<TurnsEnd | undefined> {
  const { reading, lastSampledId } = turn;
  const { promptTime: now } = play.setup;
  if (isTurnOver()) await takeTurn();
  const shown = observe(play, turn.observed);
  const environment = shown instanceof Promise ? await shown : shown;
  const change = {
    history: play.messages,
    assistant: reading.message,
    environment,
    tools: play.shownTools,
    lastSampledId,
    ...(now && { now }),
  };
  let end: TurnsEnd | undefined;
  try {
    const renderer = rendererOf(play.setup);
    const rewritten = renderer.rerender && (await renderer.rerender(change));
    if (rewritten === undefined) appendDelta(play, await renderer.delta(change));
    else openSegment(play, rewritten);
  } catch (error) {
    if (!(error instanceof RolloutError) || error.code !== textTooLong) throw error;
    end = endByLength(play, turn.observed, error);
  }
  play.messages.push(reading.message, ...environment);
  return end;
}

function appendDelta(play: Play, delta: EnvironmentDelta): void {
  play.recorder.appendDelta(delta);
  play.reasoningOpened = opensReasoning(delta.text);
}

function openSegment(play: Play, { ids, text }: RenderedIds): void {
  play.recorder.openSegment(ids);
  play.reasoningOpened = opensReasoning(text);
}

/**
 * Ends the episode because an observation is longer than the tokenizer encodes. Such a text exceeds any context. If the
 * context length is unknown, it is a failure of the party with the longest observation.
 */
function endByLength(
  { assignment, setup }: Play,
  observed: readonly Observed[],
  cause: RolloutError,
): TurnsEnd {
  if (Number.isFinite(setup.limits.maxContextTokens)) {
    return { outcome: "truncated", stopReason: "context-full" };
  }
  const longest = Math.max(...observed.map(({ text }) => text.length));
  const isUsers = observed.find(({ text }) => text.length === longest)?.from === "user";
  throw new RolloutError(
    isUsers ? "user/bad-line" : "environment/bad-step",
    `Cannot continue task ${assignment.task.id} of ${setup.environment.name}: ${cause.message}; ` +
      "a limit of the context (`maxContextTokens`) ends such episodes with their score",
    { cause },
  );
}

/** Returns the agent's messages for the observations. */
export function observe(
  play: Play,
  observed: readonly Observed[],
): readonly Message[] | Promise<readonly Message[]> {
  const { agent } = play.setup;
  const place = `agent.observe() of ${agent.strategy}`;
  const check = (messages: unknown): readonly Message[] | Promise<readonly Message[]> =>
    callAgent(play, "use what shows observations", () => checkMessages(messages, place));
  const given = callAgent(play, "show observations", () => agent.observe(observed));
  return given instanceof Promise ? given.then(check) : check(given);
}
