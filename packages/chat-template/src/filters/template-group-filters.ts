import { requireCount } from "../evaluate/template-argument.ts";
import { equals } from "../values/template-compare.ts";
import type { NamedFilter } from "../evaluate/template-filter.ts";
import { defineFilter } from "../evaluate/template-filter.ts";
import { attributeGetter, comparisonGetter } from "./template-item-getter.ts";
import { Generator, iterate, toList } from "../values/template-iterate.ts";
import { sortBy } from "./template-sort.ts";
import { strOf } from "../values/template-text.ts";
import type { TemplateList, TemplateObject, TemplateValue } from "../values/template-value.ts";
import { Tuple } from "../values/template-value.ts";

/** A group of the `groupby` filter: a named tuple. */
function makeGroup(grouper: TemplateValue, list: TemplateList): TemplateValue {
  const pair = new Tuple([grouper, list]);
  const group: TemplateObject = {
    pythonType: "_GroupTuple",
    attribute: (name) => (name === "grouper" ? grouper : name === "list" ? list : undefined),
    iterate: () => pair.items[Symbol.iterator](),
    length: () => 2,
    itemAt: (index) => pair.items[index],
    repr: () => strOf(pair),
  };
  return group;
}

function groupBy(
  value: TemplateValue,
  attribute: TemplateValue = null,
  fallback: TemplateValue = null,
  caseSensitive: TemplateValue = false,
): TemplateValue {
  const key = comparisonGetter(attribute, caseSensitive, fallback);
  const shown = attributeGetter(attribute, fallback);
  const groups: { key: TemplateValue; items: TemplateValue[] }[] = [];
  for (const item of sortBy(toList(value), key, false)) {
    const itemKey = key(item);
    const group = groups.at(-1);
    if (group !== undefined && equals(group.key, itemKey)) group.items.push(item);
    else groups.push({ key: itemKey, items: [item] });
  }
  return groups.map(({ items }) => makeGroup(shown(items[0] as TemplateValue), items));
}

function* batch(
  value: TemplateValue,
  size: TemplateValue,
  fill: TemplateValue,
): Iterable<TemplateValue> {
  let group: TemplateValue[] = [];
  for (const item of iterate(value)) {
    if (equals(BigInt(group.length), size)) {
      yield group;
      group = [];
    }
    group.push(item);
  }
  if (group.length === 0) return;
  if (fill !== null) while (group.length < requireCount(size)) group.push(fill);
  yield group;
}

function* slice(
  value: TemplateValue,
  slices: TemplateValue,
  fill: TemplateValue,
): Iterable<TemplateValue> {
  const items = toList(value);
  const count = requireCount(slices);
  const size = Math.floor(items.length / count);
  const larger = items.length % count;
  let start = 0;
  for (let index = 0; index < count; index++) {
    const end = start + size + (index < larger ? 1 : 0);
    const part = items.slice(start, end);
    yield fill !== null && index >= larger ? [...part, fill] : part;
    start = end;
  }
}

/** The filters that split a sequence into groups. */
export const groupFilters: readonly NamedFilter[] = [
  defineFilter("batch linecount fill_with?", (value, size = null, fill = null) => {
    return new Generator(batch(value, size, fill));
  }),
  defineFilter("groupby attribute default? case_sensitive?", groupBy),
  defineFilter("slice slices fill_with?", (value, slices = null, fill = null) => {
    return new Generator(slice(value, slices, fill));
  }),
];
