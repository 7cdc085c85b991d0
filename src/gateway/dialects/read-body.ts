import { isObject } from "../../values/is-object.ts";
import { ClientError } from "../client-error.ts";
import type { ClientCall, RequestedTurn, TextFormat } from "../conversation.ts";
import { parseJsonObject } from "../json-object.ts";
import { isWellFormed } from "../../text/well-formed.ts";

/** A JSON object of a request. */
export type Json = Readonly<Record<string, unknown>>;

/** Returns the error for an invalid body. `place` is the path in it. */
export function invalid(place: string, problem: string): ClientError {
  return new ClientError("invalid", `Cannot read ${place}: ${problem}`, { place });
}

/**
 * Returns the value as an object.
 *
 * @throws ClientError if the value is not an object.
 */
export function objectOf(value: unknown, place: string): Json {
  if (isObject(value)) return value;
  throw invalid(place, `expected an object, not ${kindOf(value)}`);
}

/**
 * Returns the value as a list.
 *
 * @throws ClientError if the value is not a list.
 */
export function listOf(value: unknown, place: string): readonly unknown[] {
  if (Array.isArray(value)) return value;
  throw invalid(place, `expected a list, not ${kindOf(value)}`);
}

/**
 * Returns the value as a text.
 *
 * @throws ClientError if the value is not well-formed text.
 */
export function textOf(value: unknown, place: string): string {
  if (typeof value !== "string") throw invalid(place, `expected text, not ${kindOf(value)}`);
  if (isWellFormed(value)) return value;
  throw invalid(place, surrogateError);
}

/** The error message for an assistant turn that the client prefills. */
export const prefillError =
  "the policy's turn cannot be prefilled; leave this out, and end with a user message";

/** The error message for text that cannot be encoded as UTF-8. */
export const surrogateError = "it contains half of a surrogate pair, which no prompt can contain";

/** Returns the text, or `undefined` if it is absent or null. */
export function optionalText(value: unknown, place: string): string | undefined {
  return isAbsent(value) ? undefined : textOf(value, place);
}

/** Returns a call's arguments. Some clients send empty text for a tool without parameters. */
export function givenArguments(text: string): string {
  return text.trim() === "" ? "{}" : text;
}

/** Returns a call's arguments, with their path if they are no JSON object. */
export function placedArguments(
  argumentsText: string,
  place: string,
): Pick<ClientCall, "argumentsText" | "argumentsPlace"> {
  return parseJsonObject(argumentsText) === undefined
    ? { argumentsText, argumentsPlace: place }
    : { argumentsText };
}

/** Returns a number within bounds, or `undefined` if it is absent or null. */
export function optionalNumber(
  value: unknown,
  place: string,
  { min, max = Infinity, whole = false }: { min: number; max?: number; whole?: boolean },
): number | undefined {
  if (isAbsent(value)) return undefined;
  const isValid =
    Number.isFinite(value) &&
    typeof value === "number" &&
    value >= min &&
    value <= max &&
    (!whole || Number.isSafeInteger(value));
  if (isValid) return value;
  const what = whole ? "a whole number" : "a number";
  const isTooLarge = whole && typeof value === "number" && value > Number.MAX_SAFE_INTEGER;
  const end = isTooLarge ? Math.min(max, Number.MAX_SAFE_INTEGER) : max;
  const from = min === -Infinity ? "" : ` from ${min}${end === Infinity ? " on" : ` to ${end}`}`;
  throw invalid(place, `expected ${what}${from}`);
}

/** Returns a boolean. Absent and null count as false. */
export function flagOf(value: unknown, place: string): boolean {
  if (isAbsent(value) || value === false) return false;
  if (value === true) return true;
  throw invalid(place, "expected true or false");
}

/** Returns the texts that end the turn, without empty ones. */
export function stopTexts(value: unknown, place: string): readonly string[] {
  if (isAbsent(value)) return [];
  const list = typeof value === "string" ? [value] : listOf(value, place);
  return list
    .map((text, index) => textOf(text, `${place}[${index}]`))
    .filter((text) => text !== "");
}

/** Maximum nesting depth of a value, so that printing it cannot overflow the stack. */
const maxDepth = 500;

/**
 * Refuses a value that cannot be printed without a stack overflow.
 *
 * @throws ClientError if the value is nested too deeply to print.
 */
export function requireShallow(value: unknown, place: string): void {
  let level: readonly unknown[] = [value];
  for (let depth = 0; level.length > 0; depth++) {
    if (depth > maxDepth) {
      throw invalid(place, `it is nested too deeply; use at most ${maxDepth} levels`);
    }
    level = level.flatMap((each) =>
      typeof each === "object" && each !== null ? Object.values(each) : [],
    );
  }
}

/** True if the value is `undefined` or null. */
export function isAbsent(value: unknown): value is undefined | null {
  return value === undefined || value === null;
}

/** Reads the fields that all dialects share. */
export function sharedFields(
  body: Json,
  {
    readFields,
    maxTokens: limits,
  }: {
    /** Names of the fields that the dialect reads itself. */
    readonly readFields: readonly string[];
    /**
     * Names of the fields that limit the turn's tokens. The first one that is present counts. Further ones with another
     * number are reported as ignored.
     */
    readonly maxTokens: readonly string[];
  },
): Pick<RequestedTurn, "model" | "isStreamed" | "maxTokens" | "ignoredFields" | "unsupported"> {
  const given = limits.flatMap((name) => {
    const limit = optionalNumber(body[name], name, { min: 1, whole: true });
    return limit === undefined ? [] : [{ name, limit }];
  });
  const maxTokens = given[0]?.limit;
  const overruled = given.filter(({ limit }) => limit !== maxTokens).map(({ name }) => name);
  const { ignoredFields, unsupported } = unreadFields(body, readFields);
  return {
    model: optionalText(body["model"], "model") ?? "",
    isStreamed: flagOf(body["stream"], "stream"),
    ...(maxTokens !== undefined && { maxTokens }),
    ignoredFields: [...ignoredFields, ...overruled],
    unsupported,
  };
}

/**
 * Fields of other protocols and of servers that request a feature which the gateway does not support, with the reason
 * for each.
 */
const unsupportedFields: Readonly<Record<string, string>> = {
  ...sameReason("a server would run these tools, and there is none here", [
    "mcp_servers",
    "web_search_options",
  ]),
  ...sameReason("a form is read only from response_format, text.format and output_config.format", [
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
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
  ]),
  ...sameReason("no biases are passed to the engine", [
    "logit_bias",
    "bad_words",
    "bad_words_token_ids",
    "allowed_token_ids",
  ]),
  ...sameReason("a turn ends only at the model's own tokens and at texts in stop", [
    "stop_token_ids",
    "ignore_eos",
    "min_tokens",
  ]),
  ...sameReason("each prompt is rendered whole, with the model's own template", [
    "chat_template",
    "add_generation_prompt",
    "truncate_prompt_tokens",
  ]),
  documents: "the policy sees only messages and tools; send the documents in a message",
};

function sameReason(why: string, names: readonly string[]): Readonly<Record<string, string>> {
  return Object.fromEntries(names.map((name) => [name, why]));
}

function unreadFields(
  body: Json,
  readFields: readonly string[],
): Pick<RequestedTurn, "ignoredFields" | "unsupported"> {
  const unread = unreadMembers(body, "", readFields);
  const text = unread.find((name) => textFields.includes(name) && isSet(name, body[name]));
  if (text !== undefined) {
    throw invalid(text, "this protocol has no such field; send its text as a message");
  }
  const isUnsupported = (name: string) => Object.hasOwn(unsupportedFields, name);
  return {
    ignoredFields: unread.filter((name) => !isUnsupported(name)),
    unsupported: unread
      .filter((name) => isUnsupported(name) && isSet(name, body[name]))
      .map((what) => ({ what, why: unsupportedFields[what]! })),
  };
}

/** Fields in which another protocol sends text for the policy. */
const textFields = ["system", "instructions", "messages", "input"];

/** Values with which a field requests nothing. */
const defaults: Readonly<Record<string, unknown>> = {
  parallel_tool_calls: true,
  ignore_eos: false,
  min_tokens: 0,
  add_generation_prompt: true,
};

function isSet(name: string, value: unknown): boolean {
  if (value === "" || value === defaults[name]) return false;
  // An empty object requests a search with default settings.
  if (name === "web_search_options") return true;
  return typeof value !== "object" || value === null || Object.keys(value).length > 0;
}

/** Reads sampling parameters. The result has only the ones that are present. */
export function samplingOf(
  body: Json,
  fields: readonly (keyof typeof samplingFields)[],
): RequestedTurn["sampling"] {
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
 * Returns the required form of the reply's text, or `undefined` for free text.
 *
 * @param options.place - Path of the format.
 * @param options.schema - The schema, for the types that have one.
 * @param options.schemaPlace - Path of the schema.
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

/**
 * Members of a schema's object that do not count as ignored: the engine enforces the schema if it can, and the other
 * members change nothing.
 */
export const schemaMembers = ["name", "description", "strict", "schema"];

/**
 * Returns the paths of an object's members that are not read and not null.
 *
 * @param place - Path of the object. Empty for the body itself.
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

/**
 * Requires that each member is one of the named ones, or null.
 *
 * @throws ClientError for a member that is not read and not null.
 */
export function requireKnown(body: Json, names: readonly string[]): void {
  const [unknown] = unreadMembers(body, "", names);
  if (unknown === undefined) return;
  throw invalid(unknown, `there is no such member, expected only ${names.join(", ")}`);
}

function kindOf(value: unknown): string {
  if (value === undefined) return "nothing";
  if (value === null) return "null";
  if (Array.isArray(value)) return "a list";
  return typeof value === "object" ? "an object" : `a ${typeof value}`;
}
