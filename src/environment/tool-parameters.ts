import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import { UsageError, describeError } from "../errors.ts";
import {
  isStandardSchema,
  type ObjectSchema,
  type StandardIssue,
  type StandardSchema,
} from "./standard-schema.ts";

/** What a tool's parameters are declared as: a schema of a validation library, or a JSON Schema. */
export type ToolParameters<Arguments> = StandardSchema<Arguments> | ObjectSchema;

/** Arguments that fit, or what is wrong with them, in words for the model. */
export type CheckedArguments =
  | { readonly value: unknown }
  | { readonly problems: readonly string[] };

/** A tool's parameters, ready to be shown to a model and to check what it wrote. */
export interface ParameterCheck {
  readonly jsonSchema: ObjectSchema;
  /** Checks plain arguments; async where the schema is. */
  readonly check: (given: unknown) => CheckedArguments | Promise<CheckedArguments>;
}

/** For tools without parameters. */
const noParameters: ObjectSchema = { type: "object", properties: {} };

/**
 * Reads what a tool declares as its parameters.
 *
 * @throws UsageError where it is no schema, or none that can be shown to a model. `tool` names it.
 */
export function readParameters(parameters: unknown, tool: string): ParameterCheck {
  if (parameters === undefined) return checkWithJsonSchema(noParameters, tool);
  if (isStandardSchema(parameters)) {
    const jsonSchema = jsonSchemaOf(parameters, tool);
    return { jsonSchema, check: (given) => checkWith(parameters, given) };
  }
  if (!isObjectSchema(parameters)) {
    const hint = isShape(parameters) ? "z.object(…) around these fields" : "z.object({…})";
    throw new UsageError(
      `Cannot define tool ${tool}: its parameters are no schema of an object, expected ${hint}, ` +
        'another Standard Schema, or a JSON Schema {"type": "object", "properties": {…}}',
    );
  }
  return checkWithJsonSchema(parameters, tool);
}

function isObjectSchema(value: unknown): value is ObjectSchema {
  return typeof value === "object" && value !== null && "type" in value && value.type === "object";
}

/** Fields that somebody forgot to make an object of. */
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
      `Cannot define tool ${tool}: its parameters (${vendor}) do not say their JSON Schema, ${remedy}`,
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
      `Cannot define tool ${tool}: its parameters are no object, expected one such as z.object({…})`,
    );
  }
  // Which draft it is in says nothing to a model.
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

function checkWithJsonSchema(schema: ObjectSchema, tool: string): ParameterCheck {
  // One for each tool: an instance keeps all that it has compiled.
  const ajv = new Ajv2020({
    strict: false,
    allErrors: true,
    validateFormats: false,
    logger: false,
  });
  const { $schema: _draft, ...shown } = schema;
  try {
    const isRight = ajv.compile(shown);
    return {
      jsonSchema: shown,
      check: (given) =>
        isRight(given)
          ? { value: given }
          : { problems: (isRight.errors ?? []).map(describeJsonError) },
    };
  } catch (error) {
    throw new UsageError(
      `Cannot define tool ${tool}: its parameters are no JSON Schema: ${describeError(error)}`,
      { cause: error },
    );
  }
}

function describeJsonError({ instancePath, message = "is wrong", params }: ErrorObject): string {
  const place = instancePath.slice(1).replaceAll("/", ".");
  const choices: unknown = params["allowedValues"];
  const more = Array.isArray(choices)
    ? `: ${choices.map((one) => JSON.stringify(one)).join(", ")}`
    : "";
  return `${place === "" ? "" : `${place} `}${message}${more}`;
}
