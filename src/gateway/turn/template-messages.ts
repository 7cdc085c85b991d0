import type { AssistantMessage, Message, ToolCall } from "../../message.ts";
import type { ClientAssistant, ClientMessage } from "../conversation.ts";
import { OpenCalls } from "../tree/open-calls.ts";
import type { SentTurn } from "../tree/turn-node.ts";
import { splitTurns } from "./split-turns.ts";
import { CallNamer } from "./call-namer.ts";
import type { CallHabits } from "./call-habits.ts";

/** A turn as the client knows it and as the chat template does. */
export interface KnownTurn {
  readonly sent: SentTurn;
  readonly message: AssistantMessage;
}

/** The way in which messages are shown to the policy. */
export interface ShowRules {
  /**
   * Whether the chat template takes system messages behind the first. Where it does not, they are shown
   * as a user's.
   */
  readonly laterSystem: boolean;
  readonly calls: CallHabits;
  /** Ids under which the policy knows calls that it made, by the clients' ids. */
  readonly sampledIds: ReadonlyMap<string, string>;
}

/** Turns and messages of a conversation before the messages that are to be shown. */
export interface ShownBefore {
  /** The sampled turns, the first comes first. */
  readonly turns: readonly KnownTurn[];
  /** All ids of calls so far. */
  readonly callIds: () => Iterable<string>;
}

/** The beginning of a conversation. */
export const nothingShown: ShownBefore = { turns: [], callIds: () => [] };

/**
 * The messages of a client as the chat template is to see them: each result under the id and the name of its
 * call, and calls under ids that the template accepts and shows.
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
  for (const { sent: known, message } of turns) {
    const { toolCalls = [] } = message;
    open.addTurn(toolCalls.map((call, place) => ({ id: known.calls[place]!.id, call })));
  }
  return messages.map((message, index): Message => {
    if (message.role === "assistant") {
      const shown = foreignCalls(message, namer);
      open.addTurn(shown.map((call, place) => ({ id: message.calls[place]!.id, call })));
      return toAssistant(message, shown);
    }
    if (message.role === "tool") {
      const call = open.answer(message.callId)?.call ?? open.answerNext();
      const { id: toolCallId, name } = call ?? {
        id: namer.nameOrphan(message.callId),
        name: "tool",
      };
      return { role: "tool", content: message.content, toolCallId, name };
    }
    const isFirst = index === 0 && depth === 0;
    const isShownAsUser = message.role === "system" && !isFirst && !rules.laterSystem;
    return { role: isShownAsUser ? "user" : message.role, content: message.content };
  });
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
