import { callId } from "../../agent/call-id.ts";
import type { AssistantMessage, Message, ToolCall } from "../../message.ts";
import type { ClientAssistant, ClientMessage } from "../conversation.ts";
import type { SentTurn } from "../tree/turn-node.ts";

/** A turn as the client knows it and as the chat template does. */
export interface KnownTurn {
  readonly sent: SentTurn;
  readonly message: AssistantMessage;
}

/** How messages are shown to the policy. */
export interface ShowRules {
  /**
   * Whether the chat template takes system messages behind the first. Where it does not, they are shown
   * as a user's.
   */
  readonly laterSystem: boolean;
}

/** What the results that follow belong to. */
interface OpenCalls {
  readonly clientIds: readonly string[];
  readonly calls: readonly ToolCall[];
}

/**
 * The messages of a client as the chat template is to see them: results under the ids that the policy
 * knows its calls by, and calls of turns that were not sampled here under ids that every template takes.
 *
 * @param before - The sampled turn that they follow; absent at the beginning of a conversation.
 */
export function toTemplateMessages(
  messages: readonly ClientMessage[],
  before: KnownTurn | undefined,
  rules: ShowRules,
): readonly Message[] {
  let open: OpenCalls = {
    clientIds: before?.sent.calls.map(({ id }) => id) ?? [],
    calls: before?.message.toolCalls ?? [],
  };
  let resultCount = 0;
  return messages.map((message, index): Message => {
    if (message.role === "assistant") {
      const calls = foreignCalls(message, index);
      open = { clientIds: message.calls.map(({ id }) => id), calls };
      resultCount = 0;
      return {
        role: "assistant",
        content: message.content,
        ...(message.reasoning === undefined ? {} : { reasoning: message.reasoning }),
        ...(calls.length === 0 ? {} : { toolCalls: calls }),
      };
    }
    if (message.role === "tool") {
      const found = open.clientIds.indexOf(message.callId);
      // Where the client gave the calls ids of its own, results stand in the order of the calls.
      const call = open.calls[found === -1 ? resultCount : found];
      resultCount += 1;
      const { id: toolCallId, name } = call ?? { id: callId(index, 0), name: "tool" };
      return { role: "tool", content: message.content, toolCallId, name };
    }
    const isFirst = index === 0 && before === undefined;
    const isShownAsUser = message.role === "system" && !isFirst && !rules.laterSystem;
    return { role: isShownAsUser ? "user" : message.role, content: message.content };
  });
}

function foreignCalls({ calls }: ClientAssistant, index: number): readonly ToolCall[] {
  return calls.map(({ name, argumentsText }, place) => {
    // Nine letters and digits, as for our own: some templates insist on that.
    return { id: `f${callId(index, place).slice(1)}`, name, argumentsText };
  });
}
