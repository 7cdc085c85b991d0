import type { ActionForm } from "../call-form.ts";
import { invalid, isAbsent, objectOf, textOf } from "./read-body.ts";

const texts = { type: "array", items: { type: "string" } };

/**
 * Tools of Responses with parameters that the protocol fixes, and the schemas that the policy sees.
 */
export const fixedTools = {
  local_shell: {
    form: "local-shell",
    description: "Runs a program on the user's machine and returns what it prints.",
    parameters: {
      type: "object",
      properties: {
        command: { ...texts, description: "The program and its arguments, one text each." },
        working_directory: { type: "string", description: "The folder to run it in." },
        env: {
          type: "object",
          additionalProperties: { type: "string" },
          description: "Environment variables to set.",
        },
        timeout_ms: { type: "integer", description: "The time limit in milliseconds." },
        user: { type: "string", description: "The user to run it as." },
      },
      required: ["command"],
    },
  },
  shell: {
    form: "shell",
    description:
      "Runs shell commands on the user's machine and returns the output and the exit code of each.",
    parameters: {
      type: "object",
      properties: {
        commands: { ...texts, description: "The commands, each a line for the shell." },
        timeout_ms: { type: "integer", description: "The time limit in milliseconds." },
        max_output_length: {
          type: "integer",
          description: "The number of characters of output to return at most.",
        },
      },
      required: ["commands"],
    },
  },
  apply_patch: {
    form: "apply-patch",
    description: "Creates, changes or deletes one file on the user's machine.",
    parameters: {
      type: "object",
      properties: {
        type: {
          type: "string",
          enum: ["create_file", "update_file", "delete_file"],
          description: "What to do with the file.",
        },
        path: { type: "string", description: "The path of the file." },
        diff: {
          type: "string",
          description:
            "The change as a V4A diff: the new lines of a file to create, the hunks of a file to " +
            "update. Not given for a file to delete.",
        },
      },
      required: ["type", "path"],
    },
  },
} as const satisfies Record<
  string,
  { readonly form: ActionForm; readonly description: string; readonly parameters: object }
>;

/**
 * Returns the parameters of a custom tool for the policy: a single text, `input`.
 *
 * @returns the schema, and the grammar if the tool has one.
 */
export function customParameters(
  format: unknown,
  place: string,
): { readonly schema: object; readonly grammar?: string } {
  const grammar = readGrammar(format, place);
  const rule = grammar === undefined ? "" : ` It must match this ${grammar}`;
  const description = `The whole input of the tool, as plain text.${rule}`;
  const schema = {
    type: "object",
    properties: { input: { type: "string", description } },
    required: ["input"],
    additionalProperties: false,
  };
  return { schema, ...(grammar !== undefined && { grammar }) };
}

function readGrammar(value: unknown, place: string): string | undefined {
  if (isAbsent(value)) return undefined;
  const { type, syntax, definition } = objectOf(value, place);
  switch (type) {
    case "text":
      return undefined;
    case "grammar": {
      const text = textOf(definition, `${place}.definition`);
      return `${textOf(syntax, `${place}.syntax`)} grammar:\n${text}`;
    }
    default:
      throw invalid(`${place}.type`, `there is no format ${JSON.stringify(type)}`);
  }
}
