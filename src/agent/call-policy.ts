import type { ToolDefinition } from "../message.ts";
import type { Attempt, AttemptStatus } from "../parser/tool-call-parser.ts";
import { parsePythonJson } from "../python/json/json-parse.ts";
import { PythonError } from "../python/python-error.ts";
import { isPyDict, type PyDict, type PyValue } from "../python/value.ts";
import { mendCall } from "./mend-call.ts";

/**
 * What can be said of a call that is in order by itself, and may keep it from being executed.
 *
 * - `schema-mismatch`: the arguments do not fit the tool's JSON Schema;
 * - `duplicate-call`: the same call was made before in the turn;
 * - `coerced`: it can be read, but is not written as the format wants it;
 * - `malformed-structure`: the engine's own parser would not have reported it;
 * - `trailing-text`: words follow it.
 */
export const refusableNotes = [
  "schema-mismatch",
  "duplicate-call",
  "coerced",
  "malformed-structure",
  "trailing-text",
] as const satisfies readonly AttemptStatus[];

/** Something about a call that `refuseCalls` may name. */
export type RefusableNote = (typeof refusableNotes)[number];

/**
 * What is wrong with a call that can be mended.
 *
 * - `invalid-json`: trailing commas, missing closing brackets, raw line breaks in strings, Python's
 *   spelling of values;
 * - `unclosed-block`: only the closing marker is missing;
 * - `malformed-structure`: it can be read, but is not framed as the engine's parser wants it;
 * - `double-encoded-arguments`: the arguments are a string that holds a JSON object;
 * - `non-object-arguments`: `null` or an empty string or list in the place of no arguments.
 */
export const repairableStatuses = [
  "invalid-json",
  "unclosed-block",
  "malformed-structure",
  "double-encoded-arguments",
  "non-object-arguments",
] as const satisfies readonly AttemptStatus[];

/** What may be wrong with a call that is mended. */
export type RepairableStatus = (typeof repairableStatuses)[number];

/**
 * What becomes of the calls of a turn. Without any option exactly the attempts whose status is `ok` are
 * executed; each other attempt comes back to the policy as an error under its own call id. No option
 * makes a call of a turn that was cut off by length, or one inside the reasoning, executable.
 */
export interface CallPolicy {
  /**
   * What a call is. `well-formed`, the default: what is in order by the rules of its format. `reported`:
   * what the engine's own parser would report, no more and no less, so that a turn does in training
   * what it does when the engine serves it.
   */
  readonly execute?: "well-formed" | "reported";
  /**
   * What becomes of a well-formed call of a tool that the environment does not offer. `refuse`, the
   * default, tells the policy which tools there are; `perform` hands it to the environment, which
   * answers in its own words, and in τ-bench takes a call of `respond` for talking to the user.
   */
  readonly unknownTools?: "refuse" | "perform";
  /** What keeps a call from being executed that is `ok` otherwise. Default nothing. */
  readonly refuse?: readonly RefusableNote[];
  /**
   * Which malformed calls are mended and executed. Their status stays what it was, and each is marked
   * as repaired in the turn's record. Default none: what is mended is nothing that the policy said, and
   * nothing that it learns to say better.
   */
  readonly repair?: readonly RepairableStatus[];
}

/** What is to be done about one attempt. */
type CallDecision =
  | {
      readonly type: "perform";
      readonly name: string;
      readonly arguments: PyDict;
      readonly isRepaired: boolean;
    }
  /** `observation` is what the policy is told. The same attempt is told the same. */
  | { readonly type: "refuse"; readonly status: AttemptStatus; readonly observation: string };

/** Decides about an attempt to call one of the tools. */
export function decideCall(
  attempt: Attempt,
  policy: CallPolicy,
  tools: readonly ToolDefinition[],
): CallDecision {
  const { name, status } = attempt;
  const isOk = status === "ok" || (status === "unknown-tool" && policy.unknownTools === "perform");
  const given = isOk ? readArguments(attempt) : undefined;
  if (name !== undefined && given !== undefined) {
    const note = attempt.diagnostics.find((found) =>
      policy.refuse?.some((s) => s === found.status),
    );
    if (note === undefined) return { type: "perform", name, arguments: given, isRepaired: false };
    return { type: "refuse", status: note.status, observation: explainNote(note) };
  }
  const mended = policy.repair?.some((repairable) => repairable === status)
    ? mendCall(attempt)
    : undefined;
  if (mended !== undefined) {
    const isKnown = tools.some((tool) => tool.name === mended.name);
    if (isKnown || policy.unknownTools === "perform") {
      return { type: "perform", ...mended, isRepaired: true };
    }
  }
  return { type: "refuse", status, observation: explainAttempt(attempt, tools) };
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

/** What the policy is told about a call that was not executed. Deterministic. */
export function explainAttempt(
  { status, name }: Attempt,
  tools: readonly ToolDefinition[],
): string {
  switch (status) {
    case "unknown-tool": {
      const known = tools.map((tool) => tool.name).join(", ");
      return `Error: unknown tool ${JSON.stringify(name ?? "")}, the available tools are: ${known}`;
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
