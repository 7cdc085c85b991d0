import { formatFloat, formatInt, reprString } from "../../../python-values/src/index.ts";
import { spendOn } from "../evaluate/budget.ts";
import { TemplateError } from "../template-error.ts";
import type { TemplateValue } from "./template-value.ts";
import { isDict, isList, Markup, Tuple, typeName, Undefined } from "./template-value.ts";

/** Python's `str()` of a value: the text that a template prints. */
export function strOf(value: TemplateValue): string {
  if (typeof value === "string") return value;
  if (value instanceof Markup) return value.text;
  if (value instanceof Undefined) return "";
  return reprOf(value);
}

/**
 * Python's `repr()` of a value.
 *
 * @throws TemplateError for functions and generators: their Python text contains a memory address and differs each
 * time.
 */
export function reprOf(value: TemplateValue): string {
  spendOn(value);
  if (value === null) return "None";
  switch (typeof value) {
    case "boolean":
      return value ? "True" : "False";
    case "bigint":
      return formatInt(value);
    case "number":
      return formatFloat(value);
    case "string":
      return reprString(value);
    default:
      return reprObject(value);
  }
}

function reprObject(value: Exclude<TemplateValue, null | boolean | bigint | number | string>) {
  if (isList(value)) return `[${value.map(reprOf).join(", ")}]`;
  if (isDict(value)) {
    const members = Array.from(value, ([key, member]) => `${reprOf(key)}: ${reprOf(member)}`);
    return `{${members.join(", ")}}`;
  }
  if (value instanceof Tuple) {
    return `(${value.items.map(reprOf).join(", ")}${value.items.length === 1 ? "," : ""})`;
  }
  if (value instanceof Markup) return `Markup(${reprString(value.text)})`;
  if (value instanceof Undefined) return "Undefined";
  const text = value.repr?.();
  if (text !== undefined) return text;
  throw new TemplateError(
    "TemplateRuntimeError",
    `Cannot print a value of type ${typeName(value)}: Python would print its memory address`,
  );
}
