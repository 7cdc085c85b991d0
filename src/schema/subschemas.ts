import { isPyDict, isPyList, type PyDict, type PyValue } from "../python/value.ts";

const single: ReadonlySet<string> = new Set([
  "items",
  "additionalItems",
  "contains",
  "unevaluatedItems",
  "additionalProperties",
  "propertyNames",
  "unevaluatedProperties",
  "not",
  "if",
  "then",
  "else",
]);
const lists: ReadonlySet<string> = new Set(["items", "prefixItems", "allOf", "anyOf", "oneOf"]);
const maps: ReadonlySet<string> = new Set([
  "properties",
  "patternProperties",
  "dependentSchemas",
  "dependencies",
  "$defs",
  "definitions",
]);

/** A schema inside another one, and the keys that lead to it. */
type Subschema = readonly [path: readonly string[], schema: PyValue];

/** The schemas that stand directly inside a schema; what is no schema may be among them. */
export function* subschemasOf(schema: PyDict): Generator<Subschema> {
  for (const [keyword, given] of schema) {
    if (isPyDict(given) && maps.has(keyword)) {
      for (const [name, each] of given) {
        // The names that a property depends on are no schema.
        if (keyword !== "dependencies" || !isPyList(each)) yield [[keyword, name], each];
      }
    } else if (isPyList(given) && lists.has(keyword)) {
      for (const [index, each] of given.entries()) yield [[keyword, String(index)], each];
    } else if (!isPyList(given) && given !== null && single.has(keyword)) {
      yield [[keyword], given];
    }
  }
}
