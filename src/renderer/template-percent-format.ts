import { dictGet, numberOf } from "./template-compare.ts";
import { TemplateError, typeError, valueError } from "./template-error.ts";
import { formatBySpec } from "./template-format-spec.ts";
import { escapeHtml, textLike } from "./template-markup.ts";
import { reprOf, strOf } from "./template-text.ts";
import type { TemplateValue } from "./template-value.ts";
import { isDict, isList, Markup, objectOf, Tuple, typeName, Undefined } from "./template-value.ts";

const directive = /%(?:\(([^()]*)\))?([-+ #0]*)(\d+|\*)?(?:\.(\d+|\*)?)?[hlL]?([^])?/gu;

/**
 * Python's `template % values`: `values` is a tuple, a dictionary for named directives, or a single
 * value.
 *
 * **Source:** the Python documentation, "printf-style String Formatting".
 *
 * @throws TemplateError `TypeError` for too few, too many or unfit values.
 */
export function formatPercent(template: string | Markup, values: TemplateValue): string | Markup {
  const safe = template instanceof Markup;
  const list = values instanceof Tuple ? values.items : [values];
  let used = 0;
  const next = (): TemplateValue => {
    const value = list[used];
    if (value === undefined) throw typeError("not enough arguments for format string");
    used += 1;
    return value;
  };
  const text = strOf(template).replace(
    directive,
    (
      whole: string,
      key?: string,
      flags = "",
      width?: string,
      precision?: string,
      type?: string,
    ) => {
      if (whole === "%%") return "%";
      if (type === undefined) throw valueError("incomplete format");
      const resolved = {
        flags,
        width: width === "*" ? strOf(next()) : width,
        precision: whole.includes(".")
          ? precision === "*"
            ? strOf(next())
            : (precision ?? "0")
          : undefined,
        type,
      };
      const value = key === undefined ? next() : memberOf(values, key);
      return convert(value, resolved, safe);
    },
  );
  if (used < list.length && !isMappingLike(values)) {
    throw typeError("not all arguments converted during string formatting");
  }
  return textLike(template, text);
}

/** Python asks unused arguments only of what cannot be subscripted, and of tuples and strings. */
function isMappingLike(values: TemplateValue): boolean {
  return (
    isDict(values) ||
    isList(values) ||
    values instanceof Undefined ||
    objectOf(values)?.itemAt !== undefined
  );
}

function memberOf(values: TemplateValue, key: string): TemplateValue {
  if (!isDict(values)) throw typeError("format requires a mapping");
  const member = dictGet(values, key);
  if (member === undefined) throw new TemplateError("KeyError", reprOf(key));
  return member;
}

interface Directive {
  readonly flags: string;
  readonly width: string | undefined;
  readonly precision: string | undefined;
  readonly type: string;
}

function convert(value: TemplateValue, directive: Directive, safe: boolean): string {
  const { flags, width = "", precision, type } = directive;
  const left = flags.includes("-");
  if (type === "s" || type === "r" || type === "a") {
    const plain = type === "s" ? strOf(value) : reprOf(value);
    const text = safe ? escapeHtml(type === "s" ? value : plain).text : plain;
    return formatBySpec(text, `${left ? "<" : ">"}${width}${dotted(precision)}`);
  }
  if (type === "c") return formatBySpec(characterOf(value), `${left ? "<" : ">"}${width}`);
  const number = numberOf(value);
  if (!"diuoxXeEfFgG".includes(type)) {
    throw valueError(`unsupported format character '${type}'`);
  }
  if (number === undefined) throw notANumber(value, type);
  const sign = flags.includes("+") ? "+" : flags.includes(" ") ? " " : "";
  const alternate = flags.includes("#") ? "#" : "";
  const zero = flags.includes("0") && !left;
  const align = left ? "<" : zero ? "0=" : ">";
  if ("diu".includes(type)) {
    return formatBySpec(truncate(number), `${align}${sign}${width}d`);
  }
  if ("oxX".includes(type)) {
    if (typeof number !== "bigint") throw notANumber(value, type);
    return formatBySpec(number, `${align}${sign}${alternate}${width}${type}`);
  }
  return formatBySpec(Number(number), `${align}${sign}${width}${dotted(precision ?? "6")}${type}`);
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
