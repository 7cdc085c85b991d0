import { ClientError } from "../client-error.ts";
import { toolFromOpenAi, type ToolDefinition } from "../../message.ts";
import { toPyValue, type PlainJson } from "../../python/value.ts";

/** A JSON object of a request. */
export type Json = Readonly<Record<string, unknown>>;

/** Refuses a request; `place` says where in its body. */
export function invalid(place: string, problem: string): ClientError {
  return new ClientError("invalid", `Cannot read ${place}: ${problem}`, { place });
}

/** @throws ClientError where the value is no object. */
export function objectOf(value: unknown, place: string): Json {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value as Json;
  throw invalid(place, `expected an object, not ${kindOf(value)}`);
}

/** @throws ClientError where the value is no list. */
export function listOf(value: unknown, place: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalid(place, `expected a list, not ${kindOf(value)}`);
}

/** @throws ClientError where the value is no text. */
export function textOf(value: unknown, place: string): string {
  if (typeof value === "string") return value;
  throw invalid(place, `expected text, not ${kindOf(value)}`);
}

/** A text, or nothing where it is absent or null. */
export function optionalText(value: unknown, place: string): string | undefined {
  return value === undefined || value === null ? undefined : textOf(value, place);
}

/** A number within bounds, or nothing where it is absent or null. */
export function optionalNumber(
  value: unknown,
  place: string,
  { min, max = Infinity, whole = false }: { min: number; max?: number; whole?: boolean },
): number | undefined {
  if (value === undefined || value === null) return undefined;
  const isFine =
    typeof value === "number" &&
    value >= min &&
    value <= max &&
    (!whole || Number.isSafeInteger(value));
  if (isFine) return value;
  const what = whole ? "a whole number" : "a number";
  throw invalid(place, `expected ${what} from ${min}${max === Infinity ? " on" : ` to ${max}`}`);
}

/** True only where the value is true. */
export function flagOf(value: unknown, place: string): boolean {
  if (value === undefined || value === null || value === false) return false;
  if (value === true) return true;
  throw invalid(place, "expected true or false");
}

/** One text or a list of texts that end the turn; empty ones are none. */
export function stopTexts(value: unknown, place: string): readonly string[] {
  if (value === undefined || value === null) return [];
  const list = typeof value === "string" ? [value] : listOf(value, place);
  return list
    .map((text, index) => textOf(text, `${place}[${index}]`))
    .filter((text) => text !== "");
}

/** A tool in OpenAI's shape, whatever shape the dialect has. */
export function toolOf(
  { name, description, parameters }: { name: string; description: unknown; parameters: unknown },
  place: string,
): ToolDefinition {
  if (name === "") throw invalid(`${place}.name`, "expected a name");
  const body: Record<string, unknown> = { name };
  if (typeof description === "string") body["description"] = description;
  body["parameters"] = isEmpty(parameters) ? { type: "object", properties: {} } : parameters;
  return toolFromOpenAi(toPyValue({ type: "function", function: body } as PlainJson), place);
}

function isEmpty(value: unknown): boolean {
  return value === undefined || value === null;
}

/** The fields of a body that are not among those that are read, and that say something. */
export function ignoredFields(body: Json, known: ReadonlySet<string>): readonly string[] {
  return Object.keys(body).filter((name) => !known.has(name) && !isEmpty(body[name]));
}

function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
