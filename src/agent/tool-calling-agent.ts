import type { AssistantMessage, Message, ToolCall, ToolDefinition } from "../message.ts";
import type { Attempt, AttemptStatus } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import type { Agent, Intent, Observed, Opening, Reading } from "./agent.ts";
import { callId, chooseCallIds } from "./call-id.ts";
import { decideCall, explainAttempt, type CallPolicy } from "./call-policy.ts";
import { asReported } from "./reported-calls.ts";
import { withReasoning } from "./split-reasoning.ts";
import { appendInstruction, type ToolUsePolicy } from "./tool-use-policy.ts";
import { isCall } from "./turn-form.ts";
import {
  judgeForm,
  splitTurn,
  type TurnFormats,
  type TurnParts,
  type TurnToRead,
} from "./turn-parts.ts";

/** Settings of a tool-calling agent. */
export interface ToolCallingOptions extends TurnFormats, CallPolicy {
  readonly toolUsePolicy: ToolUsePolicy;
  /**
   * True if the chat template accepts results of several calls after a turn. Default true. If
   * false, only the first call of a turn is executed, and the errors of the others are added to its
   * result.
   */
  readonly parallelResults?: boolean;
}

/**
 * Creates the agent that calls tools through the chat template. The policy text is the system
 * message. A turn without a call is sent to the user. A malformed call returns an error to the
 * policy under its own call id.
 */
export function createToolCallingAgent(options: ToolCallingOptions): Agent {
  const { toolUsePolicy, parallelResults = true } = options;
  return {
    strategy: "tool-calling",

    open({ policyText, tools, firstUserText }): Opening {
      const system = appendInstruction(policyText, toolUsePolicy);
      return {
        messages: [
          { role: "system", content: system },
          { role: "user", content: firstUserText },
        ],
        tools,
      };
    },

    read(turn): Reading {
      const parts = splitTurn(turn, options);
      const found = parts.attempts.filter(isCall);
      const calls =
        options.execute === "reported" ? asReported(found, parts.compat.calls, turn) : found;
      const { message, intents } =
        calls.length > 0 ? readCalls(calls, parts, turn, options) : readText(parts, turn);
      return {
        message: withReasoning(message, parts.reasoning),
        reasoning: parts.reasoning,
        intents,
        attemptCounts: countStatuses(parts),
        form: judgeForm(parts, message.content, turn, options),
      };
    },

    observe(observed: readonly Observed[]): readonly Message[] {
      const messages = observed.map(toMessage);
      const [first] = messages;
      if (parallelResults || first?.role !== "tool" || messages.length === 1) return messages;
      return [{ ...first, content: observed.map(({ text }) => text).join("\n\n") }];
    },
  };
}

/**
 * Reads a turn without a call, which is sent to the user. If it has no text but calls inside the
 * reasoning, the policy receives an error instead, because the user would receive an empty message.
 */
function readText(
  { reasoning, rest, drafts }: TurnParts,
  turn: TurnToRead,
): Pick<Reading, "message" | "intents"> {
  if (rest.trim() === "" && drafts.length > 0) {
    const ids = chooseCallIds(
      drafts.map(({ id }) => id),
      turn.turnIndex,
    );
    return {
      message: toAssistant("", drafts, ids),
      intents: drafts.map((attempt, index) => refuse(attempt, ids[index]!, turn.tools)),
    };
  }
  const content = reasoning === "" ? rest : rest.trimStart();
  return {
    message: { role: "assistant", content },
    intents: [{ type: "act", callId: callId(turn.turnIndex, 0), action: { type: "say", content } }],
  };
}

function readCalls(
  calls: readonly Attempt[],
  { compat }: TurnParts,
  { turnIndex, tools }: TurnToRead,
  options: ToolCallingOptions,
): Pick<Reading, "message" | "intents"> {
  const { parallelResults = true, toolUsePolicy } = options;
  const ids = chooseCallIds(
    calls.map(({ id }) => id),
    turnIndex,
  );
  const isSingle = toolUsePolicy.callsPerTurn === "first" || !parallelResults;
  return {
    message: toAssistant(
      compat.raises ? "" : compat.normalText,
      isSingle ? calls.slice(0, 1) : calls,
      ids,
    ),
    intents: calls.map((attempt, index) =>
      toIntent(attempt, { index, callId: ids[index]!, tools, options }),
    ),
  };
}

/** The name in the message for a call without a readable name. */
const unreadableName = "unreadable_call";

function toAssistant(
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
    readonly options: ToolCallingOptions;
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

function refuse(attempt: Attempt, id: string, tools: readonly ToolDefinition[]): Intent {
  const { name = unreadableName, status } = attempt;
  return { type: "refuse", callId: id, name, status, observation: explainAttempt(attempt, tools) };
}

function toMessage({ callId: toolCallId, name, from, text }: Observed): Message {
  return from === "user"
    ? { role: "user", content: text }
    : { role: "tool", content: text, toolCallId, name };
}

function countStatuses({ drafts, attempts }: TurnParts): Partial<Record<AttemptStatus, number>> {
  const counts: Partial<Record<AttemptStatus, number>> = {};
  for (const { status } of drafts) counts[status] = (counts[status] ?? 0) + 1;
  for (const { status } of attempts) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
