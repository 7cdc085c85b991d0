import { requireCount } from "../evaluate/template-argument.ts";
import { dictGet, numberOf } from "./template-compare.ts";
import { TemplateError, typeError, valueError } from "../template-error.ts";
import { formatBySpec } from "./template-format-spec.ts";
import { escapeHtml, textLike } from "./template-markup.ts";
import { reprOf, strOf } from "./template-text.ts";
import type { TemplateValue } from "./template-value.ts";
import { isDict, isList, Markup, objectOf, Tuple, typeName, Undefined } from "./template-value.ts";

const directivePattern =
  /%(?:\((?<key>[^()]*)\))?(?<flags>[-+ #0]*)(?<width>\d+|\*)?(?<point>\.(?<precision>\d+|\*)?)?[hlL]?(?<type>[^])?/gu;

interface Directive {
  readonly key: string | undefined;
  readonly flags: string;
  readonly width: string | undefined;
  readonly point: string | undefined;
  readonly precision: string | undefined;
  readonly type: string | undefined;
}

/**
 * Python's `template % values`: `values` is a tuple, a dictionary for named directives, or a single
 * value.
 *
 * **Source:** the Python documentation, "printf-style String Formatting".
 *
 * @throws TemplateError `TypeError` for too few, too many or unfit values, `ValueError` for an
 *   unknown directive, `KeyError` for a name that the dictionary lacks.
 */
export function formatPercent(template: string | Markup, values: TemplateValue): string | Markup {
  const source = strOf(template);
  const supply = new PercentValues(values);
  let text = "";
  let end = 0;
  for (const match of source.matchAll(directivePattern)) {
    const [whole] = match;
    text += source.slice(end, match.index);
    end = match.index + whole.length;
    if (whole === "%%") {
      text += "%";
      continue;
    }
    const directive = match.groups as unknown as Directive;
    const field = readField(directive, supply, end - 1);
    text += template instanceof Markup ? escapeField(field) : formatField(field);
  }
  supply.assertUsedUp();
  return textLike(template, text + source.slice(end));
}

/** The values on the right of `%`, taken in order. */
class PercentValues {
  readonly #values: TemplateValue;
  readonly #list: readonly TemplateValue[];
  #used = 0;

  constructor(values: TemplateValue) {
    this.#values = values;
    this.#list = values instanceof Tuple ? values.items : [values];
  }

  next(): TemplateValue {
    const value = this.#list[this.#used];
    if (value === undefined) throw typeError("not enough arguments for format string");
    this.#used += 1;
    return value;
  }

  member(key: string): TemplateValue {
    if (!isDict(this.#values)) throw typeError("format requires a mapping");
    const member = dictGet(this.#values, key);
    if (member === undefined) throw new TemplateError("KeyError", reprOf(key));
    return member;
  }

  assertUsedUp(): void {
    if (this.#used < this.#list.length && !isMappingLike(this.#values)) {
      throw typeError("not all arguments converted during string formatting");
    }
  }
}

/**
 * True for values that may have unused members: Python reports unused arguments only for tuples, strings and values
 * without subscripts.
 */
function isMappingLike(values: TemplateValue): boolean {
  return (
    isDict(values) ||
    isList(values) ||
    values instanceof Undefined ||
    objectOf(values)?.itemAt !== undefined
  );
}

interface Field {
  readonly value: TemplateValue;
  readonly type: string;
  readonly flags: string;
  /** `""` if absent. */
  readonly width: string;
  readonly precision: string | undefined;
}

/** Takes a directive's values; `index` is the position of its last character. */
function readField(directive: Directive, supply: PercentValues, index: number): Field {
  const { key, flags, type } = directive;
  if (type === undefined) throw valueError("incomplete format");
  const number = (text: string | undefined) =>
    text === "*" ? String(requireCount(supply.next())) : text;
  const width = number(directive.width) ?? "";
  const precision = directive.point && (number(directive.precision) ?? "0");
  const value = key === undefined ? supply.next() : supply.member(key);
  if (!"sracdiuoxXeEfFgG".includes(type)) {
    const code = (type.codePointAt(0) ?? 0).toString(16);
    throw valueError(`unsupported format character '${type}' (0x${code}) at index ${index}`);
  }
  return { value, type, flags, width, precision };
}

/** Escapes a text before padding it in a safe string. */
function escapeField(field: Field): string {
  if (!"sra".includes(field.type)) return formatField(field);
  const text = field.type === "s" ? field.value : reprOf(field.value);
  return formatField({ ...field, type: "s", value: escapeHtml(text).text });
}

function formatField({ value, type, flags, width, precision }: Field): string {
  const align = flags.includes("-") ? "<" : ">";
  if ("sra".includes(type)) {
    const text = type === "s" ? strOf(value) : reprOf(value);
    return formatBySpec(text, `${align}${width}${dotted(precision)}`);
  }
  if (type === "c") return formatBySpec(characterOf(value), `${align}${width}`);
  const number = numberOf(value);
  if (number === undefined) throw notANumber(value, type);
  const sign = flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
  const head = `${flags.includes("0") && align === ">" ? "0=" : align}${sign}`;
  if ("diu".includes(type)) return formatBySpec(truncate(number), `${head}${width}d`);
  if ("oxX".includes(type)) {
    if (typeof number !== "bigint") throw notANumber(value, type);
    return formatBySpec(number, `${head}${flags.includes("#") ? "#" : ""}${width}${type}`);
  }
  return formatBySpec(Number(number), `${head}${width}${dotted(precision ?? "6")}${type}`);
}

function dotted(precision: string | undefined): string {
  return precision === undefined ? "" : `.${precision}`;
}

function truncate(number: bigint | number): bigint {
  return typeof number === "bigint" ? number : BigInt(Math.trunc(number));
}

function characterOf(value: TemplateValue): string {
  if (typeof value === "string" && [...value].length === 1) return value;
  if (typeof value === "bigint") return String.fromCodePoint(Number(value));
  throw typeError("%c requires int or char");
}

function notANumber(value: TemplateValue, type: string): TemplateError {
  if ("oxX".includes(type)) {
    return typeError(`%${type} format: an integer is required, not ${typeName(value)}`);
  }
  return "diu".includes(type)
    ? typeError(`%${type} format: a real number is required, not ${typeName(value)}`)
    : typeError(`must be real number, not ${typeName(value)}`);
}
