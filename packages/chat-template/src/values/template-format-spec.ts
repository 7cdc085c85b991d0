import { numberOf } from "./template-compare.ts";
import { typeError, valueError } from "../template-error.ts";
import type { FloatPresentation } from "./template-float-format.ts";
import { formatMagnitude } from "./template-float-format.ts";
import { codePointCount } from "./template-iterate.ts";
import { strOf } from "./template-text.ts";
import type { TemplateValue } from "./template-value.ts";
import { textOf, typeName } from "./template-value.ts";

interface Spec {
  readonly fill: string;
  readonly align: string | undefined;
  readonly sign: string;
  readonly alternate: boolean;
  readonly width: number;
  readonly grouping: string | undefined;
  readonly precision: number | undefined;
  readonly type: string;
}

const specPattern =
  /^(?:([^])?([<>=^]))?([-+ ])?(#)?(0)?(\d+)?([,_])?(?:\.(\d+))?([bcdeEfFgGnosxX%])?$/u;

/** The widest padding of a text. */
const maxWidth = 100_000;

/**
 * Python's `format(value, spec)` for strings and numbers.
 *
 * **Source:** the Python documentation, "Format Specification Mini-Language".
 *
 * @throws TemplateError `ValueError` for a specification that does not fit the value.
 */
export function formatBySpec(value: TemplateValue, text: string): string {
  if (text === "") return strOf(value);
  const string = textOf(value);
  const number = numberOf(value);
  if (string === undefined && number === undefined) {
    throw typeError(`unsupported format string passed to ${typeName(value)}.__format__`);
  }
  const spec = parseSpec(text, value);
  if (string !== undefined) return formatString(string, spec);
  return typeof number === "bigint" && !"eEfFgG%".includes(spec.type || "d")
    ? formatInteger(number, spec)
    : formatFloating(Number(number), spec);
}

function parseSpec(text: string, value: TemplateValue): Spec {
  const match = specPattern.exec(text);
  if (match === null) {
    throw valueError(`Invalid format specifier '${text}' for object of type '${typeName(value)}'`);
  }
  const [, fill, align, sign, alternate, zero, width, grouping, precision, type] = match;
  if (Number(width ?? 0) > maxWidth) throw valueError("Too many decimal digits in format string");
  return {
    fill: fill ?? (zero === undefined ? " " : "0"),
    align: align ?? (zero === undefined ? undefined : "="),
    sign: sign ?? "-",
    alternate: alternate !== undefined,
    width: Number(width ?? 0),
    grouping,
    precision: precision === undefined ? undefined : Number(precision),
    type: type ?? "",
  };
}

function formatString(text: string, spec: Spec): string {
  if (spec.type !== "" && spec.type !== "s") throw unknownCode(spec, "str");
  if (spec.align === "=") {
    throw valueError("'=' alignment not allowed in string format specifier");
  }
  const cut = spec.precision === undefined ? text : [...text].slice(0, spec.precision).join("");
  return pad({ sign: "", digits: cut }, spec, "<");
}

const radixes: ReadonlyMap<string, number> = new Map([
  ["", 10],
  ["d", 10],
  ["n", 10],
  ["b", 2],
  ["o", 8],
  ["x", 16],
  ["X", 16],
]);

function formatInteger(value: bigint, spec: Spec): string {
  if (spec.precision !== undefined) {
    throw valueError("Precision not allowed in integer format specifier");
  }
  if (spec.type === "c") {
    return pad({ sign: "", digits: String.fromCodePoint(Number(value)) }, spec, ">");
  }
  const radix = radixes.get(spec.type);
  if (radix === undefined) throw unknownCode(spec, "int");
  const magnitude = (value < 0n ? -value : value).toString(radix);
  const digits = group(spec.type === "X" ? magnitude.toUpperCase() : magnitude, spec, radix);
  const prefix = spec.alternate && radix !== 10 ? `0${spec.type}` : "";
  return pad({ sign: signOf(value < 0n, spec) + prefix, digits }, spec, ">");
}

function formatFloating(value: number, spec: Spec): string {
  const lower = spec.type.toLowerCase();
  if (!["", "e", "f", "g", "n", "%"].includes(lower)) throw unknownCode(spec, "float");
  const presentation = presentationOf(lower, spec.precision);
  const magnitude = formatMagnitude(value, presentation, spec.precision ?? 6);
  const cased = spec.type !== lower ? magnitude.toUpperCase() : magnitude;
  const [whole, rest] = splitWhole(cased);
  const sign = signOf(value < 0 || Object.is(value, -0), spec);
  return pad({ sign, digits: group(whole, spec, 10) + rest }, spec, ">");
}

function presentationOf(type: string, precision: number | undefined): FloatPresentation {
  if (type === "" && precision === undefined) return "repr";
  return type === "" || type === "n" ? "g" : (type as FloatPresentation);
}

function splitWhole(text: string): [string, string] {
  const end = /^\d*/.exec(text)?.[0].length ?? 0;
  return [text.slice(0, end), text.slice(end)];
}

function group(digits: string, { grouping }: Spec, radix: number): string {
  if (grouping === undefined) return digits;
  const size = radix === 10 ? 3 : 4;
  const first = digits.length % size;
  const groups = digits.slice(first).match(new RegExp(`.{${size}}`, "g")) ?? [];
  return [digits.slice(0, first), ...groups].filter((part) => part !== "").join(grouping);
}

function signOf(negative: boolean, { sign }: Spec): string {
  if (negative) return "-";
  return sign === "-" ? "" : sign;
}

function pad(
  { sign, digits }: { readonly sign: string; readonly digits: string },
  { fill, align, width }: Spec,
  natural: "<" | ">",
): string {
  const text = sign + digits;
  const room = Math.max(0, width - codePointCount(text));
  switch (align ?? natural) {
    case "<":
      return text + fill.repeat(room);
    case "^":
      return fill.repeat(Math.floor(room / 2)) + text + fill.repeat(Math.ceil(room / 2));
    case "=":
      return sign + fill.repeat(room) + digits;
    default:
      return fill.repeat(room) + text;
  }
}

function unknownCode({ type }: Spec, owner: string) {
  return valueError(`Unknown format code '${type}' for object of type '${owner}'`);
}
