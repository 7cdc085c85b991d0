import type { Reading } from "../../agent/agent.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { writeChatTurn } from "../../engine/chat/chat-turn-text.ts";
import type { ChatTurn } from "../../engine/chat/chat-turn.ts";
import type { World } from "../../environment/environment.ts";
import { checkReading } from "../check/check-agent.ts";
import type { TurnRecord, TurnStep } from "../episode.ts";
import { callAgent, type Play, type TurnsEnd } from "../play.ts";
import { observe } from "../turn/add-observations.ts";
import { cutOffBy, endByFormatErrors, endWith, isLast } from "../turn/end-turn.ts";
import { describeForm } from "../turn/record-form.ts";
import { performIntents } from "../turn/perform-intents.ts";
import { askChatTurn, type AskedChatTurn } from "./ask-chat-turn.ts";
import type { ChatConversation } from "./chat-conversation.ts";

/**
 * Plays one turn with an engine that returns messages: requests it, reads it, performs its intents in the world, and
 * adds the observations to the conversation.
 *
 * @returns the reason why the episode is over. `undefined` if it continues.
 * @throws RolloutError with the party that failed, and UsageError as `askChatTurn()` does.
 */
export async function playChatTurn(
  play: Play,
  chat: ChatConversation,
  { world, turnIndex }: { readonly world: World; readonly turnIndex: number },
): Promise<TurnsEnd | undefined> {
  if (isTurnOver()) await takeTurn();
  const asked = await askChatTurn(play, chat, turnIndex);
  if (asked.type === "ended") return asked.end;
  const { turn, sampledAtMs } = asked;
  const { finish, usage } = turn;
  const steps: TurnStep[] = [];
  const record = describeTurn(asked, { turnIndex, steps });
  play.turns.push(record);
  const note = (more: Partial<TurnRecord>): void => void Object.assign(record, more);
  try {
    const reading = await readTurn(play, turn, turnIndex);
    const { attemptCounts, form, intents, message, reasoning } = reading;
    note(reasoning === "" ? { attemptCounts } : { reasoning, attemptCounts });
    // The place of a call among the tokens is not known.
    if (form !== undefined) note(describeForm(form, [], 0));
    const cutOff = cutOffBy({ finish }, play.setup.limits.onLength);
    if (cutOff !== undefined) {
      play.messages.push(message);
      return cutOff;
    }
    const performed = await performIntents(play, world, {
      reading,
      finish,
      ...(usage && {
        usage: { promptTokens: usage.promptTokenCount, sampledTokens: usage.sampledTokenCount },
      }),
      steps,
      note,
      sampledAtMs,
    });
    if (isLast(performed)) return await endWith(play, reading, performed);
    const observations = await observe(play, performed.observed);
    chat.add(turn, message, observations);
    play.messages.push(message, ...observations);
    return endByFormatErrors(play, intents);
  } finally {
    play.setup.onTurn?.(record);
  }
}

function describeTurn(
  { turn, engineMs }: Extract<AskedChatTurn, { type: "turn" }>,
  { turnIndex, steps }: Pick<TurnRecord, "turnIndex" | "steps">,
): TurnRecord {
  const { finish, usage } = turn;
  const { text } = writeChatTurn(turn);
  const { promptTokenCount = 0, sampledTokenCount = 0, cachedTokenCount } = usage ?? {};
  return {
    turnIndex,
    text,
    finish,
    sampledTokenCount,
    promptTokenCount,
    ...(cachedTokenCount !== undefined && { cachedTokenCount }),
    ...(usage === undefined && { isUnmetered: true }),
    attemptCounts: {},
    steps,
    engineMs,
    userMs: 0,
    environmentMs: 0,
  };
}

/** Lets the agent read a turn. An agent without `readMessage()` reads its text. */
async function readTurn(play: Play, turn: ChatTurn, turnIndex: number): Promise<Reading> {
  const { agent } = play.setup;
  const { content, finish, toolCalls, reasoning = "" } = turn;
  const what = `read turn ${turnIndex}`;
  const about = { tools: play.tools, turnIndex, finish };
  const given = await callAgent(play, what, () =>
    agent.readMessage === undefined
      ? agent.read({ ...about, text: content, reasoningOpened: false })
      : agent.readMessage({ ...about, content, reasoning, toolCalls }),
  );
  const method = agent.readMessage === undefined ? "read" : "readMessage";
  const reading = await callAgent(play, what, () =>
    checkReading(given, `agent.${method}() of ${agent.strategy}`, writeChatTurn(turn).text.length),
  );
  // An agent that reads text does not know the engine's reasoning.
  if (reading.reasoning !== "" || reasoning.trim() === "") return reading;
  return { ...reading, reasoning, message: { ...reading.message, reasoning } };
}
