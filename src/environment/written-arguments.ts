import {
  isPyDict,
  isPyList,
  type PlainJson,
  type PyDict,
  type PyValue,
} from "../../packages/python-values/src/value.ts";
import { shorten } from "../secrets/shorten.ts";

/**
 * The deepest nesting of a policy's arguments. Results, states and scores allow twice as much, so that a tool may
 * embed its arguments in them.
 */
const maxDepth = 100;

/**
 * Finds a value in the arguments that no tool accepts under any schema: a number that JSON lacks or JavaScript
 * cannot represent exactly (unless the tool takes exact arguments), or nesting that is too deep to be written
 * again.
 */
export function findUnusable(
  given: PyDict,
  { takesExact = false }: { readonly takesExact?: boolean } = {},
): string | undefined {
  return findIn(given, { place: "", depth: 0, takesExact });
}

interface Within {
  readonly place: string;
  readonly depth: number;
  readonly takesExact: boolean;
}

function findIn(value: PyValue, { place, depth, takesExact }: Within): string | undefined {
  switch (typeof value) {
    case "bigint":
      return takesExact || isExact(value) ? undefined : `${place} is too large a number`;
    case "number":
      return Number.isFinite(value) ? undefined : `${place} is ${value}, expected a number of JSON`;
    case "object":
      break;
    default:
      return undefined;
  }
  if (value === null) return undefined;
  if (depth > maxDepth)
    return `${beginningOf(place)} nests deeper than ${maxDepth} lists and objects`;
  for (const [key, member] of membersOf(value)) {
    const inner = place === "" ? String(key) : `${place}.${key}`;
    const found = findIn(member, { place: inner, depth: depth + 1, takesExact });
    if (found !== undefined) return found;
  }
  return undefined;
}

function isExact(value: bigint): boolean {
  return value >= Number.MIN_SAFE_INTEGER && value <= Number.MAX_SAFE_INTEGER;
}

/** Shortens the place of a value that nests too deeply, since the place grows with the nesting. */
function beginningOf(place: string): string {
  return shorten(place, 60);
}

function membersOf(value: PyValue): Iterable<readonly [string | number, PyValue]> {
  if (isPyList(value)) return value.entries();
  return isPyDict(value) ? value.entries() : [];
}

/**
 * Returns arguments as plain data for a score, always writable as JSON: a number that JSON lacks or JavaScript
 * cannot represent becomes its text, and deep nesting is cut off with `…`.
 */
export function toWritableArguments(given: PyDict): Readonly<Record<string, PlainJson>> {
  return toWritable(given, 0) as Readonly<Record<string, PlainJson>>;
}

function toWritable(value: PyValue, depth: number): PlainJson {
  if (typeof value === "bigint") return isExact(value) ? Number(value) : String(value);
  if (typeof value === "number") return Number.isFinite(value) ? value : String(value);
  if (typeof value !== "object" || value === null) return value;
  if (depth > maxDepth) return "…";
  if (isPyList(value)) return value.map((item) => toWritable(item, depth + 1));
  const plain = Object.create(null) as Record<string, PlainJson>;
  for (const [key, member] of value) plain[key] = toWritable(member, depth + 1);
  return plain;
}
