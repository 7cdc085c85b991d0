import { isObject } from "../../values/is-object.ts";
import { RolloutError, type FailureCode } from "../../errors.ts";
import { shorten, shortJson } from "../../secrets/shorten.ts";
import { isSmallData, whyNotJson } from "../../json/why-not-json.ts";
import { shownToolName } from "../../message.ts";
import { stringifyPythonJson } from "../../../packages/python-values/src/json/json-stringify.ts";
import { isPyDict, type PyDict, type PyValue } from "../../../packages/python-values/src/value.ts";
import { type RawRow } from "../../trajectory/violation.ts";

/** The source of a checked value, and the failure code for it. */
export interface Origin {
  readonly code: FailureCode;
  /** The call that returned the value, such as `world.step() for tool switch in task lamp/test/0 of lamp`. */
  readonly place: string;
}

/**
 * Returns the value as an object.
 *
 * @throws RolloutError if the value is not an object.
 */
export function requireObject(
  value: unknown,
  origin: Origin,
  expected: string,
): Readonly<Record<string, unknown>> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) {
    const hint = value === undefined ? " (a forgotten return?)" : "";
    refuse(origin, `it returned ${describe(value)}${hint}`, expected);
  }
  return value as Readonly<Record<string, unknown>>;
}

/**
 * Returns a copy of a list. Holes become `undefined`, because `map()` and `some()` would skip them.
 *
 * @param what - The start of the message, such as `messages is`.
 * @throws RolloutError if the value is not a list.
 */
export function requireList(
  value: unknown,
  origin: Origin,
  { what, expected }: { readonly what: string; readonly expected: string },
): readonly unknown[] {
  if (Array.isArray(value)) {
    const items: unknown[] = [];
    for (let index = 0; index < value.length; index++) items.push(value[index]);
    return items;
  }
  const hint = what === returned && value === undefined ? " (a forgotten return?)" : "";
  return refuse(origin, `${what} ${describe(value)}${hint}`, expected);
}

/** The start of messages about a returned value. */
export const returned = "it returned";

/**
 * Checks the members of an object.
 *
 * @throws RolloutError for the first field that fails the check.
 */
export function requireFields(
  value: Readonly<Record<string, unknown>>,
  fields: readonly string[],
  check: Origin & {
    readonly is: (field: unknown) => boolean;
    readonly expected: string;
    /** Text before the field's name. Default `its `. */
    readonly within?: string;
  },
): void {
  for (const field of fields) {
    if (check.is(value[field])) continue;
    const { expected, within = "its " } = check;
    refuse(check, `${within}${field} is ${describe(value[field])}`, expected);
  }
}

/**
 * Requires that every member of a value can be written as JSON, unknown members included. A row that cannot be written
 * would end the run.
 *
 * @param within - Text before a member's name.
 * @throws RolloutError for the first member that cannot be written.
 */
export function requirePlain(value: object, origin: Origin, within = ""): void {
  if (isSmallData(value)) return;
  const wrong = "toJSON" in value ? whyNotJson(value) : undefined;
  if (wrong !== undefined)
    refuse(origin, `it cannot be written as JSON (${wrong})`, "plain values");
  for (const [name, member] of Object.entries(value)) {
    const why = whyNotJson(member);
    if (why === undefined) continue;
    refuse(origin, `${within}${name} cannot be written as JSON (${why})`, "plain values");
  }
}

/** Tools that passed the check. Most episodes have the same tools. */
const soundTools = new WeakSet<object>();

function isTool(tool: unknown): boolean {
  if (!isObject(tool)) return false;
  if (soundTools.has(tool)) return true;
  // The policy calls a tool by the name in its definition.
  if (!isDefined(tool) || shownToolName(tool.openai) !== tool["name"]) return false;
  soundTools.add(tool);
  return true;
}

/** True if the tool has a name and a definition that can be written. */
function isDefined(tool: RawRow): tool is RawRow & { readonly openai: PyDict } {
  const { openai } = tool as { readonly openai?: PyValue };
  if (typeof tool["name"] !== "string" || !isPyDict(openai)) return false;
  try {
    stringifyPythonJson(openai);
    return true;
  } catch {
    return false;
  }
}

/**
 * Checks that the value is a list of tools.
 *
 * @throws RolloutError if the value is not a list of tools.
 */
export function requireTools(value: unknown, origin: Origin): void {
  if (!Array.isArray(value)) refuse(origin, `tools is ${describe(value)}`, "a list of tools");
  const wrong = value.findIndex((tool: unknown) => !isTool(tool));
  if (wrong < 0) return;
  const tool: unknown = value[wrong];
  const isNamedTwice = isObject(tool) && isDefined(tool);
  const what = isNamedTwice
    ? `tools[${wrong}] is named ${describe(tool["name"])}, and ${describe(shownToolName(tool.openai))} in its definition`
    : `tools[${wrong}] is ${describe(tool)}`;
  refuse(
    origin,
    what,
    isNamedTwice ? "one name (see toolFromOpenAi())" : "a tool (see toolFromOpenAi())",
  );
}

/**
 * Throws the error for an invalid answer of code that Turnwright does not control.
 *
 * @throws RolloutError with the found and the expected value.
 */
export function refuse({ code, place }: Origin, what: string, expected: string): never {
  throw new RolloutError(code, `Cannot use the answer of ${place}: ${what}, expected ${expected}`);
}

/** Maximum length of a described value, in characters. */
const descriptionLength = 80;

/** Describes a wrong value for a message. */
export function describe(value: unknown): string {
  if (value === undefined) return "nothing";
  if (typeof value === "function") return "a function";
  if (typeof value === "bigint") return `${value}n`;
  if (typeof value === "number") return String(value);
  if (typeof value === "string") return shortJson(value, descriptionLength);
  if (value === null) return "null";
  if (typeof value !== "object") return JSON.stringify(value) ?? typeof value;
  if (Array.isArray(value)) return value.length === 0 ? "an empty list" : "a list";
  return `an object with ${shorten(Object.keys(value).join(", ") || "no fields", descriptionLength)}`;
}
