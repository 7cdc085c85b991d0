/**
 * What a validation library says of a schema: the part of Standard Schema and of Standard JSON Schema
 * that tools need. Zod 4.2 and newer, ArkType, and Valibot through `toStandardJsonSchema()` have both.
 *
 * Source: https://standardschema.dev (version 1).
 */
export interface StandardSchema<Output = unknown> {
  readonly "~standard": {
    readonly version: 1;
    /** The library's name. */
    readonly vendor: string;
    readonly validate: (value: unknown) => StandardResult<Output> | Promise<StandardResult<Output>>;
    /** Never there at run time. */
    readonly types?: { readonly input: unknown; readonly output: Output } | undefined;
  };
}

/** What a validation came to: the value, or what is wrong with it. */
export type StandardResult<Output> =
  | { readonly value: Output; readonly issues?: undefined }
  | { readonly issues: readonly StandardIssue[] };

/** One thing that is wrong with a value. */
export interface StandardIssue {
  readonly message: string;
  /** Where in the value; absent or empty for the value as a whole. */
  readonly path?: readonly (PropertyKey | { readonly key: PropertyKey })[] | undefined;
}

/** A JSON Schema of an object, as tools declare their parameters. */
export interface ObjectSchema {
  readonly type: "object";
  readonly [keyword: string]: unknown;
}

/** Whether the value is a schema of a validation library; some are functions. */
export function isStandardSchema(value: unknown): value is StandardSchema {
  return (
    ((typeof value === "object" && value !== null) || typeof value === "function") &&
    "~standard" in value
  );
}
