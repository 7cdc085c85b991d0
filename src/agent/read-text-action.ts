import type { AttemptStatus } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import {
  parsePythonJson,
  PythonJsonError,
} from "../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import { pythonStrip } from "../../packages/python-values/src/text/strip.ts";
import { isPyDict, type PyDict, type PyValue } from "../../packages/python-values/src/value.ts";

/**
 * The name of the action with which an agent without tool calls talks to the user. Its argument is
 * `content`.
 */
export const respondAction = "respond";

/** The content of a turn that names its action as text. */
export type TextAction =
  | { readonly type: "action"; readonly name: string; readonly arguments: PyDict }
  /** The text is not JSON. */
  | {
      readonly type: "text";
      /** The text without surrounding white space. */
      readonly text: string;
      /** True if the text follows the label `Action:` or starts with a brace. */
      readonly isAttempt: boolean;
    }
  /** The JSON is not a valid action. */
  | {
      readonly type: "mistake";
      readonly status: AttemptStatus;
      /** The member `name` of the JSON. Absent if it is missing or not a string. */
      readonly name?: string;
      /** The error for the policy. */
      readonly observation: string;
    };

const label = "Action:";

/**
 * Reads the action of a turn: the JSON object with `name` and `arguments` after the last `Action:`,
 * or in the complete text if the label is missing. Returns a result for every text.
 *
 * **Source:** sierra-research/tau-bench, tau_bench/agents/chat_react_agent.py
 * (`generate_next_step`). Each mistake here is an exception there.
 */
export function readTextAction(text: string): TextAction {
  const labelAt = text.lastIndexOf(label);
  const tail = pythonStrip(labelAt === -1 ? text : text.slice(labelAt + label.length));
  let value: PyValue;
  try {
    value = parsePythonJson(tail);
  } catch (error) {
    if (error instanceof PythonJsonError) {
      return { type: "text", text: tail, isAttempt: labelAt !== -1 || tail.startsWith("{") };
    }
    if (!(error instanceof PythonError)) throw error;
    return mistake("invalid-json", `the action cannot be read: ${error.message}`);
  }
  return toAction(value);
}

function toAction(value: PyValue): TextAction {
  if (!isPyDict(value)) {
    return mistake(
      "malformed-structure",
      'the action must be a JSON object with "name" and "arguments"',
    );
  }
  const name = value.get("name");
  if (name === undefined) return mistake("missing-name", 'the action has no "name"');
  if (typeof name !== "string") {
    return mistake("malformed-structure", 'the "name" of the action must be a string');
  }
  const given = value.get("arguments");
  if (given === undefined) {
    return mistake("malformed-structure", 'the action has no "arguments"', name);
  }
  if (!isPyDict(given)) {
    return mistake(
      "non-object-arguments",
      'the "arguments" of the action must be a JSON object',
      name,
    );
  }
  if (name === respondAction && !given.has("content")) {
    return mistake("schema-mismatch", `the action "${name}" has no argument "content"`, name);
  }
  return { type: "action", name, arguments: given };
}

function mistake(status: AttemptStatus, what: string, name?: string): TextAction {
  const observation = `Error: ${what}`;
  return { type: "mistake", status, observation, ...(name !== undefined && { name }) };
}
