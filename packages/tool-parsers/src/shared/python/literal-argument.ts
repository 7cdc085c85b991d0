import {
  isPyDict,
  isPyList,
  PythonError,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toJsonKey } from "./python-literal.ts";
import type { DictEntry, Expression } from "../python-source/expression.ts";

const names: ReadonlyMap<string, PyValue> = new Map<string, PyValue>([
  ["true", true],
  ["false", false],
  ["null", null],
]);

/**
 * Reads an argument in Python as newer engine releases do: constants, lists, tuples and sets (which
 * become lists), dictionaries, signed numbers, formatted strings without placeholders, and JSON's
 * names of constants. With `constants`, keys of dictionaries must be constants. With `any`, keys
 * may be any such value, and unpacked dictionaries are left out.
 *
 * @throws PythonError `ValueError` for anything else, `TypeError` for a key that Python cannot
 *   hash.
 */
export function readLiteralArgument(node: Expression, keys: "any" | "constants"): PyValue {
  switch (node.type) {
    case "constant":
      return node.value;
    case "foreign":
      if (node.kind === "formatted" && node.text !== undefined) return node.text;
      throw noLiteral();
    case "list":
    case "tuple":
    case "set":
      return node.items.map((item) => readLiteralArgument(item, keys));
    case "dict":
      return new Map(node.entries.flatMap((entry) => readEntry(entry, keys)));
    case "name": {
      const value = names.get(node.id);
      if (value === undefined) throw noLiteral();
      return value;
    }
    case "unary": {
      const value = readLiteralArgument(node.operand, keys);
      const isNumber = typeof value === "bigint" || typeof value === "number";
      if (!isNumber || !["-", "+"].includes(node.operator)) throw noLiteral();
      return node.operator === "-" ? -value : value;
    }
    default:
      throw noLiteral();
  }
}

function readEntry(
  { key, value }: DictEntry,
  keys: "any" | "constants",
): (readonly [key: string, value: PyValue])[] {
  if (key === undefined && keys === "any") return [];
  if (key === undefined || (keys === "constants" && key.type !== "constant")) throw noLiteral();
  return [[readKey(key, keys), readLiteralArgument(value, keys)]];
}

function readKey(node: Expression, keys: "any" | "constants"): string {
  const key = readLiteralArgument(node, keys);
  if (node.type === "tuple") throw noLiteral();
  if (isPyList(key) || isPyDict(key)) throw new PythonError("TypeError", "unhashable type");
  return toJsonKey(key);
}

function noLiteral(): PythonValueError {
  return new PythonValueError("the arguments of a call must be literals");
}
