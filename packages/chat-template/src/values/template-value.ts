import { pythonTypeName } from "../../../python-values/src/index.ts";
import { TemplateError } from "../template-error.ts";

/**
 * A value of a template: Python values (see `PyValue`), and values that exist only during a rendering. Dictionaries
 * made by a template may have keys that are not strings.
 */
export type TemplateValue =
  | null
  | boolean
  | bigint
  | number
  | string
  | TemplateList
  | TemplateDict
  | Tuple
  | Markup
  | Undefined
  | TemplateObject;

/** A Python `list`. */
export type TemplateList = readonly TemplateValue[];

/** A Python `dict`; read it with `dictGet()`, because `1`, `1.0` and `True` are one key. */
export type TemplateDict = ReadonlyMap<TemplateValue, TemplateValue>;

/** The arguments of a call. */
export interface CallArguments {
  readonly positional: readonly TemplateValue[];
  readonly named: ReadonlyMap<string, TemplateValue>;
}

/** An empty argument list. */
export const noArguments: CallArguments = { positional: [], named: new Map() };

/** A value with its own behaviour: a function, a namespace, a loop, a generator, a view. */
export interface TemplateObject {
  /** The name of its Python type. */
  readonly pythonType: string;
  /** The module and the type of the value, for Jinja's messages about missing attributes. */
  readonly qualifiedType?: string;
  /** Returns an attribute, or `undefined` if it does not exist. */
  attribute?(name: string): TemplateValue | undefined;
  call?(args: CallArguments): TemplateValue;
  /** Returns a new iterator, or for a generator always the same one. */
  iterate?(): Iterator<TemplateValue>;
  /** The result of `len()`. */
  length?(): number;
  /** The result of `bool()`, if it is not always true. */
  truthy?(): boolean;
  /** The result of an integer subscript; `undefined` beyond the end. */
  itemAt?(index: number): TemplateValue | undefined;
  /** The result of `repr()` and `str()`; absent if Python prints a memory address. */
  repr?(): string;
}

/** A Python `tuple`. */
export class Tuple {
  readonly items: TemplateList;

  constructor(items: TemplateList) {
    this.items = items;
  }
}

/** A string that is marked as safe HTML; texts that are joined to it are escaped. */
export class Markup {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

/** The origin of an undefined value, for the message of the error when it is used. */
interface UndefinedOrigin {
  /** The complete message. */
  readonly hint?: string;
  /** The object of the lookup; absent for a variable. */
  readonly object?: TemplateValue;
  /** The variable, attribute or subscript that is missing. */
  readonly name?: TemplateValue;
  readonly kind?: "UndefinedError" | "SecurityError";
}

/** Jinja's undefined value: empty when printed, tested or iterated, an error when used otherwise. */
export class Undefined {
  readonly origin: UndefinedOrigin;

  constructor(origin: UndefinedOrigin) {
    this.origin = origin;
  }
}

/** An error that a template raises itself. */
export function runtimeError(message: string): TemplateError {
  return new TemplateError("TemplateRuntimeError", message);
}

/** True if the value is a dictionary. */
export function isDict(value: TemplateValue): value is TemplateDict {
  return value instanceof Map;
}

/** True if the value is a list. */
export function isList(value: TemplateValue): value is TemplateList {
  return Array.isArray(value);
}

/** The text of a string or a marked-up string, and `undefined` for any other value. */
export function textOf(value: TemplateValue | undefined): string | undefined {
  if (typeof value === "string") return value;
  return value instanceof Markup ? value.text : undefined;
}

/** The value as an object with behaviour; `undefined` for plain data. */
export function objectOf(value: TemplateValue): TemplateObject | undefined {
  return typeof value === "object" &&
    value !== null &&
    !Array.isArray(value) &&
    !(value instanceof Map) &&
    !(value instanceof Tuple) &&
    !(value instanceof Markup) &&
    !(value instanceof Undefined)
    ? (value as TemplateObject)
    : undefined;
}

/** The name of a value's Python type, as error messages print it. */
export function typeName(value: TemplateValue): string {
  if (value instanceof Tuple) return "tuple";
  if (value instanceof Markup) return "Markup";
  if (value instanceof Undefined) return "Undefined";
  const isPlain = value === null || typeof value !== "object" || isList(value) || isDict(value);
  return isPlain ? pythonTypeName(value) : value.pythonType;
}
