import type { AssistantMessage, Message, ToolCall, ToolDefinition } from "../message.ts";
import type { Attempt, AttemptStatus } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { Intent, Observed, Reading } from "./agent.ts";
import { callId } from "./call-id.ts";
import { decideCall, explainAttempt, type CallPolicy } from "./call-policy.ts";
import type { ToolUsePolicy } from "./tool-use-policy.ts";

/** The rules of a tool-calling agent. */
export interface ToolIntentOptions extends CallPolicy {
  readonly toolUsePolicy: ToolUsePolicy;
  /**
   * True if the chat template accepts results of several calls after a turn. Default true. If
   * false, only the first call of a turn is executed, and the errors of the others are added to its
   * result.
   */
  readonly parallelResults?: boolean;
}

/**
 * Converts a turn's calls to a message and intents.
 *
 * @param turn - `ids` are the ids of the calls.
 */
export function toCallReading(
  calls: readonly Attempt[],
  turn: {
    readonly content: string;
    readonly ids: readonly string[];
    readonly tools: readonly ToolDefinition[];
  },
  options: ToolIntentOptions,
): Pick<Reading, "message" | "intents"> {
  const { content, ids, tools } = turn;
  const { parallelResults = true, toolUsePolicy } = options;
  const isSingle = toolUsePolicy.callsPerTurn === "first" || !parallelResults;
  return {
    message: toAssistant(content, isSingle ? calls.slice(0, 1) : calls, ids),
    intents: calls.map((attempt, index) =>
      toIntent(attempt, { index, callId: ids[index]!, tools, options }),
    ),
  };
}

/** Converts a turn without a call, which is said to the user. */
export function toWords(content: string, turnIndex: number): Pick<Reading, "message" | "intents"> {
  return {
    message: { role: "assistant", content },
    intents: [{ type: "act", callId: callId(turnIndex, 0), action: { type: "say", content } }],
  };
}

/** The name in the message for a call without a readable name. */
const unreadableName = "unreadable_call";

/** Returns the message of a turn with calls. */
export function toAssistant(
  content: string,
  calls: readonly Attempt[],
  ids: readonly string[],
): AssistantMessage {
  const toolCalls = calls.map(
    ({ name = unreadableName, argumentsText = "{}" }, index): ToolCall => ({
      id: ids[index]!,
      name,
      argumentsText,
    }),
  );
  return { role: "assistant", content, toolCalls };
}

function toIntent(
  attempt: Attempt,
  place: {
    readonly index: number;
    readonly callId: string;
    readonly tools: readonly ToolDefinition[];
    readonly options: ToolIntentOptions;
  },
): Intent {
  const { index, callId: id, tools, options } = place;
  const { callsPerTurn } = options.toolUsePolicy;
  const { name = unreadableName } = attempt;
  if (callsPerTurn === "first" && index > 0) return { type: "ignore", callId: id, name };
  const decision = decideCall(attempt, options, tools);
  if ((callsPerTurn === "one" || options.parallelResults === false) && index > 0) {
    const observation = "Error: not executed, only one tool call is allowed in a turn";
    // A call that would be refused anyway keeps its own status.
    const status = decision.type === "refuse" ? decision.status : "extra-call";
    return { type: "refuse", callId: id, name, status, observation };
  }
  if (decision.type === "refuse") return { ...decision, callId: id, name };
  const action = { type: "call", name: decision.name, arguments: decision.arguments } as const;
  return decision.isRepaired
    ? { type: "act", callId: id, action, repaired: true }
    : { type: "act", callId: id, action };
}

/** Refuses a call without asking the environment. */
export function refuseAttempt(
  attempt: Attempt,
  id: string,
  tools: readonly ToolDefinition[],
): Intent {
  const { name = unreadableName, status } = attempt;
  return { type: "refuse", callId: id, name, status, observation: explainAttempt(attempt, tools) };
}

/** Converts an observation to a message. */
export function toObservedMessage({ callId: toolCallId, name, from, text }: Observed): Message {
  return from === "user"
    ? { role: "user", content: text }
    : { role: "tool", content: text, toolCallId, name };
}

/** Counts attempts by their status. */
export function countStatuses(
  attempts: readonly Attempt[],
): Partial<Record<AttemptStatus, number>> {
  const counts: Partial<Record<AttemptStatus, number>> = {};
  for (const { status } of attempts) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
