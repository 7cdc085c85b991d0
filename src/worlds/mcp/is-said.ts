import { occursIn } from "../../text/occurs-in.ts";
import { parsePythonJson } from "../../../packages/python-values/src/json/json-parse.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import { isPyDict, isPyList, type PyValue } from "../../../packages/python-values/src/value.ts";

/**
 * Maximum number of characters to search for all values together. Above this number, the content counts as not said.
 */
const mostSearched = 20_000_000;

/**
 * True if texts contain every text, number and truth value of structured content. Names of members do not count,
 * because servers write them in other words, and FastMCP wraps single values in a member `result`.
 *
 * @param structured - The structured content as JSON.
 */
export function isSaid(structured: string, texts: readonly string[]): boolean {
  const content = readJson(structured);
  if (content === undefined) return texts.includes(structured);
  const read = new Set(texts.flatMap((each) => [...leavesOf(readJson(each) ?? null)]));
  const missing = [...leavesOf(content)].filter((value) => !read.has(value));
  const text = texts.join("\n");
  if (missing.length * text.length > mostSearched) return false;
  const lowerCase = text.toLowerCase();
  const numbers = new Set(text.match(/-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?/g) ?? []);
  const rounded = new Set([...numbers].map(Number));
  return missing.every((value) => {
    switch (typeof value) {
      case "string":
        return occursIn(text, value) || occursIn(text, JSON.stringify(value).slice(1, -1));
      case "bigint":
        return numbers.has(String(value));
      case "number":
        return rounded.has(value);
      case "boolean":
        return lowerCase.includes(String(value));
    }
  });
}

/** Returns the value of a JSON text, and `undefined` for another text. */
function readJson(text: string): PyValue | undefined {
  try {
    return parsePythonJson(text);
  } catch (error) {
    if (error instanceof PythonError) return undefined;
    throw error;
  }
}

/** Returns the texts, numbers and truth values in a value, without the names of members. */
function leavesOf(value: PyValue): Set<string | number | bigint | boolean> {
  const leaves = new Set<string | number | bigint | boolean>();
  const open: PyValue[] = [value];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    if (isPyDict(next)) for (const member of next.values()) open.push(member);
    else if (isPyList(next)) for (const item of next) open.push(item);
    else if (next !== null) leaves.add(next);
  }
  return leaves;
}
