import { UsageError, describeError } from "../errors.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";
import { toPyValue, type PlainJson, type PyDict } from "../../packages/python-values/src/value.ts";
import { checkSchema } from "../../packages/tool-parsers/src/schema/check-schema.ts";
import { findUnusableParts } from "../../packages/tool-parsers/src/schema/find-unusable-parts.ts";
import type { Mismatch } from "../../packages/tool-parsers/src/schema/schema-rule.ts";
import {
  isStandardSchema,
  type ObjectSchema,
  type StandardIssue,
  type StandardSchema,
} from "./standard-schema.ts";

/** A tool's parameters as declared: a validation library's schema, or a JSON Schema. */
export type ToolParameters<Arguments> = StandardSchema<Arguments> | ObjectSchema;

/** Valid arguments, or their problem in words for the model. */
export type CheckedArguments =
  | {
      readonly value: unknown;
      /** The reason why the arguments were not checked. Absent if they were checked. */
      readonly unchecked?: string;
    }
  | { readonly problems: readonly string[] };

/** A tool's parameters, with a schema for the model and a function that checks arguments. */
export interface ParameterCheck {
  readonly jsonSchema: ObjectSchema;
  /** The parts of the JSON Schema that are not checked: each part's place, and the reason. */
  readonly unusable: readonly string[];
  /** Checks plain arguments; async if the schema is. */
  readonly check: (given: unknown) => CheckedArguments | Promise<CheckedArguments>;
}

/** For tools without parameters. */
const noParameters: ObjectSchema = { type: "object", properties: {} };

/**
 * Reads a tool's declared parameters.
 *
 * @throws UsageError, naming the tool, if they are not a schema that can be shown to a model.
 */
export function readParameters(parameters: unknown, tool: string): ParameterCheck {
  if (parameters === undefined) return checkWithJsonSchema(noParameters);
  if (isStandardSchema(parameters)) {
    const jsonSchema = jsonSchemaOf(parameters, tool);
    return { jsonSchema, unusable: [], check: (given) => checkWith(parameters, given) };
  }
  if (!isObjectSchema(parameters)) {
    const hint = isShape(parameters) ? "z.object(…) around these fields" : "z.object({…})";
    throw new UsageError(
      `Cannot define tool ${tool}: its parameters are not the schema of an object, expected ${hint}, ` +
        'another Standard Schema, or a JSON Schema {"type": "object", "properties": {…}}',
    );
  }
  return checkWithJsonSchema(parameters);
}

function isObjectSchema(value: unknown): value is ObjectSchema {
  return typeof value === "object" && value !== null && "type" in value && value.type === "object";
}

/** True for an object of fields that lacks the wrapping object schema. */
function isShape(value: unknown): boolean {
  if (typeof value !== "object" || value === null) return false;
  const fields = Object.values(value);
  return fields.length > 0 && fields.every(isStandardSchema);
}

interface JsonSchemaSource {
  readonly input?: (options: { readonly target: string }) => unknown;
}

function jsonSchemaOf(schema: StandardSchema, tool: string): ObjectSchema {
  const { vendor } = schema["~standard"];
  const { jsonSchema } = schema["~standard"] as { readonly jsonSchema?: JsonSchemaSource };
  if (typeof jsonSchema?.input !== "function") {
    const remedy =
      vendor === "zod"
        ? "expected zod 4.2 or newer"
        : vendor === "valibot"
          ? "wrap it with toStandardJsonSchema() of @valibot/to-json-schema"
          : "give a JSON Schema instead";
    throw new UsageError(
      `Cannot define tool ${tool}: its parameters (${vendor}) have no JSON Schema, ${remedy}`,
    );
  }
  let written: unknown;
  try {
    written = jsonSchema.input({ target: "draft-07" });
  } catch (error) {
    throw new UsageError(
      `Cannot define tool ${tool}: its parameters cannot be written as a JSON Schema: ` +
        describeError(error),
      { cause: error },
    );
  }
  if (!isObjectSchema(written)) {
    throw new UsageError(
      `Cannot define tool ${tool}: its parameters are not an object, expected one such as z.object({…})`,
    );
  }
  // The schema's draft means nothing to a model.
  const { $schema: _draft, ...shown } = written;
  return shown;
}

function checkWith(
  schema: StandardSchema,
  given: unknown,
): CheckedArguments | Promise<CheckedArguments> {
  const result = schema["~standard"].validate(given);
  return result instanceof Promise ? result.then(toChecked) : toChecked(result);
}

function toChecked(
  result: { readonly issues?: readonly StandardIssue[] | undefined } | { readonly value: unknown },
): CheckedArguments {
  if ("issues" in result && result.issues !== undefined) {
    return { problems: result.issues.map(describeIssue) };
  }
  return { value: (result as { readonly value: unknown }).value };
}

function describeIssue({ path = [], message }: StandardIssue): string {
  const keys = path.map((part) => String(typeof part === "object" ? part.key : part));
  return keys.length === 0 ? message : `${keys.join(".")}: ${message}`;
}

function checkWithJsonSchema(schema: ObjectSchema): ParameterCheck {
  const document = toPyValue(schema as unknown as PlainJson) as PyDict;
  const { $schema: _draft, ...shown } = schema;
  return {
    jsonSchema: shown,
    unusable: findUnusableParts(document),
    check(given) {
      const result = checkSchema(document, toPyValue(given as PlainJson));
      const { mismatches, unchecked } = result;
      if (unchecked !== undefined) return { value: given, unchecked };
      return mismatches.length === 0
        ? { value: given }
        : { problems: mismatches.map(describeMismatch) };
    },
  };
}

function describeMismatch({ path, message, choices }: Mismatch): string {
  const listed = choices?.map((choice) => stringifyPythonJson(choice)).join(", ");
  const more = listed === undefined ? "" : `: ${listed}`;
  return `${path.length === 0 ? "" : `${path.join(".")} `}${message}${more}`;
}
