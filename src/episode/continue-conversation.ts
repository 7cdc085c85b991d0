import type { Observed, Reading } from "../agent/agent.ts";
import { isTurnOver, takeTurn } from "../internal/take-turn.ts";
import type { Message } from "../message.ts";
import { opensReasoning } from "../renderer/continues.ts";
import { checkMessages } from "./check-agent.ts";
import { callAgent, type Play } from "./play.ts";

/** Adds to the ledger what the environment answered a turn, so that the policy can be asked again. */
export async function continueConversation(
  play: Play,
  turn: {
    readonly reading: Reading;
    readonly observed: readonly Observed[];
    readonly lastSampledId: number | undefined;
  },
): Promise<void> {
  const { reading, lastSampledId } = turn;
  const { promptTime: now, renderer } = play.setup;
  if (isTurnOver()) await takeTurn();
  const environment = await observe(play, turn.observed);
  const change = {
    history: play.messages,
    assistant: reading.message,
    environment,
    tools: play.shownTools,
    ...(now && { now }),
  };
  const rewritten = renderer.rerender && (await renderer.rerender(change));
  if (rewritten === undefined) {
    const delta = await renderer.delta({ ...change, lastSampledId });
    play.recorder.appendDelta(delta);
    play.reasoningOpened = opensReasoning(delta.text);
  } else {
    play.recorder.openSegment(rewritten.ids);
    play.reasoningOpened = opensReasoning(rewritten.text);
  }
  play.messages.push(reading.message, ...environment);
}

/** The messages that carry what was observed. */
export async function observe(
  play: Play,
  observed: readonly Observed[],
): Promise<readonly Message[]> {
  const { agent } = play.setup;
  const messages = await callAgent(play, "show observations", () => agent.observe(observed));
  const place = `agent.observe() of ${agent.strategy}`;
  const checked = callAgent(play, "use what shows observations", () =>
    checkMessages(messages, place),
  );
  return checked instanceof Promise ? await checked : checked;
}
