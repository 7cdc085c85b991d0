import type { SyntaxNode } from "@lezer/common";
import { readStringLiteral } from "../../../src/parser/python-source/string-literal.ts";
import { PythonError } from "../../../src/python/python-error.ts";
import type { PyDict, PyValue } from "../../../src/python/value.ts";
import { readNumberLiteral } from "./number-literal.ts";
import type { PythonModule } from "./python-module.ts";
import { childrenOf, textOf, unreadable } from "./python-module.ts";

/**
 * Makes a record of a constructor call's keyword arguments. Where they do not fit, it says what is
 * wrong and what is expected instead, and the call's file and line are added.
 */
export type RecordMaker = (
  fields: PyDict,
) => { readonly value: PyValue } | { readonly found: string; readonly expected: string };

/** Constructors that may be called, by name. */
export type RecordMakers = ReadonlyMap<string, RecordMaker>;

const noRecords: RecordMakers = new Map();

/** Deeper literals are refused before they exhaust the stack; CPython's parser refuses 200 too. */
const maxDepth = 200;

/**
 * The value of a Python literal: strings of all kinds, also several in a row, numbers with a sign,
 * `None`, `True`, `False`, lists, tuples (which become lists), dictionaries with texts as keys, and
 * calls of the given constructors with keyword arguments. Nothing is run and no name is looked up.
 *
 * @throws UsageError naming file and line of anything else.
 */
export function evaluateLiteral(
  module: PythonModule,
  node: SyntaxNode,
  records: RecordMakers = noRecords,
): PyValue {
  return new LiteralEvaluator(module, records).evaluate(node, 0);
}

/** What other kinds of expressions are called in messages, by their names in the grammar. */
const kinds: Readonly<Record<string, string>> = {
  FormatString: "an f-string",
  SetExpression: "a set",
  BinaryExpression: "a computed value",
  ConditionalExpression: "a conditional",
  MemberExpression: "an attribute or index",
  ArrayComprehensionExpression: "a comprehension",
  DictionaryComprehensionExpression: "a comprehension",
  SetComprehensionExpression: "a comprehension",
  ComprehensionExpression: "a comprehension",
  LambdaExpression: "a lambda",
  Ellipsis: "an ellipsis",
};

class LiteralEvaluator {
  readonly #module: PythonModule;
  readonly #records: RecordMakers;

  constructor(module: PythonModule, records: RecordMakers) {
    this.#module = module;
    this.#records = records;
  }

  evaluate(node: SyntaxNode, depth: number): PyValue {
    if (depth > maxDepth) throw this.#refuse(node, "a literal that nests too deep", "200 levels");
    switch (node.name) {
      case "None":
        return null;
      case "Boolean":
        return textOf(this.#module, node) === "True";
      case "Number":
      // The grammar takes `5.` and `5.e3` for attributes, and `5.e+3` for a sum.
      case "MemberExpression":
      case "BinaryExpression":
        return this.#number(node);
      case "String":
      case "ContinuedString":
        return this.#string(node);
      case "UnaryExpression":
        return this.#signed(node, depth);
      case "ParenthesizedExpression":
        return this.evaluate(this.#only(node, ["(", ")"]), depth + 1);
      case "ArrayExpression":
        return this.#elements(node, ["[", "]", ","], depth);
      case "TupleExpression":
        return this.#elements(node, ["(", ")", ","], depth);
      case "DictionaryExpression":
        return this.#dictionary(node, depth);
      case "CallExpression":
        return this.#record(node, depth);
      default:
        throw this.#refuse(node, this.#describe(node), "a literal");
    }
  }

  #describe(node: SyntaxNode): string {
    const text = textOf(this.#module, node);
    if (node.name === "VariableName") return `the name ${text}, whose value is not known`;
    return kinds[node.name] ?? `${JSON.stringify(text.slice(0, 40))} (${node.name})`;
  }

  #number(node: SyntaxNode): bigint | number {
    const text = textOf(this.#module, node);
    const value = this.#reading(node, () => readNumberLiteral(text));
    if (value !== undefined) return value;
    if (node.name !== "Number") throw this.#refuse(node, this.#describe(node), "a literal");
    throw this.#refuse(node, `the number ${text}`, "an int or a float");
  }

  #signed(node: SyntaxNode, depth: number): PyValue {
    const [operator, operand] = childrenOf(node);
    const sign = operator === undefined ? "" : textOf(this.#module, operator);
    if (operand !== undefined && (sign === "-" || sign === "+")) {
      const value = this.evaluate(operand, depth + 1);
      if (typeof value === "bigint" || typeof value === "number") {
        return sign === "-" ? -value : value;
      }
    }
    throw this.#refuse(node, "an operator", "a literal");
  }

  #string(node: SyntaxNode): string {
    const parts = node.name === "String" ? [node] : childrenOf(node);
    return parts.map((part) => this.#stringPart(part)).join("");
  }

  #stringPart(node: SyntaxNode): string {
    if (node.name !== "String") throw this.#refuse(node, this.#describe(node), "a literal");
    const literal = this.#reading(node, () => readStringLiteral(this.#module.source, node.from));
    if (literal?.kind === "text" && literal.end === node.to) return literal.value;
    throw this.#refuse(node, literal?.kind === "bytes" ? "bytes" : "a broken string", "a text");
  }

  #elements(node: SyntaxNode, punctuation: readonly string[], depth: number): PyValue[] {
    return childrenOf(node, punctuation).map((element) => {
      if (element.name === "*") throw this.#refuse(element, "an unpacked *…", "a literal");
      return this.evaluate(element, depth + 1);
    });
  }

  #dictionary(node: SyntaxNode, depth: number): PyDict {
    const dictionary = new Map<string, PyValue>();
    const parts = childrenOf(node, ["{", "}", ",", ":"]);
    for (let index = 0; index < parts.length; index += 2) {
      const [key, value] = [parts[index], parts[index + 1]];
      if (key === undefined || value === undefined || key.name === "**") {
        throw this.#refuse(key ?? node, "an unpacked **…", "a literal");
      }
      const name = this.evaluate(key, depth + 1);
      if (typeof name !== "string") throw this.#refuse(key, "a key that is no text", "a text");
      dictionary.set(name, this.evaluate(value, depth + 1));
    }
    return dictionary;
  }

  #record(node: SyntaxNode, depth: number): PyValue {
    const [callee, list] = childrenOf(node);
    const name = callee === undefined ? "" : textOf(this.#module, callee);
    const make = this.#records.get(name);
    if (make === undefined || list?.name !== "ArgList") {
      throw this.#refuse(node, `a call of ${name}()`, "a literal");
    }
    const result = make(this.#keywordArguments(list, depth));
    if ("value" in result) return result.value;
    throw this.#refuse(node, `${name}() ${result.found}`, result.expected);
  }

  #keywordArguments(list: SyntaxNode, depth: number): PyDict {
    const fields = new Map<string, PyValue>();
    const parts = childrenOf(list, ["(", ")", ","]);
    for (let index = 0; index < parts.length; index += 3) {
      const [field, operator, value] = parts.slice(index, index + 3);
      const name = field?.name === "VariableName" ? textOf(this.#module, field) : undefined;
      if (name === undefined || operator?.name !== "AssignOp" || value === undefined) {
        throw this.#refuse(field ?? list, "an argument without a name", "name=literal");
      }
      if (fields.has(name)) throw this.#refuse(list, `${name} given twice`, "each argument once");
      fields.set(name, this.evaluate(value, depth + 1));
    }
    return fields;
  }

  #only(node: SyntaxNode, punctuation: readonly string[]): SyntaxNode {
    const [inner, more] = childrenOf(node, punctuation);
    if (inner !== undefined && more === undefined) return inner;
    throw this.#refuse(node, "an expression", "a literal");
  }

  /** What Python itself would refuse gets its place as well. */
  #reading<Value>(node: SyntaxNode, read: () => Value): Value {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof PythonError)) throw error;
      throw this.#refuse(node, error.message, "a literal");
    }
  }

  #refuse(node: SyntaxNode, found: string, expected: string): Error {
    return unreadable(this.#module, node, found, expected);
  }
}
