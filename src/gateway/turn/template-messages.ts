import type { AssistantMessage, Message, ToolCall } from "../../message.ts";
import { ClientError } from "../client-error.ts";
import type { ClientAssistant, ClientCall, ClientMessage } from "../conversation.ts";
import { OpenCalls } from "../tree/open-calls.ts";
import type { SentTurn } from "../tree/turn-node.ts";
import { isArgumentsObject } from "../../renderer/openai-messages.ts";
import { splitTurns } from "./split-turns.ts";
import { CallNamer } from "./call-namer.ts";
import type { CallHabits } from "./call-habits.ts";
import { divideTurn, formOf } from "./turn-forms.ts";

/** A turn in the client's form and in the chat template's form. */
export interface KnownTurn {
  readonly sent: SentTurn;
  readonly message: AssistantMessage;
}

/** The rules for converting messages for the chat template. */
export interface ShowRules {
  /**
   * True if the chat template accepts system messages after the first message. Otherwise they
   * become user messages.
   */
  readonly laterSystem: boolean;
  readonly calls: CallHabits;
  /** The policy's ids of sampled calls, by the client's ids. */
  readonly sampledIds: ReadonlyMap<string, string>;
}

/** The turns and call ids before the messages to convert. */
export interface ShownBefore {
  /** The sampled turns in order. */
  readonly turns: readonly KnownTurn[];
  /** Returns all call ids so far. */
  readonly callIds: () => Iterable<string>;
}

/** The state before the first message. */
export const emptyHistory: ShownBefore = { turns: [], callIds: () => [] };

/**
 * Converts a client's messages for the chat template. Each result gets its call's id and name, and
 * calls get ids that the template accepts.
 *
 * @throws ClientError `invalid` if the template drops a turn's calls, or cannot print their arguments.
 */
export function toTemplateMessages(
  sent: readonly ClientMessage[],
  before: ShownBefore,
  rules: ShowRules,
): readonly Message[] {
  const { turns, callIds } = before;
  const depth = turns.length;
  const { calls: habits, sampledIds } = rules;
  const messages = habits.showsAllCalls ? sent : splitTurns(sent);
  const namer = new CallNamer(habits, { sampledIds, depth, callIdsBefore: callIds });
  const open = new OpenCalls<ToolCall>();
  for (const { sent: sentTurn, message } of turns) {
    const { toolCalls = [] } = message;
    open.addTurn(toolCalls.map((call, place) => ({ id: sentTurn.calls[place]!.id, call })));
  }
  return messages.flatMap((message, index): readonly Message[] => {
    if (message.role === "assistant") {
      requireReadable(message, habits);
      const shown = foreignCalls(message, namer);
      open.addTurn(shown.map((call, place) => ({ id: message.calls[place]!.id, call })));
      return divide(toAssistant(message, shown), habits);
    }
    if (message.role === "tool") {
      const call = open.answer(message.callId)?.call ?? open.answerNext();
      const { id: toolCallId, name } = call ?? {
        id: namer.nameOrphan(message.callId),
        name: "tool",
      };
      return [{ role: "tool", content: message.content, toolCallId, name }];
    }
    const isFirst = index === 0 && depth === 0;
    const isShownAsUser = message.role === "system" && !isFirst && !rules.laterSystem;
    return [{ role: isShownAsUser ? "user" : message.role, content: message.content }];
  });
}

/** @throws ClientError `invalid` if the template drops a turn's calls, or cannot print their arguments. */
function requireReadable(
  { calls }: ClientAssistant,
  { dropsCalls, takesTextArguments }: CallHabits,
): void {
  if (dropsCalls && calls.length > 0) throw new ClientError("invalid", noCalls);
  if (takesTextArguments) return;
  const unread = calls.find(({ argumentsText }) => !isArgumentsObject(argumentsText));
  if (unread !== undefined) throw unshownArguments(unread);
}

/** @throws ClientError `invalid` if the template shows the turn's calls in no form. */
function divide(turn: AssistantMessage, { turnForms }: CallHabits): readonly AssistantMessage[] {
  const form = formOf(turn, turnForms);
  if (form === "calls-lost" && turn.content.trim() !== "") throw lostCalls(turn.toolCalls![0]!);
  return divideTurn(turn, form);
}

const noCalls =
  "Cannot show the calls of earlier turns with the chat template: the prompt does not contain them; " +
  "send them as text, as the model writes them, or give the model a chat template that prints calls";

function lostCalls({ name }: ToolCall): ClientError {
  const message =
    `Cannot show an earlier call of ${name} with the chat template: the prompt does not contain calls beside text; ` +
    "send the turn without its text, or the call as text, as the model writes it";
  return new ClientError("invalid", message);
}

function unshownArguments({ name, argumentsPlace: place }: ClientCall): ClientError {
  const what = place ?? `the arguments of an earlier call of ${name}`;
  const message =
    `Cannot show ${what}: the text is no JSON object, and the chat template prints only objects; ` +
    "send an object, or the call as text of the assistant";
  return new ClientError("invalid", message, place === undefined ? {} : { place });
}

function toAssistant(
  { content, reasoning }: ClientAssistant,
  toolCalls: readonly ToolCall[],
): AssistantMessage {
  return {
    role: "assistant",
    content,
    ...(reasoning !== undefined && { reasoning }),
    ...(toolCalls.length !== 0 && { toolCalls }),
  };
}

function foreignCalls({ calls }: ClientAssistant, namer: CallNamer): readonly ToolCall[] {
  const ids = namer.nameCalls(calls);
  return calls.map(({ name, argumentsText }, place) => ({ id: ids[place]!, name, argumentsText }));
}
