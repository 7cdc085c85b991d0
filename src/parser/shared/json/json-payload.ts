import { decodePythonJsonAt, parsePythonJson } from "../../../python/json/json-parse.ts";
import { PythonError } from "../../../python/python-error.ts";
import type { PyDict, PyValue } from "../../../python/value.ts";
import { isPyDict, isPyList } from "../../../python/value.ts";
import type { Block, Diagnostic } from "../../attempt.ts";
import { skipCharacters } from "../text/skip-characters.ts";
import { divideSpan } from "../tags/between-tags.ts";

const jsonSpace = " \t\n\r";

/** A JSON text that was read, or why it could not be. */
export type JsonReading =
  | { readonly type: "value"; readonly value: PyValue; readonly end: number }
  | { readonly type: "problem"; readonly detail: string };

/**
 * Reads the JSON value at the start of the text, behind white space; `end` is where it stops. Time is
 * linear in what is consumed, not in the text.
 */
export function readJsonPrefix(text: string): JsonReading {
  return attempt(() => decodePythonJsonAt(text, skipCharacters(text, 0, jsonSpace)));
}

/**
 * True if a JSON value may stand at the start of the text, behind white space: a look that is
 * cheaper than a reading that fails, for texts that mention a marker thousands of times.
 */
export function mayBeginJson(text: string): boolean {
  return /^[[{"\-0-9tfnNI]/.test(text.charAt(skipCharacters(text, 0, jsonSpace)));
}

/** Reads a text that must be one JSON value. */
export function readJson(text: string): JsonReading {
  return attempt(() => ({ value: parsePythonJson(text), end: text.length }));
}

function attempt(read: () => { value: PyValue; end: number }): JsonReading {
  try {
    return { type: "value", ...read() };
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    return { type: "problem", detail: error.message };
  }
}

/** The fields of a decoded call. */
export interface CallFields {
  /** The field that holds the tool's name. Default `name`. */
  readonly nameField?: string;
  /**
   * Reads the arguments of a decoded call; `undefined` if the format requires them and they are
   * missing. Default: the field `arguments`.
   */
  readonly readArguments?: (entry: PyDict) => PyValue | undefined;
}

/** A decoded payload and where it stands. */
interface Payload {
  /** The block's place in the text, markers included. */
  readonly span: readonly [start: number, end: number];
  readonly value: PyValue;
  /** The JSON text that was decoded, white space before it allowed. */
  readonly json: string;
  /** Where `json` begins in the text. */
  readonly jsonStart: number;
}

/**
 * The blocks of a decoded payload: one for an object, one an entry for a list. The blocks of a list
 * share out its span: the first begins with it, the others with their entry.
 */
export function blocksOfPayload(
  payload: Payload,
  fields: CallFields = {},
  problem?: Diagnostic,
): Block[] {
  const { span, value } = payload;
  if (!isPyList(value) || value.length === 0) return [blockOfEntry(span, value, fields, problem)];
  const starts = entryStarts(payload.json).map((start) => payload.jsonStart + start);
  return divideSpan(span, starts).map((part, index) =>
    blockOfEntry(part, value[index] ?? null, fields, problem),
  );
}

/** Where the entries of the JSON list begin. Before it stands nothing but white space of any kind. */
export function entryStarts(json: string): number[] {
  const starts: number[] = [];
  let index = json.indexOf("[");
  do {
    index = skipCharacters(json, index + 1, jsonSpace);
    starts.push(index);
    index = skipCharacters(json, decodePythonJsonAt(json, index).end, jsonSpace);
  } while (json[index] === ",");
  return starts;
}

function blockOfEntry(
  span: readonly [start: number, end: number],
  entry: PyValue,
  fields: CallFields,
  problem: Diagnostic | undefined,
): Block {
  if (!isPyDict(entry)) return { span, problem: problem ?? noObject };
  const { nameField = "name", readArguments = (call) => call.get("arguments") } = fields;
  const name = entry.get(nameField);
  const id = entry.get("id");
  const argumentValue = readArguments(entry);
  const block: { -readonly [Key in keyof Block]: Block[Key] } = { span };
  if (problem !== undefined) block.problem = problem;
  else if (argumentValue === undefined) block.problem = noArguments;
  if (typeof name === "string") block.name = name;
  if (typeof id === "string") block.id = id;
  if (argumentValue !== undefined) block.argumentValue = argumentValue;
  return block;
}

const noObject: Diagnostic = {
  status: "malformed-structure",
  detail: "the call is no JSON object",
};

const noArguments: Diagnostic = {
  status: "malformed-structure",
  detail: "the call has no arguments",
};
