import {
  isPyDict,
  isPyList,
  parsePythonJson,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";

const MAX_UNSIGNED = 2n ** 64n - 1n;
const MIN_SIGNED = -(2n ** 63n);

/** Strings, constants and numbers of a text that is valid for Python. */
const lexemePattern = /"(?:[^"\\]|\\[^])*"|NaN|-?Infinity|-?\d[\d.eE+-]*/g;

/**
 * Reads a JSON document as orjson does, which is stricter than Python's `json.loads()`. It refuses
 * `NaN`, infinities, numbers that overflow, and lone surrogates. Integers beyond 64 bits become
 * floats.
 *
 * **Source:** ijl/orjson, README (deserialize).
 *
 * @throws PythonError as `parsePythonJson()` does; `JSONDecodeError` for text that only orjson
 *   refuses.
 */
export function parseOrjson(text: string): PyValue {
  const value = parsePythonJson(text);
  for (const [lexeme] of text.matchAll(lexemePattern)) {
    if (lexeme.startsWith('"')) checkString(lexeme);
    else if (!Number.isFinite(Number(lexeme))) throw refuse("number is infinity");
  }
  return narrow(value);
}

function narrow(value: PyValue): PyValue {
  if (typeof value === "bigint") {
    return value > MAX_UNSIGNED || value < MIN_SIGNED ? Number(value) : value;
  }
  if (isPyList(value)) return value.map(narrow);
  if (!isPyDict(value)) return value;
  return new Map([...value].map(([key, member]) => [key, narrow(member)]));
}

function checkString(lexeme: string): void {
  const isPlain = !/[\uD800-\uDFFF]|\\u[dD][89a-fA-F]/.test(lexeme);
  if (isPlain || !/\p{Surrogate}/u.test(JSON.parse(lexeme) as string)) return;
  throw refuse("lone surrogate in string");
}

function refuse(problem: string): PythonValueError {
  return new PythonValueError(problem, "JSONDecodeError");
}
