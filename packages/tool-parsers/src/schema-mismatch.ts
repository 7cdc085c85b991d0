import type { PyDict } from "../../python-values/src/index.ts";
import { checkSchema } from "./schema/check-schema.ts";

/** The differences between arguments and a schema. */
interface SchemaFindings {
  /** The places that do not fit, as `path: expectation`, such as `/days: must be integer`. */
  readonly mismatches: readonly string[];
  /** The reason why the arguments were not checked. Absent if they were checked. */
  readonly unchecked?: string;
}

/**
 * Checks arguments against the tool's JSON Schema, which may come from a client. Unusable parts of the schema are
 * ignored.
 */
export function findSchemaMismatches(schema: PyDict, value: PyDict): SchemaFindings {
  const { mismatches, ...rest } = checkSchema(schema, value);
  const described = mismatches.map(
    ({ path, message }) => `/${path.map(toToken).join("/")}: ${message}`,
  );
  return { mismatches: described, ...rest };
}

/** Escapes a key for a JSON pointer. */
function toToken(key: string | number): string {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}
