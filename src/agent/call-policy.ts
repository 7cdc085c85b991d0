import type { ToolDefinition } from "../message.ts";
import type { Attempt, AttemptStatus } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import { isPyDict, type PyDict, type PyValue } from "../../packages/python-values/src/value.ts";
import { repairCall } from "./repair-call.ts";

/**
 * Reasons to refuse a call that is otherwise valid.
 *
 * - `schema-mismatch`: the arguments do not match the tool's JSON Schema;
 * - `duplicate-call`: the turn already contains the same call;
 * - `coerced`: the call is readable, but not in the exact format;
 * - `malformed-structure`: the engine's own parser would not report the call;
 * - `trailing-text`: text follows the call.
 */
export const refusableNotes = [
  "schema-mismatch",
  "duplicate-call",
  "coerced",
  "malformed-structure",
  "trailing-text",
] as const satisfies readonly AttemptStatus[];

/** The name of a reason in `CallPolicy.refuse`. */
export type RefusableNote = (typeof refusableNotes)[number];

/**
 * Defects of a call that can be repaired.
 *
 * - `invalid-json`: trailing commas, missing closing brackets, raw line breaks in strings, Python
 *   literals;
 * - `unclosed-block`: only the closing marker is missing;
 * - `malformed-structure`: the call is readable, but not framed as the engine's parser requires;
 * - `double-encoded-arguments`: the arguments are a string that contains a JSON object;
 * - `non-object-arguments`: `null` or an empty string or list instead of an object.
 */
export const repairableStatuses = [
  "invalid-json",
  "unclosed-block",
  "malformed-structure",
  "double-encoded-arguments",
  "non-object-arguments",
] as const satisfies readonly AttemptStatus[];

/** The name of a defect that can be repaired. */
export type RepairableStatus = (typeof repairableStatuses)[number];

/**
 * The rules for executing a turn's calls. By default exactly the attempts with status `ok` are
 * executed, and each other attempt returns an error to the policy under its own call id. No option
 * executes a call of a turn that was cut off by length, or a call inside the reasoning.
 */
export interface CallPolicy {
  /**
   * The definition of a valid call. `well-formed` (default): it follows the rules of its format.
   * `reported`: the engine's own parser reports it, so that a turn has the same effect in training
   * as when the engine serves it.
   */
  readonly execute?: "well-formed" | "reported";
  /**
   * The treatment of a well-formed call of an unknown tool. `refuse` (default) lists the available
   * tools to the policy. `perform` passes the call to the environment, which answers in its own
   * words. In τ-bench a call of `respond` then speaks to the user.
   */
  readonly unknownTools?: "refuse" | "perform";
  /** Reasons to refuse calls that are `ok` otherwise. Default none. */
  readonly refuse?: readonly RefusableNote[];
  /**
   * Malformed calls that are repaired and executed. They keep their status and are marked as
   * repaired in the turn's record. Default none, because the policy does not learn to write a call
   * that is repaired for it.
   */
  readonly repair?: readonly RepairableStatus[];
}

/** The decision about one attempt to call a tool. */
type CallDecision =
  | {
      readonly type: "perform";
      readonly name: string;
      readonly arguments: PyDict;
      readonly isRepaired: boolean;
    }
  /** `observation` is the error for the policy. It is the same for equal attempts. */
  | { readonly type: "refuse"; readonly status: AttemptStatus; readonly observation: string };

/** Decides whether to execute an attempt to call a tool. */
export function decideCall(
  attempt: Attempt,
  policy: CallPolicy,
  tools: readonly ToolDefinition[],
): CallDecision {
  const { name, status } = attempt;
  const isExecutable =
    status === "ok" || (status === "unknown-tool" && policy.unknownTools === "perform");
  const given = isExecutable ? readArguments(attempt) : undefined;
  if (name !== undefined && given !== undefined) {
    const note = attempt.diagnostics.find((found) =>
      policy.refuse?.some((s) => s === found.status),
    );
    if (note === undefined) return { type: "perform", name, arguments: given, isRepaired: false };
    return { type: "refuse", status: note.status, observation: explainNote(note) };
  }
  const repaired = policy.repair?.some((repairable) => repairable === status)
    ? repairCall(attempt)
    : undefined;
  if (repaired !== undefined) {
    const isKnown = tools.some((tool) => tool.name === repaired.name);
    if (isKnown || policy.unknownTools === "perform") {
      return { type: "perform", ...repaired, isRepaired: true };
    }
  }
  return { type: "refuse", status, observation: explainAttempt(attempt, tools) };
}

/** Parses the arguments. Returns `undefined` if they are not an object. */
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

function explainNote({ status, detail }: Attempt["diagnostics"][number]): string {
  switch (status) {
    case "schema-mismatch":
      return `Error: the arguments do not fit the parameters of the tool: ${detail}`;
    case "duplicate-call":
      return "Error: not executed, the same call was made before in this turn";
    case "trailing-text":
      return "Error: not executed, a tool call must be the end of the turn";
    default:
      return `Error: the tool call is malformed: ${detail}`;
  }
}

/**
 * Returns the error for the policy about a call that was not executed. Equal attempts have equal
 * errors.
 */
export function explainAttempt(
  { status, name }: Attempt,
  tools: readonly ToolDefinition[],
): string {
  switch (status) {
    case "unknown-tool": {
      const known = tools.map((tool) => tool.name).join(", ");
      const which = tools.length === 0 ? "there are no tools" : `the available tools are: ${known}`;
      return `Error: unknown tool ${JSON.stringify(name ?? "")}, ${which}`;
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
    case "in-reasoning":
      return "Error: not executed, the tool call stands inside the reasoning";
    case "truncated-by-length":
      return "Error: the tool call was cut off";
    default:
      return "Error: the tool call is malformed";
  }
}
