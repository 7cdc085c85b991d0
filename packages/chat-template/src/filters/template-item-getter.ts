import { pythonLower } from "../../../python-values/src/index.ts";
import { getItem } from "../values/template-attribute.ts";
import { isTruthy } from "../values/template-iterate.ts";
import { textLike } from "../values/template-markup.ts";
import type { TemplateValue } from "../values/template-value.ts";
import { textOf, Undefined } from "../values/template-value.ts";

/** Reads a part of an item. */
export type GetFromItem = (item: TemplateValue) => TemplateValue;

/**
 * Returns a function that reads an "attribute" in the sense of filters: a path such as `function.name` or `0`, or
 * an index; the item itself for `None`.
 *
 * @param fallback - The value of a missing step; `None` leaves it undefined.
 */
export function attributeGetter(
  attribute: TemplateValue,
  fallback: TemplateValue = null,
): GetFromItem {
  const path = textOf(attribute);
  const steps: readonly TemplateValue[] =
    path === undefined
      ? attribute === null
        ? []
        : [attribute]
      : path.split(".").map((step) => (/^\d+$/.test(step) ? BigInt(step) : step));
  return (item) => {
    let value = item;
    for (const step of steps) {
      value = getItem(value, step);
      if (fallback !== null && value instanceof Undefined) value = fallback;
    }
    return value;
  };
}

/** Returns a function that reads an attribute for comparison, in lower case unless `caseSensitive`. */
export function comparisonGetter(
  attribute: TemplateValue,
  caseSensitive: TemplateValue,
  fallback: TemplateValue = null,
): GetFromItem {
  const get = attributeGetter(attribute, fallback);
  return isTruthy(caseSensitive) ? get : (item) => ignoreCase(get(item));
}

/** A text in lower case; any other value unchanged. */
export function ignoreCase(value: TemplateValue): TemplateValue {
  const text = textOf(value);
  return text === undefined ? value : textLike(value, pythonLower(text));
}
