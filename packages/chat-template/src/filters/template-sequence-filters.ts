import { isEscaping } from "../evaluate/autoescape.ts";
import { calculate } from "../values/template-arithmetic.ts";
import { getAttribute } from "../values/template-attribute.ts";
import { assertHashable, compareOrder, contains } from "../values/template-compare.ts";
import { itemTuples } from "../values/template-container-methods.ts";
import { TemplateError, typeError } from "../template-error.ts";
import type { NamedFilter } from "../evaluate/template-filter.ts";
import { defineFilter } from "../evaluate/template-filter.ts";
import type { GetFromItem } from "./template-item-getter.ts";
import { attributeGetter, comparisonGetter, ignoreCase } from "./template-item-getter.ts";
import { Generator, isTruthy, iterate, toList } from "../values/template-iterate.ts";
import { escapeHtml } from "../values/template-markup.ts";
import { sortBy } from "./template-sort.ts";
import { sliceOf } from "../values/template-subscript.ts";
import { strOf } from "../values/template-text.ts";
import { undefinedError } from "../values/template-undefined.ts";
import type { TemplateValue, Tuple } from "../values/template-value.ts";
import { isDict, Markup, objectOf, textOf, typeName, Undefined } from "../values/template-value.ts";

function sort(
  value: TemplateValue,
  reverse: TemplateValue = false,
  caseSensitive: TemplateValue = false,
  attribute: TemplateValue = null,
): TemplateValue {
  const getters = (textOf(attribute)?.split(",") ?? [attribute]).map((part) =>
    comparisonGetter(part, caseSensitive),
  );
  return sortBy(toList(value), (item) => getters.map((get) => get(item)), reverse);
}

function dictSort(
  value: TemplateValue,
  caseSensitive: TemplateValue = false,
  by: TemplateValue = "key",
  reverse: TemplateValue = false,
): TemplateValue {
  if (by !== "key" && by !== "value") {
    throw argumentError('You can only sort by either "key" or "value"');
  }
  if (value instanceof Undefined) throw undefinedError(value);
  if (!isDict(value)) {
    throw new TemplateError(
      "AttributeError",
      `'${typeName(value)}' object has no attribute 'items'`,
    );
  }
  const key: GetFromItem = (item) => {
    const part = (item as Tuple).items[by === "key" ? 0 : 1] as TemplateValue;
    return isTruthy(caseSensitive) ? part : ignoreCase(part);
  };
  return sortBy([...itemTuples(value)], key, reverse);
}

function join(
  value: TemplateValue,
  separator: TemplateValue = "",
  attribute: TemplateValue = null,
): string | Markup {
  const get = attributeGetter(attribute);
  const items = Array.from(iterate(value), get);
  if (!isEscaping()) return items.map(strOf).join(strOf(separator));
  const isSafe = [separator, ...items].some((part) => part instanceof Markup);
  if (!isSafe) return items.map(strOf).join(strOf(separator));
  return new Markup(items.map((item) => escapeHtml(item).text).join(escapeHtml(separator).text));
}

function first(value: TemplateValue): TemplateValue {
  for (const item of iterate(value)) return item;
  return new Undefined({ hint: "No first item, sequence was empty." });
}

function last(value: TemplateValue): TemplateValue {
  const object = objectOf(value);
  if (object !== undefined && (object.iterate === undefined || object.length === undefined)) {
    throw typeError(`'${typeName(value)}' object is not reversible`);
  }
  const item = toList(value).at(-1);
  return item === undefined ? new Undefined({ hint: "No last item, sequence was empty." }) : item;
}

function reverse(value: TemplateValue): TemplateValue {
  if (textOf(value) !== undefined) {
    return sliceOf(value, { start: null, stop: null, step: -1n });
  }
  return new Generator([...iterate(value)].toReversed(), "list_reverseiterator");
}

function extreme(
  operator: "<" | ">",
  value: TemplateValue,
  caseSensitive: TemplateValue,
  attribute: TemplateValue,
): TemplateValue {
  const key = comparisonGetter(attribute, caseSensitive);
  let best: { readonly item: TemplateValue; readonly key: TemplateValue } | undefined;
  for (const item of iterate(value)) {
    const candidate = { item, key: key(item) };
    if (best === undefined || compareOrder(candidate.key, operator, best.key)) best = candidate;
  }
  return best === undefined
    ? new Undefined({ hint: "No aggregated item, sequence was empty." })
    : best.item;
}

function* unique(value: TemplateValue, key: GetFromItem): Iterable<TemplateValue> {
  const seen: TemplateValue[] = [];
  for (const item of iterate(value)) {
    const candidate = key(item);
    assertHashable(candidate);
    if (contains(seen, candidate)) continue;
    seen.push(candidate);
    yield item;
  }
}

function sum(
  value: TemplateValue,
  attribute: TemplateValue = null,
  start: TemplateValue = 0n,
): TemplateValue {
  const get = attributeGetter(attribute);
  let total = start;
  for (const item of iterate(value)) total = calculate(total, "+", get(item));
  return total;
}

/** The result of `value.name` without the fallback to a dictionary's members. */
function attribute(value: TemplateValue, name: TemplateValue = null): TemplateValue {
  const text = textOf(name);
  if (text === undefined) {
    throw typeError(`attribute name must be string, not '${typeName(name)}'`);
  }
  const found = getAttribute(value, text);
  const isMember = isDict(value) && value.get(text) === found;
  return isMember ? new Undefined({ object: value, name: text }) : found;
}

function argumentError(message: string): TemplateError {
  return new TemplateError("FilterArgumentError", message);
}

/** The filters for complete lists and dictionaries. */
export const sequenceFilters: readonly NamedFilter[] = [
  defineFilter("attr name", attribute),
  defineFilter("dictsort case_sensitive? by? reverse?", dictSort),
  defineFilter("first", first),
  defineFilter("join d? attribute?", join),
  defineFilter("last", last),
  defineFilter("max case_sensitive? attribute?", (value, caseSensitive = false, attribute = null) =>
    extreme(">", value, caseSensitive, attribute),
  ),
  defineFilter("min case_sensitive? attribute?", (value, caseSensitive = false, attribute = null) =>
    extreme("<", value, caseSensitive, attribute),
  ),
  defineFilter("reverse", reverse),
  defineFilter("sort reverse? case_sensitive? attribute?", sort),
  defineFilter("sum attribute? start?", sum),
  defineFilter(
    "unique case_sensitive? attribute?",
    (value, caseSensitive = false, attribute = null) =>
      new Generator(unique(value, comparisonGetter(attribute, caseSensitive))),
  ),
];
