import { ClientError } from "../client-error.ts";
import type { AskedTurn, TextFormat } from "../conversation.ts";
import { isWellFormed } from "../../text/well-formed.ts";

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

/** The refusal of a turn that a client has begun. */
export const begunTurn =
  "the policy's turn cannot be begun for it; leave this out, and end with a user's message";

/** The refusal of a text that no UTF-8 can hold. */
export const brokenPair = "it holds half of a surrogate pair, which no prompt can hold";

/** A text, or nothing where it is absent or null. */
export function optionalText(value: unknown, place: string): string | undefined {
  return isAbsent(value) ? undefined : textOf(value, place);
}

/** The arguments of a call. Some clients write those of a tool without parameters as an empty text. */
export function givenArguments(text: string): string {
  return text.trim() === "" ? "{}" : text;
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
  const isTooLarge = whole && typeof value === "number" && value > Number.MAX_SAFE_INTEGER;
  const end = isTooLarge ? Math.min(max, Number.MAX_SAFE_INTEGER) : max;
  const from = min === -Infinity ? "" : ` from ${min}${end === Infinity ? " on" : ` to ${end}`}`;
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

/** What the bodies of all dialects have in common, as far as it is spelled alike. */
export function sharedFields(
  body: Json,
  {
    known,
    maxTokens: limits,
  }: {
    /** Fields that are read. */
    readonly known: readonly string[];
    /** Fields that limit the turn's tokens; the first that is there counts. */
    readonly maxTokens: readonly string[];
  },
): Pick<AskedTurn, "model" | "isStreamed" | "maxTokens" | "ignoredFields" | "unkept"> {
  const maxTokens = limits
    .map((name) => optionalNumber(body[name], name, { min: 1, whole: true }))
    .find((limit) => limit !== undefined);
  return {
    model: optionalText(body["model"], "model") ?? "",
    isStreamed: flagOf(body["stream"], "stream"),
    ...(maxTokens !== undefined && { maxTokens }),
    ...unreadFields(body, known),
  };
}

/** Fields that no protocol here has, or that only a server can keep: those of a request are wishes. */
const unkeptFields: Readonly<Record<string, string>> = {
  ...sameReason("a server would run these tools, and there is none here", [
    "mcp_servers",
    "web_search_options",
  ]),
  ...sameReason("a form is read from response_format, text.format and output_config.format alone", [
    "guided_json",
    "guided_regex",
    "guided_choice",
    "guided_grammar",
    "structured_outputs",
    "json_schema",
    "grammar",
    "regex",
    "ebnf",
    "structural_tag",
    "response_format",
    "output_format",
  ]),
  ...sameReason("another protocol has this field, and this one does not", [
    "stop",
    "stop_sequences",
    "parallel_tool_calls",
    "functions",
  ]),
  ...sameReason("the engine is asked for no biases", [
    "logit_bias",
    "bad_words",
    "bad_words_token_ids",
    "allowed_token_ids",
  ]),
  stop_token_ids: "a turn ends at the model's own tokens, and at texts in stop",
  documents: "the policy is shown messages and tools; say what they say in a message",
};

function sameReason(why: string, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, why]));
}

function unreadFields(
  body: Json,
  known: readonly string[],
): Pick<AskedTurn, "ignoredFields" | "unkept"> {
  const unread = unreadMembers(body, "", known);
  const text = unread.find((name) => textFields.includes(name) && saysSomething(name, body[name]));
  if (text !== undefined) {
    throw invalid(text, "this protocol has no such field; send what it says as a message");
  }
  const isUnkept = (name: string) => Object.hasOwn(unkeptFields, name);
  return {
    ignoredFields: unread.filter((name) => !isUnkept(name)),
    unkept: unread
      .filter((name) => isUnkept(name) && saysSomething(name, body[name]))
      .map((what) => ({ what, why: unkeptFields[what]! })),
  };
}

/** Fields in which another protocol has text for the policy. */
const textFields = ["system", "instructions", "messages", "input"];

function saysSomething(name: string, value: unknown): boolean {
  if (value === "" || (name === "parallel_tool_calls" && value === true)) return false;
  // An empty object asks for a search with the server's own settings.
  if (name === "web_search_options") return true;
  return typeof value !== "object" || value === null || Object.keys(value).length > 0;
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
 * @param options.place - Where the format stands.
 * @param options.schema - The schema, for the forms that have one.
 * @param options.schemaPlace - Where it stands.
 */
export function textFormatOf(
  format: Json,
  {
    place,
    schema,
    schemaPlace,
  }: { readonly place: string; readonly schema: unknown; readonly schemaPlace: string },
): TextFormat | undefined {
  const { type } = format;
  switch (type) {
    case "text":
      return undefined;
    case "json_object":
      return { type: "json-object" };
    case "json_schema":
      return { type: "json-schema", schema: objectOf(schema, schemaPlace) };
    default:
      throw invalid(
        `${place}.type`,
        `there is no format of type ${JSON.stringify(type)}; give a schema as json_schema, or no format`,
      );
  }
}

/** Members beside a schema: it is kept to where the engine can, and its name says nothing. */
export const schemaMembers = ["name", "description", "strict", "schema"];

/**
 * The members of an object that are not among those that are read, and that say something: each is counted.
 *
 * @param place - Where the object stands in the body; empty for the body itself.
 */
export function unreadMembers(
  object: Json,
  place: string,
  read: readonly string[],
): readonly string[] {
  return Object.keys(object)
    .filter((name) => !read.includes(name) && !isAbsent(object[name]))
    .map((name) => (place === "" ? name : `${place}.${name}`));
}

function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
