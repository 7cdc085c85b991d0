import { TemplateError, valueError } from "../template-error.ts";
import { formatBySpec } from "./template-format-spec.ts";
import { escapeHtml, textLike } from "./template-markup.ts";
import { reprOf, strOf } from "./template-text.ts";
import type { CallArguments, Markup, TemplateValue } from "./template-value.ts";
import { isDict, Markup as MarkupClass } from "./template-value.ts";

/** The access of fields to values. */
interface FieldAccess {
  getAttribute(value: TemplateValue, name: string): TemplateValue;
  getItem(value: TemplateValue, key: TemplateValue): TemplateValue;
}

/**
 * Python's `template.format(…)`: `{}`, `{0}`, `{name}`, attributes and subscripts, `!r`, `!s`, and specifications,
 * which may contain fields.
 *
 * **Source:** the Python documentation, "Format String Syntax".
 *
 * @throws TemplateError `ValueError`, `KeyError` or `IndexError` as Python does.
 */
export function formatFields(
  template: string | Markup,
  args: CallArguments,
  access: FieldAccess,
): string | Markup {
  const state: FormatState = { args, access, nextIndex: 0, safe: template instanceof MarkupClass };
  return textLike(template, formatLevel(strOf(template), state, 2));
}

/** Python's `template.format_map(mapping)`. */
export function formatMapping(
  template: string | Markup,
  mapping: TemplateValue,
  access: FieldAccess,
): TemplateValue {
  const named = new Map<string, TemplateValue>();
  if (isDict(mapping)) {
    for (const [key, value] of mapping) if (typeof key === "string") named.set(key, value);
  }
  return formatFields(template, { positional: [], named }, access);
}

interface FormatState {
  readonly access: FieldAccess;
  readonly args: CallArguments;
  nextIndex: number;
  /** The way of numbering fields, decided by the first field without a name. */
  numbering?: "automatic" | "manual";
  readonly safe: boolean;
}

function formatLevel(text: string, state: FormatState, depth: number): string {
  if (depth < 0) throw valueError("Max string recursion exceeded");
  let formatted = "";
  let position = 0;
  while (position < text.length) {
    const character = text[position] as string;
    if (character !== "{" && character !== "}") {
      formatted += character;
      position += 1;
      continue;
    }
    if (text[position + 1] === character) {
      formatted += character;
      position += 2;
      continue;
    }
    if (character === "}") throw valueError("Single '}' encountered in format string");
    const end = fieldEnd(text, position);
    formatted += formatField(text.slice(position + 1, end), state, depth);
    position = end + 1;
  }
  return formatted;
}

/** The index of the brace that closes the field. */
function fieldEnd(text: string, start: number): number {
  let nesting = 0;
  for (let index = start; index < text.length; index++) {
    if (text[index] === "{") nesting += 1;
    if (text[index] === "}" && --nesting === 0) return index;
  }
  throw valueError(
    start === text.length - 1
      ? "Single '{' encountered in format string"
      : "expected '}' before end of string",
  );
}

function formatField(field: string, state: FormatState, depth: number): string {
  const match = /^((?:[^:![\]]|\[[^\]]*\])*)(?:!([^:]))?(?::([^]*))?$/.exec(field);
  if (match === null) throw valueError("expected ':' after conversion specifier");
  const [, name = "", conversion, spec = ""] = match;
  const value = convert(lookUp(name, state), conversion);
  const formatted = formatBySpec(value, formatLevel(spec, state, depth - 1));
  return state.safe && !(value instanceof MarkupClass) ? escapeHtml(formatted).text : formatted;
}

function convert(value: TemplateValue, conversion: string | undefined): TemplateValue {
  if (conversion === undefined) return value;
  if (conversion === "s") return strOf(value);
  if (conversion === "r" || conversion === "a") return reprOf(value);
  throw valueError(`Unknown conversion specifier ${conversion}`);
}

function lookUp(name: string, state: FormatState): TemplateValue {
  const first = /^[^.[]*/.exec(name)?.[0] ?? "";
  let value = argumentOf(first, state);
  for (const [, attribute, subscript = ""] of name
    .slice(first.length)
    .matchAll(/\.([^.[]+)|\[([^\]]*)\]/g)) {
    value =
      attribute === undefined
        ? state.access.getItem(value, /^\d+$/.test(subscript) ? BigInt(subscript) : subscript)
        : state.access.getAttribute(value, attribute);
  }
  return value;
}

function argumentOf(name: string, state: FormatState): TemplateValue {
  if (name !== "" && !/^\d+$/.test(name)) {
    const named = state.args.named.get(name);
    if (named === undefined) throw new TemplateError("KeyError", reprOf(name));
    return named;
  }
  const index = name === "" ? state.nextIndex++ : Number(name);
  const numbering = name === "" ? "automatic" : "manual";
  state.numbering ??= numbering;
  if (state.numbering !== numbering) {
    // Python's text is the same in both directions.
    throw valueError("cannot switch from manual field specification to automatic field numbering");
  }
  const value = state.args.positional[index];
  if (value === undefined) {
    throw new TemplateError("IndexError", "tuple index out of range");
  }
  return value;
}
