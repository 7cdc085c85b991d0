import { describeError, UsageError } from "../errors.ts";
import { parsePythonJson } from "../../packages/python-values/src/json/json-parse.ts";
import type { PyDict, PyValue } from "../../packages/python-values/src/value.ts";
import { isPyDict } from "../../packages/python-values/src/value.ts";
import { readTextFile } from "../text/decode-text.ts";

/** The flag that names a model's response template. */
export const responseTemplateFlag = [
  "--response-template <file>",
  "a model's response template, or its tokenizer_config.json, for parsers that read by it",
] as const;

/**
 * Reads a response template from a JSON file: the complete document, or its member
 * `response_template`.
 *
 * @throws UsageError if the file cannot be read, or is not a JSON object.
 */
export async function readResponseTemplate(
  file: string | undefined,
): Promise<{ readonly responseTemplate?: PyDict }> {
  if (file === undefined) return {};
  const document = await readDocument(file);
  const template = isPyDict(document) ? (document.get("response_template") ?? document) : document;
  if (isPyDict(template) && (template !== document || template.has("fields"))) {
    return { responseTemplate: template };
  }
  if (isPyDict(document) && template === document) {
    throw new UsageError(
      `Cannot read ${file}: it has no response_template, and no fields as a template of its own, ` +
        "expected a response template",
    );
  }
  throw new UsageError(`Cannot read ${file}: it holds no object, expected a response template`);
}

async function readDocument(file: string): Promise<PyValue> {
  try {
    return parsePythonJson(await readTextFile(file));
  } catch (cause) {
    throw new UsageError(`Cannot read ${file}: ${describeError(cause)}`, { cause });
  }
}
