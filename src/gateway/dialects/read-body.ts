import { ClientError } from "../client-error.ts";
import type { AskedTurn, TextFormat } from "../conversation.ts";
import type { DialectName, Recollection } from "./dialect.ts";
import { toolFromOpenAi, type ToolDefinition } from "../../message.ts";
import { toPyValue, type PlainJson } from "../../python/value.ts";
import { isWellFormed } from "../../internal/well-formed.ts";
import { exactOf } from "../../python/exact-json.ts";
import { stringifyPythonJson } from "../../python/json-stringify.ts";

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
  if (typeof value !== "string") throw invalid(place, `expected text, not ${kindOf(value)}`);
  if (isWellFormed(value)) return value;
  throw invalid(place, brokenPair);
}

const brokenPair = "it holds half of a surrogate pair, which no prompt can hold";

/** A text, or nothing where it is absent or null. */
export function optionalText(value: unknown, place: string): string | undefined {
  return isAbsent(value) ? undefined : textOf(value, place);
}

/** A number within bounds, or nothing where it is absent or null. */
export function optionalNumber(
  value: unknown,
  place: string,
  { min, max = Infinity, whole = false }: { min: number; max?: number; whole?: boolean },
): number | undefined {
  if (isAbsent(value)) return undefined;
  const isFine =
    Number.isFinite(value) &&
    typeof value === "number" &&
    value >= min &&
    value <= max &&
    (!whole || Number.isSafeInteger(value));
  if (isFine) return value;
  const what = whole ? "a whole number" : "a number";
  const from = min === -Infinity ? "" : ` from ${min}${max === Infinity ? " on" : ` to ${max}`}`;
  throw invalid(place, `expected ${what}${from}`);
}

/** True only where the value is true. */
export function flagOf(value: unknown, place: string): boolean {
  if (isAbsent(value) || value === false) return false;
  if (value === true) return true;
  throw invalid(place, "expected true or false");
}

/** One text or a list of texts that end the turn; empty ones are none. */
export function stopTexts(value: unknown, place: string): readonly string[] {
  if (isAbsent(value)) return [];
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
  // Templates print the schema: its numbers and the order of its keys are the client's.
  body["parameters"] = isAbsent(parameters)
    ? { type: "object", properties: {} }
    : exactOf(parameters);
  const tool = toolFromOpenAi(toPyValue({ type: "function", function: body } as PlainJson), place);
  if (isWellFormed(stringifyPythonJson(tool.openai, { ensureAscii: false }))) return tool;
  throw invalid(place, brokenPair);
}

/** Values that are nested more deeply cannot be printed for sure. */
const mostLevels = 500;

/** @throws ClientError where a value is nested so deeply that printing it may fail. */
export function requireShallow(value: unknown, place: string): void {
  let level: readonly unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > mostLevels) {
      throw invalid(place, `it is nested too deeply; use at most ${mostLevels} levels`);
    }
    level = level.flatMap((each) =>
      typeof each === "object" && each !== null ? Object.values(each) : [],
    );
  }
}

/** Whether a field says nothing. */
export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/**
 * The tools of a request. Most requests give those that the one before it gave: these are not read again.
 *
 * @param options.read - Reads one; none where a server would run the tool itself.
 */
export function toolsOf(
  tools: unknown,
  {
    dialect,
    recollection,
    read,
  }: {
    readonly dialect: DialectName;
    readonly recollection: Recollection;
    readonly read: (tool: Json, place: string) => readonly ToolDefinition[];
  },
): readonly ToolDefinition[] {
  if (isAbsent(tools)) return [];
  const list = listOf(tools, "tools");
  const readAll = (): readonly ToolDefinition[] =>
    list.flatMap((tool, index) => {
      const place = `tools[${index}]`;
      return read(objectOf(tool, place), place);
    });
  return recollection.toolsOf?.(dialect, list, readAll) ?? readAll();
}

/** What the bodies of all dialects have in common, as far as it is spelled alike. */
export function sharedFields(
  body: Json,
  {
    known,
    maxTokens: limits,
  }: {
    /** Fields that are read. */
    readonly known: ReadonlySet<string>;
    /** Fields that limit the turn's tokens; the first that is there counts. */
    readonly maxTokens: readonly string[];
  },
): Pick<AskedTurn, "model" | "isStreamed" | "maxTokens" | "ignoredFields"> {
  const maxTokens = limits
    .map((name) => optionalNumber(body[name], name, { min: 1, whole: true }))
    .find((limit) => limit !== undefined);
  return {
    model: optionalText(body["model"], "model") ?? "",
    isStreamed: flagOf(body["stream"], "stream"),
    ...(maxTokens === undefined ? {} : { maxTokens }),
    ignoredFields: ignoredFields(body, known),
  };
}

/** Numbers of a body by the names that they have in the conversation; those that are absent are not. */
export function samplingOf(
  body: Json,
  fields: readonly (keyof typeof samplingFields)[],
): AskedTurn["sampling"] {
  const read = fields.map((name) => {
    const { as, ...bounds } = samplingFields[name];
    return [as, optionalNumber(body[name], name, bounds)] as const;
  });
  return Object.fromEntries(read.filter(([, number]) => number !== undefined));
}

const samplingFields = {
  temperature: { as: "temperature", min: 0, max: 100 },
  top_p: { as: "topP", min: 0, max: 1 },
  top_k: { as: "topK", min: -1, whole: true },
  seed: { as: "seed", min: Number.MIN_SAFE_INTEGER, whole: true },
  frequency_penalty: { as: "frequencyPenalty", min: -2 },
  presence_penalty: { as: "presencePenalty", min: -2 },
} as const;

/**
 * The form that a reply's text is to have; `undefined` for free text.
 *
 * @param schema - Where the schema stands, for the forms that have one.
 */
export function textFormatOf(
  format: Json,
  { schema, place }: { readonly schema: unknown; readonly place: string },
): TextFormat | undefined {
  const { type } = format;
  if (type === "json_object") return { type: "json-object" };
  if (type !== "json_schema") return undefined;
  return { type: "json-schema", schema: objectOf(schema, place) };
}

/** The fields of a body that are not among those that are read, and that say something. */
function ignoredFields(body: Json, known: ReadonlySet<string>): readonly string[] {
  return Object.keys(body).filter((name) => !known.has(name) && !isAbsent(body[name]));
}

function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  return Array.isArray(value) ? "a list" : `a ${typeof value}`;
}
