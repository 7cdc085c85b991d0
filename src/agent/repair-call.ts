import { evaluatePythonLiteral } from "../../packages/tool-parsers/src/shared/python/python-literal.ts";
import type { Attempt } from "../../packages/tool-parsers/src/tool-call-parser.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../packages/python-values/src/python-error.ts";
import {
  isPyDict,
  isPyList,
  type PyDict,
  type PyValue,
} from "../../packages/python-values/src/value.ts";

/** A repaired call. */
interface RepairedCall {
  readonly name: string;
  readonly arguments: PyDict;
}

/**
 * Repairs a malformed call. Returns `undefined` if the repair would be a guess. The time is linear
 * in the attempt's text.
 */
export function repairCall(attempt: Attempt): RepairedCall | undefined {
  const { name, status, argumentsText } = attempt;
  if (status === "invalid-json") return repairInvalidJson(attempt);
  if (name === undefined || argumentsText === undefined) return undefined;
  const given = tryRead(() => parsePythonJson(argumentsText));
  const value =
    typeof given === "string" && given !== "" ? tryRead(() => parsePythonJson(given)) : given;
  if (isPyDict(value)) return { name, arguments: value };
  const isEmpty = value === null || value === "" || (isPyList(value) && value.length === 0);
  return isEmpty ? { name, arguments: new Map() } : undefined;
}

/** Finds the name in the JSON or beside it, depending on the format. */
function repairInvalidJson({ raw, name }: Attempt): RepairedCall | undefined {
  const start = raw.indexOf("{");
  const end = raw.lastIndexOf("}");
  if (start === -1 || end < start) return undefined;
  const value = readLoosely(raw.slice(start, end + 1));
  if (!isPyDict(value)) return undefined;
  if (name !== undefined) return { name, arguments: value };
  const named = value.get("name");
  const given = value.get("arguments") ?? value.get("parameters");
  return typeof named === "string" && isPyDict(given)
    ? { name: named, arguments: given }
    : undefined;
}

function readLoosely(source: string): PyValue | undefined {
  const json = tryRead(() => parsePythonJson(completeJson(source)));
  if (json !== undefined) return json;
  const literal = tryRead(() => evaluatePythonLiteral(source));
  return literal?.isJson === true ? literal.value : undefined;
}

function tryRead<Value>(read: () => Value): Value | undefined {
  try {
    return read();
  } catch (error) {
    if (error instanceof PythonError) return undefined;
    throw error;
  }
}

const escapes: Readonly<Record<string, string>> = { "\n": "\\n", "\r": "\\r", "\t": "\\t" };

/**
 * Completes JSON: removes commas before closing brackets, escapes line breaks and tabs in strings,
 * and closes open brackets at the end.
 */
function completeJson(source: string): string {
  const open: string[] = [];
  const pieces: string[] = [];
  for (const [piece] of source.matchAll(/"(?:[^"\\]|\\[^])*"?|[{}[\]]|,|\s+|[^"{}[\],\s]+/g)) {
    if (piece.startsWith('"')) {
      pieces.push(piece.replace(/[\n\r\t]/g, (character) => escapes[character] ?? character));
      continue;
    }
    if (piece === "{" || piece === "[") open.push(piece === "{" ? "}" : "]");
    if (piece === "}" || piece === "]") {
      open.pop();
      dropComma(pieces);
    }
    pieces.push(piece);
  }
  dropComma(pieces);
  return pieces.join("") + open.toReversed().join("");
}

/** Removes a final comma, ignoring white space after it. */
function dropComma(pieces: string[]): void {
  let last = pieces.length - 1;
  while (last >= 0 && pieces[last]?.trim() === "") last -= 1;
  if (pieces[last] === ",") pieces.splice(last, 1);
}
