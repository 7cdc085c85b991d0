import type { SyntaxNode } from "@lezer/common";
import type {
  Expression,
  OtherKind,
} from "../../../packages/tool-parsers/src/shared/python-source/expression.ts";
import { parseExpression } from "../../../packages/tool-parsers/src/shared/python-source/expression.ts";
import { PythonError } from "../../../packages/python-values/src/python-error.ts";
import type { PyDict, PyValue } from "../../../packages/python-values/src/value.ts";
import type { PythonModule } from "./python-module.ts";
import { textOf, unreadable } from "./python-module.ts";

/**
 * Makes a record of a constructor call's keyword arguments. If they do not fit, it returns the problem and the
 * expectation; the caller adds the file and line.
 */
export type RecordMaker = (
  fields: PyDict,
) => { readonly value: PyValue } | { readonly found: string; readonly expected: string };

/** The allowed constructors, by name. */
export type RecordMakers = ReadonlyMap<string, RecordMaker>;

const noRecords: RecordMakers = new Map();

/**
 * Returns the value of a Python literal: strings of all kinds, also adjacent ones, numbers with a sign, `None`,
 * `True`, `False`, lists, tuples (which become lists), dictionaries with texts as keys, and calls of the given
 * constructors with keyword arguments. No code is run and no name is looked up.
 *
 * @throws UsageError naming file and line of anything else.
 */
export function evaluateLiteral(
  module: PythonModule,
  node: SyntaxNode,
  records: RecordMakers = noRecords,
): PyValue {
  return new LiteralEvaluator(module, node, records).evaluate(parse(module, node));
}

/** Adds the place to errors that Python itself would raise. */
function parse(module: PythonModule, node: SyntaxNode): Expression {
  try {
    return parseExpression(textOf(module, node));
  } catch (error) {
    if (!(error instanceof PythonError)) throw error;
    throw unreadable(module, node, error.message, "a literal");
  }
}

/** The names of other kinds of expressions in messages. */
const kinds: Readonly<Record<OtherKind, string>> = {
  assignment: "an assignment",
  await: "an await",
  comprehension: "a comprehension",
  conditional: "a conditional",
  lambda: "a lambda",
  logic: "an operator",
  power: "a computed value",
  starred: "an unpacked *…",
  subscript: "an attribute or index",
  yield: "a yield",
};

class LiteralEvaluator {
  readonly #module: PythonModule;
  readonly #node: SyntaxNode;
  readonly #records: RecordMakers;

  constructor(module: PythonModule, node: SyntaxNode, records: RecordMakers) {
    this.#module = module;
    this.#node = node;
    this.#records = records;
  }

  evaluate(expression: Expression): PyValue {
    switch (expression.type) {
      case "constant":
        return expression.value;
      case "list":
      case "tuple":
        return expression.items.map((item) => this.evaluate(item));
      case "dict":
        return this.#dictionary(expression);
      case "unary":
        return this.#signed(expression);
      case "call":
        return this.#record(expression);
      case "foreign":
        if (expression.kind === "bytes") throw this.#refuse(expression, "bytes", "a text");
        throw this.#refuse(expression, this.#describeForeign(expression), "a literal");
      case "name":
        throw this.#refuse(
          expression,
          `the name ${expression.id} with an unknown value`,
          "a literal",
        );
      case "set":
        throw this.#refuse(expression, "a set", "a literal");
      case "attribute":
        throw this.#refuse(expression, kinds.subscript, "a literal");
      case "binary":
        throw this.#refuse(expression, "a computed value", "a literal");
      case "other":
        throw this.#refuse(expression, kinds[expression.kind], "a literal");
    }
  }

  #describeForeign({ kind, start }: Expression & { readonly type: "foreign" }): string {
    if (kind !== "imaginary") return kind === "ellipsis" ? "an ellipsis" : "an f-string";
    const rest = textOf(this.#module, this.#node).slice(start);
    return `the number ${/^[\w.]+/.exec(rest)?.[0] ?? ""}`;
  }

  #signed(expression: Expression & { readonly type: "unary" }): PyValue {
    const { operator, operand } = expression;
    if (operator === "-" || operator === "+") {
      const value = this.evaluate(operand);
      if (typeof value === "bigint" || typeof value === "number") {
        return operator === "-" ? -value : value;
      }
    }
    throw this.#refuse(expression, "an operator", "a literal");
  }

  #dictionary({ entries }: Expression & { readonly type: "dict" }): PyDict {
    const dictionary = new Map<string, PyValue>();
    for (const { key, value } of entries) {
      if (key === undefined) throw this.#refuse(value, "an unpacked **…", "a literal");
      const name = this.evaluate(key);
      if (typeof name !== "string") throw this.#refuse(key, "a key that is not a text", "a text");
      dictionary.set(name, this.evaluate(value));
    }
    return dictionary;
  }

  #record(call: Expression & { readonly type: "call" }): PyValue {
    const { callee, calleeEnd } = call;
    const name = callee.type === "name" ? callee.id : undefined;
    const make = name === undefined ? undefined : this.#records.get(name);
    if (make === undefined) {
      const text = textOf(this.#module, this.#node).slice(callee.start, calleeEnd).trimEnd();
      throw this.#refuse(call, `a call of ${text}()`, "a literal");
    }
    const result = make(this.#keywordArguments(call));
    if ("value" in result) return result.value;
    throw this.#refuse(call, `${name}() ${result.found}`, result.expected);
  }

  #keywordArguments(call: Expression & { readonly type: "call" }): PyDict {
    const fields = new Map<string, PyValue>();
    const nameless = call.keywords.find(({ name }) => name === undefined)?.value;
    if (call.hasPositional || nameless !== undefined) {
      throw this.#refuse(nameless ?? call, "an argument without a name", "name=literal");
    }
    for (const { name = "", value } of call.keywords) {
      if (fields.has(name)) throw this.#refuse(call, `${name} given twice`, "each argument once");
      fields.set(name, this.evaluate(value));
    }
    return fields;
  }

  #refuse({ start }: { readonly start: number }, found: string, expected: string): Error {
    return unreadable(this.#module, { from: this.#node.from + start }, found, expected);
  }
}
