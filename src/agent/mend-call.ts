import { evaluatePythonLiteral } from "../parser/shared/python/python-literal.ts";
import type { Attempt } from "../parser/tool-call-parser.ts";
import { parsePythonJson } from "../python/json/json-parse.ts";
import { PythonError } from "../python/python-error.ts";
import { isPyDict, isPyList, type PyDict, type PyValue } from "../python/value.ts";

/** A call as it was probably meant. */
interface MendedCall {
  readonly name: string;
  readonly arguments: PyDict;
}

/**
 * What a malformed call was probably meant to be, where little is missing; `undefined` where it would
 * have to be guessed. Reads nothing but the attempt, in time linear in its text.
 */
export function mendCall(attempt: Attempt): MendedCall | undefined {
  const { name, status, argumentsText } = attempt;
  if (status === "invalid-json") return mendInvalidJson(attempt);
  if (name === undefined || argumentsText === undefined) return undefined;
  const given = tryRead(() => parsePythonJson(argumentsText));
  const value =
    typeof given === "string" && given !== "" ? tryRead(() => parsePythonJson(given)) : given;
  if (isPyDict(value)) return { name, arguments: value };
  const isNothing = value === null || value === "" || (isPyList(value) && value.length === 0);
  return isNothing ? { name, arguments: new Map() } : undefined;
}

/** Formats write the name into the JSON, or beside it. */
function mendInvalidJson({ raw, name }: Attempt): MendedCall | undefined {
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
 * JSON without commas before closing brackets, with line breaks and tabs in strings escaped, and with
 * the brackets closed that are open at its end.
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

/** Drops a comma that nothing but white space follows. */
function dropComma(pieces: string[]): void {
  let last = pieces.length - 1;
  while (last >= 0 && pieces[last]?.trim() === "") last -= 1;
  if (pieces[last] === ",") pieces.splice(last, 1);
}
