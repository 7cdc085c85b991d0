import type { PyDict } from "../python/value.ts";
import { checkSchema } from "../schema/check-schema.ts";

/**
 * Lists where arguments do not fit the tool's JSON Schema, as `path: what is expected`, such as
 * `/days: must be integer`. What cannot be used of a schema demands nothing, and neither does a schema
 * that takes too many steps.
 */
export function findSchemaMismatches(schema: PyDict, value: PyDict): string[] {
  return checkSchema(schema, value).mismatches.map(
    ({ path, message }) => `/${path.map(toToken).join("/")}: ${message}`,
  );
}

/** A key as a JSON pointer writes it. */
function toToken(key: string | number): string {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}
