import type { PyDict } from "../python/value.ts";
import { checkSchema } from "../schema/check-schema.ts";

/** Findings about arguments. */
interface SchemaFindings {
  /** Places where they do not fit, as `path: what is expected`, such as `/days: must be integer`. */
  readonly mismatches: readonly string[];
  /** The reason why they were not checked; absent where they were. */
  readonly unchecked?: string;
}

/**
 * Holds arguments against the tool's JSON Schema, which may be a client's. What cannot be used of the
 * schema demands nothing.
 */
export function findSchemaMismatches(schema: PyDict, value: PyDict): SchemaFindings {
  const { mismatches, ...rest } = checkSchema(schema, value);
  const described = mismatches.map(
    ({ path, message }) => `/${path.map(toToken).join("/")}: ${message}`,
  );
  return { mismatches: described, ...rest };
}

/** A key as a JSON pointer writes it. */
function toToken(key: string | number): string {
  return String(key).replaceAll("~", "~0").replaceAll("/", "~1");
}
