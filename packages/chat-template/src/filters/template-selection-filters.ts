import { TemplateError } from "../template-error.ts";
import type { Filter, NamedFilter } from "../evaluate/template-filter.ts";
import { attributeGetter } from "./template-item-getter.ts";
import type { GetFromItem } from "./template-item-getter.ts";
import { Generator, isTruthy, iterate } from "../values/template-iterate.ts";
import { strOf } from "../values/template-text.ts";
import { findTest } from "./template-tests.ts";
import type { CallArguments, TemplateValue } from "../values/template-value.ts";
import { runtimeError } from "../values/template-value.ts";

/** The filters that apply other filters and tests: `map`, `select`, `reject` and similar. */
export function createSelectionFilters(
  findFilter: (name: string) => Filter | undefined,
): readonly NamedFilter[] {
  return [
    ["map", (value, args) => new Generator(mapItems(value, args, findFilter))],
    ["select", (value, args) => new Generator(selectItems(value, args, { keep: true }))],
    ["reject", (value, args) => new Generator(selectItems(value, args, { keep: false }))],
    ["selectattr", (value, args) => new Generator(selectByAttribute(value, args, true))],
    ["rejectattr", (value, args) => new Generator(selectByAttribute(value, args, false))],
  ];
}

/** All of these are generators, because Jinja reports wrong arguments only when items are read. */
function* mapItems(
  value: TemplateValue,
  args: CallArguments,
  findFilter: (name: string) => Filter | undefined,
): Iterable<TemplateValue> {
  if (!isTruthy(value)) return;
  const apply = mapping(args, findFilter);
  for (const item of iterate(value)) yield apply(item);
}

function mapping(
  { positional, named }: CallArguments,
  findFilter: (name: string) => Filter | undefined,
): GetFromItem {
  const attribute = named.get("attribute");
  if (positional.length === 0 && attribute !== undefined) {
    for (const name of named.keys()) {
      if (name !== "attribute" && name !== "default") {
        throw argumentError(`Unexpected keyword argument '${name}'`);
      }
    }
    return attributeGetter(attribute, named.get("default"));
  }
  const [name, ...rest] = positional;
  if (name === undefined) throw argumentError("map requires a filter argument");
  const filter = findFilter(strOf(name));
  if (filter === undefined) throw runtimeError(`No filter named '${strOf(name)}'.`);
  return (item) => filter(item, { positional: rest, named });
}

function* selectByAttribute(
  value: TemplateValue,
  { positional, named }: CallArguments,
  keep: boolean,
): Iterable<TemplateValue> {
  if (!isTruthy(value)) return;
  const [attribute, ...rest] = positional;
  if (attribute === undefined) throw argumentError("Missing parameter for attribute name");
  const get = attributeGetter(attribute);
  yield* selectItems(value, { positional: rest, named }, { keep, get });
}

function* selectItems(
  value: TemplateValue,
  { positional, named }: CallArguments,
  { keep, get = (item) => item }: { readonly keep: boolean; readonly get?: GetFromItem },
): Iterable<TemplateValue> {
  if (!isTruthy(value)) return;
  const [name, ...rest] = positional;
  const test = name === undefined ? isTruthy : findTest(strOf(name));
  if (test === undefined) throw runtimeError(`No test named '${strOf(name ?? null)}'.`);
  for (const item of iterate(value)) {
    if (isTruthy(test(get(item), { positional: rest, named })) === keep) yield item;
  }
}

function argumentError(message: string): TemplateError {
  return new TemplateError("FilterArgumentError", message);
}
