import {
  decodePythonJsonAt,
  isPyDict,
  isPyList,
  parsePythonJson,
  type PyDict,
  PythonError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block, Diagnostic } from "../../attempt.ts";
import { skipCharacters } from "../text/skip-characters.ts";
import { divideSpan } from "../tags/between-tags.ts";

const jsonSpace = " \t\n\r";

/** A JSON value that was read, or the reason why it could not be read. */
export type JsonReading =
  | { readonly type: "value"; readonly value: PyValue; readonly end: number }
  | { readonly type: "problem"; readonly detail: string };

/**
 * Reads the JSON value at the start of the text, after white space; `end` is the end of the value.
 * Time is linear in the length of the value.
 */
export function readJsonPrefix(text: string): JsonReading {
  return attempt(() => decodePythonJsonAt(text, skipCharacters(text, 0, jsonSpace)));
}

/**
 * True if a JSON value may stand at the start of the text, after white space. This check is cheaper than a failed
 * reading, which matters for texts that mention a marker thousands of times.
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

/** A decoded payload, and its place in the text. */
interface Payload {
  /** The block's place in the text, markers included. */
  readonly span: readonly [start: number, end: number];
  readonly value: PyValue;
  /** The JSON text that was decoded. White space may precede it. */
  readonly json: string;
  /** The start of `json` in the text. */
  readonly jsonStart: number;
}

/**
 * The blocks of a decoded payload: one for an object, and one for each entry of a list. The entries
 * of a list divide its span: the first block starts with the span, the others with their entry.
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

/** The starts of the entries of a JSON list. Only white space may precede the list. */
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
  detail: "the call is not a JSON object",
};

const noArguments: Diagnostic = {
  status: "malformed-structure",
  detail: "the call has no arguments",
};
