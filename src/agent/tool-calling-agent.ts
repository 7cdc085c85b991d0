import type { Message, ToolCall, ToolDefinition } from "../message.ts";
import type {
  Attempt,
  AttemptStatus,
  Dialect,
  ToolCallParser,
} from "../parser/tool-call-parser.ts";
import { parsePythonJson } from "../python/json-parse.ts";
import { PythonError } from "../python/python-error.ts";
import { isPyDict, type PyDict, type PyValue } from "../python/value.ts";
import type { Agent, Intent, Observed, Opening, Reading } from "./agent.ts";
import { callId } from "./call-id.ts";
import { withoutReasoning, type SplitReasoning } from "./split-reasoning.ts";
import { appendInstruction, type ToolUsePolicy } from "./tool-use-policy.ts";

/** How a tool-calling agent reads turns. */
export interface ToolCallingOptions {
  readonly parser: ToolCallParser;
  readonly dialect?: Dialect;
  readonly engineVersion?: string;
  /** Absent: the whole text is read, reasoning included. */
  readonly splitReasoning?: SplitReasoning;
  readonly toolUsePolicy: ToolUsePolicy;
  /**
   * What becomes of a well-formed call of a tool that the environment does not offer. `refuse`, the
   * default, tells the policy which tools there are; `perform` hands it to the environment, which
   * answers in its own words, and in τ-bench takes a call of `respond` for talking to the user.
   */
  readonly unknownTools?: "refuse" | "perform";
}

/** Statuses that are an attempt at a call, as against a remark about the text. */
const callStatuses: ReadonlySet<AttemptStatus> = new Set([
  "ok",
  "invalid-json",
  "unclosed-block",
  "missing-name",
  "malformed-structure",
  "unknown-tool",
  "non-object-arguments",
  "schema-mismatch",
  "duplicate-call",
  "double-encoded-arguments",
  "coerced",
  "truncated-by-length",
]);

const executableStatuses: ReadonlySet<AttemptStatus> = new Set([
  "ok",
  "schema-mismatch",
  "coerced",
  "duplicate-call",
]);

/**
 * The agent that calls tools through the chat template: the policy text is the system message, a
 * turn without a call is said to the user, and each malformed call comes back to the policy as an
 * error under its own call id.
 */
export function toolCallingAgent(options: ToolCallingOptions): Agent {
  const { toolUsePolicy } = options;
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

    read({ text, tools, turnIndex, finish, reasoningOpened }): Reading {
      const { reasoning, rest } = withoutReasoning(text, options.splitReasoning, reasoningOpened);
      const { compat, attempts } = options.parser.parse(rest, {
        tools,
        finishReason: finish,
        ...(options.dialect === undefined ? {} : { dialect: options.dialect }),
        ...(options.engineVersion === undefined ? {} : { engineVersion: options.engineVersion }),
      });
      const calls = attempts.filter((attempt) => callStatuses.has(attempt.status));
      const attemptCounts = countStatuses(attempts);
      if (calls.length === 0) {
        const content = reasoning === "" ? rest : rest.trimStart();
        return {
          message: { role: "assistant", content },
          reasoning,
          intents: [
            { type: "act", callId: callId(turnIndex, 0), action: { type: "say", content } },
          ],
          attemptCounts,
        };
      }
      return {
        message: {
          role: "assistant",
          content: compat.raises ? "" : compat.normalText,
          toolCalls: calls
            .slice(0, toolUsePolicy.callsPerTurn === "first" ? 1 : calls.length)
            .map((attempt, index) => toToolCall(attempt, callId(turnIndex, index))),
        },
        reasoning,
        intents: calls.map((attempt, index) =>
          toIntent(attempt, { index, callId: callId(turnIndex, index), tools, options }),
        ),
        attemptCounts,
      };
    },

    observe(observed: readonly Observed[]): readonly Message[] {
      return observed.map(({ callId: toolCallId, name, from, text }) =>
        from === "user"
          ? { role: "user", content: text }
          : { role: "tool", content: text, toolCallId, name },
      );
    },
  };
}

/** The name that a message carries for a call whose name could not be read. */
const unreadableName = "unreadable_call";

function toToolCall(attempt: Attempt, id: string): ToolCall {
  return {
    id,
    name: attempt.name ?? unreadableName,
    argumentsText: attempt.argumentsText ?? "{}",
  };
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
  const name = attempt.name ?? unreadableName;
  if (callsPerTurn === "first" && index > 0) return { type: "ignore", callId: id, name };
  if (callsPerTurn === "one" && index > 0) {
    const observation = "Error: not executed, only one tool call is allowed in a turn";
    return { type: "refuse", callId: id, name, status: "extra-call", observation };
  }
  const given = isExecutable(attempt, options) ? readArguments(attempt) : undefined;
  if (given !== undefined) {
    return { type: "act", callId: id, action: { type: "call", name, arguments: given } };
  }
  const status = attempt.status;
  return { type: "refuse", callId: id, name, status, observation: explainAttempt(attempt, tools) };
}

function isExecutable(
  { status, name }: Attempt,
  { unknownTools = "refuse" }: ToolCallingOptions,
): boolean {
  if (name === undefined) return false;
  if (status === "unknown-tool") return unknownTools === "perform";
  return executableStatuses.has(status);
}

/** The arguments, where they are an object. */
function readArguments({ argumentsText = "{}" }: Attempt): PyDict | undefined {
  let value: PyValue;
  try {
    value = parsePythonJson(argumentsText);
  } catch (error) {
    if (error instanceof PythonError) return undefined;
    throw error;
  }
  return isPyDict(value) ? value : undefined;
}

/** What the policy is told about a call that was not executed. Deterministic. */
export function explainAttempt(attempt: Attempt, tools: readonly ToolDefinition[]): string {
  switch (attempt.status) {
    case "unknown-tool": {
      const known = tools.map((tool) => tool.name).join(", ");
      return `Error: unknown tool ${JSON.stringify(attempt.name ?? "")}, the available tools are: ${known}`;
    }
    case "invalid-json":
      return "Error: the tool call is not valid JSON";
    case "unclosed-block":
      return "Error: the tool call is not closed";
    case "missing-name":
      return "Error: the tool call has no name";
    case "non-object-arguments":
    case "double-encoded-arguments":
      return "Error: the arguments of the tool call must be a JSON object";
    case "truncated-by-length":
      return "Error: the tool call was cut off";
    default:
      return "Error: the tool call is malformed";
  }
}

function countStatuses(attempts: readonly Attempt[]): Partial<Record<AttemptStatus, number>> {
  const counts: Partial<Record<AttemptStatus, number>> = {};
  for (const { status } of attempts) counts[status] = (counts[status] ?? 0) + 1;
  return counts;
}
