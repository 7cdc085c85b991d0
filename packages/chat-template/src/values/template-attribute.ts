import {
  dictMethods,
  listMethods,
  tupleMethods,
  unsafeDictMethods,
  unsafeListMethods,
} from "./template-container-methods.ts";
import { spendOn } from "../evaluate/budget.ts";
import type { Evaluate } from "../evaluate/frame.ts";
import type { BoundArguments, Signature } from "../evaluate/template-function.ts";
import { bindArguments, BuiltinFunction, callValue } from "../evaluate/template-function.ts";
import { iterate } from "./template-iterate.ts";
import { escapeHtml } from "./template-markup.ts";
import { formatFields, formatMapping } from "./template-str-format.ts";
import {
  type StringMethod,
  stringMethods,
  unsupportedStringMethods,
} from "./template-string-methods.ts";
import { itemOf } from "./template-subscript.ts";
import { reprOf } from "./template-text.ts";
import { undefinedError } from "./template-undefined.ts";
import type { CallArguments, TemplateValue } from "./template-value.ts";
import {
  isDict,
  isList,
  Markup,
  objectOf,
  runtimeError,
  textOf,
  Tuple,
  typeName,
  Undefined,
} from "./template-value.ts";

/**
 * `value.name`: an attribute or method, else the member under that key, else undefined.
 *
 * @throws TemplateError if the value itself is undefined.
 */
export function getAttribute(value: TemplateValue, name: string): TemplateValue {
  if (value instanceof Undefined) throw undefinedError(value);
  const attribute = attributeOf(value, name);
  if (attribute !== undefined) return attribute;
  const member = isDict(value) ? value.get(name) : undefined;
  return member === undefined ? new Undefined({ object: value, name }) : member;
}

/**
 * `value[key]`: the item or member, else for a text the attribute of that name, else undefined.
 *
 * @throws TemplateError if the value itself is undefined.
 */
export function getItem(value: TemplateValue, key: TemplateValue): TemplateValue {
  if (value instanceof Undefined) throw undefinedError(value);
  const item = itemOf(value, key);
  if (item !== undefined) return item;
  const name = textOf(key);
  const attribute = name === undefined ? undefined : attributeOf(value, name);
  return attribute === undefined ? new Undefined({ object: value, name: key }) : attribute;
}

/** `value.name(…)`, without making a bound method if the value is plain. */
export function callMethod(value: TemplateValue, name: string, args: CallArguments): TemplateValue {
  if (typeof value === "string") {
    const ofText = stringMethods.get(name);
    if (ofText !== undefined) return callTextMethod(ofText, value, args);
  }
  const method = findMethod(value, name);
  return method === undefined ? callValue(getAttribute(value, name), args) : method(args);
}

/** Finds the method of a plain value. */
function findMethod(
  value: TemplateValue,
  name: string,
): ((args: CallArguments) => TemplateValue) | undefined {
  if (isDict(value)) return bound(dictMethods.get(name), value);
  if (textOf(value) !== undefined) return findStringMethod(value as string | Markup, name);
  if (isList(value)) return bound(listMethods.get(name), value);
  if (value instanceof Tuple) return bound(tupleMethods.get(name), value);
  return undefined;
}

function bound<Owner>(
  method:
    | { readonly signature: Signature; run(owner: Owner, args: BoundArguments): TemplateValue }
    | undefined,
  owner: Owner,
): ((args: CallArguments) => TemplateValue) | undefined {
  return method && ((args) => method.run(owner, bindArguments(method.signature, args)));
}

function findStringMethod(
  value: string | Markup,
  name: string,
): ((args: CallArguments) => TemplateValue) | undefined {
  if (name === "format") return (args) => formatFields(value, args, { getAttribute, getItem });
  if (name === "format_map") {
    return ({ positional }) =>
      formatMapping(value, positional[0] ?? null, { getAttribute, getItem });
  }
  const method = stringMethods.get(name);
  if (method === undefined) return undefined;
  if (typeof value === "string") return (args) => callTextMethod(method, value, args);
  return (args) => {
    spendOn(value.text);
    const bound = bindArguments(method.signature, args);
    const given = bound.map((argument, index) => {
      if (argument === undefined) return undefined;
      if (name === "join") return Array.from(iterate(argument), escapeHtml);
      return method.escaped.includes(index) ? escapeHtml(argument) : argument;
    });
    return markUp(method.run(value.text, given));
  };
}

function callTextMethod(method: StringMethod, text: string, args: CallArguments): TemplateValue {
  spendOn(text);
  return method.run(text, bindArguments(method.signature, args));
}

/** Marks a result's strings as safe, like the string that the method was called on. */
function markUp(value: TemplateValue): TemplateValue {
  if (typeof value === "string") return new Markup(value);
  if (isList(value)) return value.map(markUp);
  return value instanceof Tuple ? new Tuple(value.items.map(markUp)) : value;
}

/** An attribute that the value has in Python; `undefined` if it has no such attribute. */
function attributeOf(value: TemplateValue, name: string): TemplateValue | undefined {
  if (isUnsafe(value, name)) {
    const hint = `access to attribute ${reprOf(name)} of ${reprOf(typeName(value))} object is unsafe.`;
    return new Undefined({ hint, object: value, name, kind: "SecurityError" });
  }
  const method = findMethod(value, name);
  if (method !== undefined) return new BuiltinFunction(method);
  assertSupported(value, name);
  return objectOf(value)?.attribute?.(name);
}

function isUnsafe(value: TemplateValue, name: string): boolean {
  if (isDunder(name)) return pythonDunders.has(name);
  if (isDict(value)) return unsafeDictMethods.has(name);
  return isList(value) && unsafeListMethods.has(name);
}

/** Attributes that every Python object has. */
const pythonDunders: ReadonlySet<string> = new Set(
  (
    "class delattr dir doc eq format ge getattribute gt hash init init_subclass le lt ne new " +
    "reduce reduce_ex repr setattr sizeof str subclasshook"
  )
    .split(" ")
    .map((name) => `__${name}__`),
);

/** Attributes of Python's numbers, which templates do not need. */
const numberAttributes: ReadonlySet<string> = new Set(
  (
    "as_integer_ratio bit_count bit_length conjugate denominator from_bytes fromhex hex imag " +
    "is_integer numerator real to_bytes"
  ).split(" "),
);

/** Refuses attributes that Python has and this interpreter lacks. */
function assertSupported(value: TemplateValue, name: string): void {
  const isNumber =
    typeof value === "bigint" || typeof value === "number" || typeof value === "boolean";
  const unsupported = isNumber
    ? numberAttributes.has(name)
    : textOf(value) !== undefined && unsupportedStringMethods.has(name);
  if (unsupported) throw runtimeError(`Cannot use ${typeName(value)}.${name} in a chat template`);
}

function isDunder(name: string): boolean {
  return name.startsWith("__") && name.endsWith("__");
}

/**
 * Compiles `object.name` with the result of `getAttribute()`. Fast paths: members of dictionaries that no attribute
 * hides, attributes of `loop` and namespaces, and missing members.
 */
export function compileMemberAccess(object: Evaluate, name: string): Evaluate {
  if (dictMethods.has(name) || unsafeDictMethods.has(name)) {
    return (frame) => getAttribute(object(frame), name);
  }
  const isOrdinary = !isDunder(name);
  return (frame) => {
    const value = object(frame);
    if (isDict(value)) {
      const member = value.get(name);
      if (member !== undefined) return member;
      return isOrdinary ? new Undefined({ object: value, name }) : getAttribute(value, name);
    }
    const owner = isOrdinary ? objectOf(value) : undefined;
    if (owner === undefined) return getAttribute(value, name);
    const attribute = owner.attribute?.(name);
    return attribute === undefined ? new Undefined({ object: owner, name }) : attribute;
  };
}
