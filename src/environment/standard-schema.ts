/**
 * The interface of a validation library's schema: the part of Standard Schema and of Standard JSON Schema that
 * tools need. Zod 4.2 and newer, ArkType, and Valibot through `toStandardJsonSchema()` have both.
 *
 * Source: https://standardschema.dev (version 1).
 */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    /** The library's name. */
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Never present at run time. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** The result of a validation: the value, or its issues. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One issue of a value. */
export interface StandardIssue {
  readonly message: string;
  /** The path to the problem within the value. Absent or empty for the complete value. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A JSON Schema of an object, as tools declare their parameters. */
export interface ObjectSchema {
  readonly type: "object";
  readonly [keyword: string]: unknown;
}

/** True if the value is a validation library's schema; some of these are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  return (
    ((typeof value === "object" && value !== null) || typeof value === "function") &&
    "~standard" in value
  );
}
