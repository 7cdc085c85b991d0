import { PythonError, type PyValue } from "../../../../python-values/src/index.ts";
import { toJsonKey } from "./python-literal.ts";
import type { Expression } from "../python-source/expression.ts";

/** The values that arguments in Python may have, besides constants, lists and dictionaries. */
export interface ArgumentRules {
  /** Names that stand for values, such as `true`. */
  readonly names: ReadonlyMap<string, PyValue>;
  readonly allowsTuples: boolean;
  readonly allowsNegative: boolean;
}

/**
 * Reads an argument.
 *
 * @throws PythonError `ValueError` if the rules do not allow it; `TypeError` if JSON cannot
 *   represent it.
 */
export function readPythonicArgument(node: Expression, rules: ArgumentRules): PyValue {
  switch (node.type) {
    case "constant":
      return node.value;
    case "foreign":
      if (node.kind === "formatted") throw notLiteral();
      throw new PythonError("TypeError", "not JSON serializable");
    case "list":
      return node.items.map((item) => readPythonicArgument(item, rules));
    case "tuple":
      if (!rules.allowsTuples) throw notLiteral();
      return node.items.map((item) => readPythonicArgument(item, rules));
    case "dict":
      return new Map(
        node.entries.flatMap(({ key, value }) => {
          if (key === undefined) return unpacked(rules);
          return [[readKey(key, rules), readPythonicArgument(value, rules)] as const];
        }),
      );
    case "name": {
      const value = rules.names.get(node.id);
      if (value === undefined) throw notLiteral();
      return value;
    }
    case "unary":
      if (rules.allowsNegative && node.operator === "-") return negate(node.operand, rules);
      throw notLiteral();
    default:
      throw notLiteral();
  }
}

/** Handles `{**x}`: an engine that allows tuples leaves it out, and the stricter engine raises. */
function unpacked(rules: ArgumentRules): [] {
  if (rules.allowsTuples) return [];
  throw new PythonError("AttributeError", "an entry has no key");
}

function readKey(key: Expression, rules: ArgumentRules): string {
  if (key.type === "list" || key.type === "dict" || key.type === "tuple") {
    throw new PythonError("TypeError", "not a key of JSON");
  }
  // The stricter engine looks at the node itself, and only constants have a value there.
  if (!rules.allowsTuples && key.type !== "constant" && key.type !== "foreign") {
    throw new PythonError("AttributeError", "a key is not a constant");
  }
  return toJsonKey(readPythonicArgument(key, rules));
}

function negate(operand: Expression, rules: ArgumentRules): PyValue {
  if (operand.type === "foreign") throw notLiteral();
  const value = readPythonicArgument(operand, rules);
  if (typeof value === "bigint" || typeof value === "number") return -value;
  if (typeof value === "boolean") return value ? -1n : 0n;
  throw notLiteral();
}

function notLiteral(): PythonError {
  return new PythonError("ValueError", "the arguments of a call must be literals");
}
