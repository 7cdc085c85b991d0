import type { ClientAssistant, ClientMessage, ClientResult } from "../conversation.ts";
import { OpenCalls } from "../tree/open-calls.ts";

/**
 * Moves each call into its own turn, followed by its result, for chat templates that render one
 * call a turn. Other messages stay unchanged.
 */
export function splitTurns(messages: readonly ClientMessage[]): readonly ClientMessage[] {
  const split: ClientMessage[] = [];
  for (let index = 0; index < messages.length; index++) {
    const message = messages[index]!;
    if (message.role !== "assistant" || message.calls.length < 2) {
      split.push(message);
      continue;
    }
    const results: ClientResult[] = [];
    for (let next = messages[index + 1]; next?.role === "tool"; next = messages[index + 1]) {
      results.push(next);
      index += 1;
    }
    for (const each of splitTurn(message, results)) split.push(each);
  }
  return split;
}

function splitTurn(
  turn: ClientAssistant,
  results: readonly ClientResult[],
): readonly ClientMessage[] {
  const open = new OpenCalls<number>();
  open.addTurn(turn.calls.map(({ id }, place) => ({ id, call: place })));
  const answers = turn.calls.map((): ClientResult[] => []);
  const others: ClientResult[] = [];
  for (const result of results) {
    const place = open.answer(result.callId)?.call ?? open.answerNext();
    (place === undefined ? others : answers[place]!).push(result);
  }
  const { reasoning: _reasoning, ...withoutText } = { ...turn, content: "" };
  return [
    ...turn.calls.flatMap((call, place): ClientMessage[] => [
      place === 0 ? { ...turn, calls: [call] } : { ...withoutText, calls: [call] },
      ...answers[place]!,
    ]),
    ...others,
  ];
}
