import { UsageError } from "../../../../python-values/src/support/index.ts";
import type { PyDict } from "../../../../python-values/src/index.ts";
import type { Dialect } from "../../tool-call-parser.ts";
import { loadResponseTemplate, type ResponseTemplate } from "./response-template.ts";

const loaded = new WeakMap<PyDict, Map<Dialect, ResponseTemplate>>();

/**
 * Returns the loaded template. Each template is loaded once.
 *
 * @throws UsageError if there is no template, or if it cannot be read.
 */
export function templateOfModel(spec: PyDict | undefined, dialect: Dialect): ResponseTemplate {
  if (spec === undefined) {
    throw new UsageError(
      "Cannot parse with a response template: none is given, expected a model whose " +
        "tokenizer_config.json has response_template",
    );
  }
  const known = loaded.get(spec) ?? new Map<Dialect, ResponseTemplate>();
  loaded.set(spec, known);
  const template = known.get(dialect) ?? loadResponseTemplate(spec, dialect);
  known.set(dialect, template);
  return template;
}
