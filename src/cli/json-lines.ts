import { createReadStream } from "node:fs";
import { access, constants, stat } from "node:fs/promises";
import type { Readable } from "node:stream";
import { InvariantError, RolloutError, UsageError, describeError } from "../errors.ts";
import { splitLines } from "../text/split-lines.ts";
import { toolsFromOpenAi, type ToolDefinition } from "../message.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import {
  isPyDict,
  toPyValue,
  type PlainJson,
  type PyDict,
  type PyValue,
} from "../../packages/python-values/src/value.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";

/** The input of a command. */
interface LinesInput {
  /** The file to read. Absent: standard input. */
  readonly file?: string;
  readonly stdin: Readable;
}

/** Returns the file that `--in` names, or standard input. */
export function toLinesInput(file: string | undefined): LinesInput {
  return { stdin: process.stdin, ...(file !== undefined && { file }) };
}

/** Thrown for a line that cannot be handled. The command answers the line with the error. */
export class LineError extends Error {
  override readonly name = "LineError";
  readonly code: string;

  constructor(code: string, message: string) {
    super(message);
    this.code = code;
  }
}

/**
 * Answers each JSON line with one JSON line, in order. A line that cannot be handled gets an error
 * as answer. Numbers keep Python's notation.
 *
 * @returns the exit status: 0, or 1 if a line could not be handled.
 * @throws UsageError if the input cannot be read.
 */
export async function answerJsonLines(
  input: LinesInput,
  write: (text: string) => Promise<void> | void,
  answer: (line: PyDict) => Promise<PlainJson> | PlainJson,
): Promise<0 | 1> {
  let status: 0 | 1 = 0;
  for await (const text of await linesOf(input)) {
    if (text.trim() === "") continue;
    let id: PyValue | undefined;
    try {
      const line = parseLine(text);
      id = line.get("id");
      await write(`${toLine(await answer(line), id)}\n`);
    } catch (error) {
      if (error instanceof InvariantError) throw error;
      status = 1;
      const body = { error: { code: codeOf(error), message: describeError(error) } };
      await write(`${toLine(body, id)}\n`);
    }
  }
  return status;
}

async function linesOf({ file, stdin }: LinesInput): Promise<AsyncIterable<string>> {
  if (file === undefined) return splitLines(stdin);
  try {
    await access(file, constants.R_OK);
    if ((await stat(file)).isDirectory()) throw new Error("it is a folder, expected a file");
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: ${describeError(error)}`);
  }
  return splitLines(createReadStream(file), file);
}

function parseLine(text: string): PyDict {
  let value: PyValue;
  try {
    value = parsePythonJson(text);
  } catch (error) {
    throw new LineError("bad-json", `the line is not JSON: ${describeError(error)}`);
  }
  if (!isPyDict(value)) throw new LineError("bad-line", "the line is not a JSON object");
  return value;
}

function toLine(body: PlainJson, id: PyValue | undefined): string {
  const value = toPyValue(body);
  const members: readonly (readonly [string, PyValue])[] = isPyDict(value) ? [...value] : [];
  const echoed: readonly (readonly [string, PyValue])[] = id === undefined ? [] : [["id", id]];
  const text = stringifyPythonJson(new Map([...echoed, ...members]), {
    ensureAscii: false,
    separators: [",", ":"],
  });
  // UTF-8 has no form for a lone surrogate, and some readers end lines at these separators.
  return text.replaceAll(/[\p{Surrogate}\u0085\u2028\u2029]/gu, escapeUnit);
}

function escapeUnit(unit: string): string {
  return `\\u${unit.charCodeAt(0).toString(16).padStart(4, "0")}`;
}

function codeOf(error: unknown): string {
  if (error instanceof LineError || error instanceof RolloutError) return error.code;
  if (error instanceof UsageError) return "bad-input";
  return error instanceof Error ? error.name : "error";
}

/** Reads a member that must be a text. */
export function textMember(line: PyDict, name: string): string {
  const value = line.get(name);
  if (typeof value !== "string") throw new LineError("bad-line", `"${name}" must be a text`);
  return value;
}

/** Reads a member that must be a list; returns an empty list if it is absent or null. */
export function listMember(line: PyDict, name: string): readonly PyValue[] {
  const value = line.get(name);
  if (value === undefined || value === null) return [];
  if (!Array.isArray(value)) throw new LineError("bad-line", `"${name}" must be a list`);
  return value as readonly PyValue[];
}

/** Reads a member that must be a list of objects; returns an empty list if it is absent or null. */
export function dictListMember(line: PyDict, name: string): readonly PyDict[] {
  return listMember(line, name).map((item, index) => {
    if (!isPyDict(item)) throw new LineError("bad-line", `"${name}"[${index}] must be an object`);
    return item;
  });
}

/** Reads a member that must be an object; returns an empty object if it is absent or null. */
export function dictMember(line: PyDict, name: string): PyDict {
  const value = line.get(name);
  if (value === undefined || value === null) return new Map();
  if (!isPyDict(value)) throw new LineError("bad-line", `"${name}" must be an object`);
  return value;
}

/** Reads a line's tools in OpenAI's form. Returns an empty list if the line has none. */
export function toolsMember(line: PyDict): readonly ToolDefinition[] {
  return toolsFromOpenAi(listMember(line, "tools"), "tools");
}
