import { decodePythonJsonAt, parsePythonJson } from "../../../python/json/json-parse.ts";
import { PythonError } from "../../../python/python-error.ts";
import type { PyValue } from "../../../python/value.ts";
import { isPyDict, isPyList } from "../../../python/value.ts";
import type { Block, Diagnostic } from "../../attempt.ts";

/** A JSON text that was read, or why it could not be. */
export type JsonReading =
  | { readonly type: "value"; readonly value: PyValue; readonly end: number }
  | { readonly type: "problem"; readonly detail: string };

/**
 * Reads the JSON value at the start of the text, behind white space; `end` is where it stops. Time is
 * linear in what is consumed, not in the text.
 */
export function readJsonPrefix(text: string): JsonReading {
  return attempt(() => decodePythonJsonAt(text, skipSpace(text, 0)));
}

/**
 * Whether a JSON value may stand at the start of the text, behind white space: a look that is cheaper
 * than a reading that fails, for texts that mention a marker thousands of times.
 */
export function mayBeginJson(text: string): boolean {
  return /^[[{"\-0-9tfnNI]/.test(text.charAt(skipSpace(text, 0)));
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

/** Where a decoded call keeps its parts. */
export interface CallFields {
  readonly name: string;
  /** What stands for the arguments of an entry; `undefined` where the format demands some. */
  readonly readArguments: (entry: ReadonlyMap<string, PyValue>) => PyValue | undefined;
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
  fields: CallFields,
  problem?: Diagnostic,
): Block[] {
  const { span, value } = payload;
  if (!isPyList(value) || value.length === 0) return [blockOfEntry(span, value, fields, problem)];
  const starts = entryStarts(payload.json).map((start) => payload.jsonStart + start);
  return value.map((entry, index) => {
    const start = index === 0 ? span[0] : (starts[index] ?? span[1]);
    return blockOfEntry([start, starts[index + 1] ?? span[1]], entry, fields, problem);
  });
}

/** Where the entries of the JSON list begin. Before it stands nothing but white space of any kind. */
export function entryStarts(json: string): number[] {
  const starts: number[] = [];
  let index = json.indexOf("[");
  do {
    index = skipSpace(json, index + 1);
    starts.push(index);
    index = skipSpace(json, decodePythonJsonAt(json, index).end);
  } while (json[index] === ",");
  return starts;
}

function skipSpace(text: string, index: number): number {
  let place = index;
  while (" \t\n\r".includes(text[place] ?? "x")) place += 1;
  return place;
}

function blockOfEntry(
  span: readonly [start: number, end: number],
  entry: PyValue,
  fields: CallFields,
  problem: Diagnostic | undefined,
): Block {
  if (!isPyDict(entry)) return { span, problem: problem ?? noObject };
  const name = entry.get(fields.name);
  const id = entry.get("id");
  const argumentValue = fields.readArguments(entry);
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
