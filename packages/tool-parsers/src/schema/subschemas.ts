import { isPyDict, isPyList, type PyDict, type PyValue } from "../../../python-values/src/index.ts";

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

/** A subschema, and the keys that lead to it. */
type Subschema = readonly [path: readonly string[], schema: PyValue];

/** Yields the direct subschemas of a schema, including invalid ones. */
export function* subschemasOf(schema: PyDict): Generator<Subschema> {
  for (const [keyword, given] of schema) {
    if (isPyDict(given) && maps.has(keyword)) {
      for (const [name, each] of given) {
        // A list of names in `dependencies` is not a schema.
        if (keyword !== "dependencies" || !isPyList(each)) yield [[keyword, name], each];
      }
    } else if (isPyList(given) && lists.has(keyword)) {
      for (const [index, each] of given.entries()) yield [[keyword, String(index)], each];
    } else if (!isPyList(given) && given !== null && single.has(keyword)) {
      yield [[keyword], given];
    }
  }
}
