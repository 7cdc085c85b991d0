import {
  isPyDict,
  type PyDict,
  pythonTruthy,
  type PyValue,
  stringifyPythonJson,
} from "../../../../python-values/src/index.ts";
import type { Dialect } from "../../tool-call-parser.ts";
import { compileAnchor, type Anchor } from "./anchor.ts";
import { compileContent, type ContentReader } from "./content.ts";
import { expandLiterals } from "./literals.ts";
import { requireDict, requireKnownKeys, templateProblem, textOf } from "./template-problem.ts";
import { findMixedText } from "./transform.ts";

/** A part of a message, as a response template describes it. */
export interface TemplateField {
  readonly name: string;
  /** The start of the field's region. Absent for the field that takes the text outside all others. */
  readonly open?: Anchor;
  readonly close?: Anchor;
  readonly read: ContentReader;
  readonly transform?: PyValue;
  /** True if the transform applies to each element of a list. */
  readonly transformEach: boolean;
  /** True if the arguments are written as JSON, so that a string is known to be a string. */
  readonly isJson: boolean;
}

/** A model's own description of how it writes a turn (`response_template` of its tokenizer). */
export interface ResponseTemplate {
  readonly thinking?: TemplateField;
  readonly content?: TemplateField;
  readonly toolCalls?: TemplateField;
  /** The texts at the end of the prompt for a turn, if they are literals. */
  readonly startLiterals: readonly string[];
}

const fieldNames = ["thinking", "content", "tool_calls"] as const;
const fieldKeys = [
  "open",
  "open_pattern",
  "close",
  "close_pattern",
  "content",
  "content_args",
  "repeats",
  "join",
  "optional",
  "transform",
  "transform_each",
];

/**
 * Reads a response template as SGLang and vLLM do before they serve with it.
 *
 * **Source:** huggingface/transformers,
 * `src/transformers/utils/chat_parsing/response_templates.py`, as SGLang 0.5.23 and vLLM 0.33 carry
 * it.
 *
 * @throws UsageError if they refuse the template, or if it contains a pattern that cannot be
 *   matched exactly.
 */
export function loadResponseTemplate(spec: PyValue, dialect: Dialect): ResponseTemplate {
  const place = "response_template";
  const template = requireDict(spec, place);
  const known = ["version", "defaults", "fields", "start_anchor", "start_anchor_pattern"];
  requireKnownKeys(template, known, place);
  const version = template.get("version") ?? 1n;
  if (version !== 1n && version !== 1) {
    throw templateProblem(`its version is ${stringifyPythonJson(version)}, expected 1`);
  }
  const defaults = requireDict(template.get("defaults") ?? new Map(), `${place}.defaults`);
  requireKnownKeys(defaults, ["role"], `${place}.defaults`);
  const raw = requireDict(template.get("fields"), `${place}.fields`);
  if (raw.size === 0) throw templateProblem("it has no fields");
  requireKnownKeys(raw, fieldNames, `${place}.fields`);
  const anchor = compileAnchor(template, "start_anchor", place);
  if (anchor === undefined) {
    throw templateProblem("it has neither start_anchor nor start_anchor_pattern");
  }
  const fields = new Map(
    [...raw].map(([name, field]) => [name, loadField(name, field, dialect)] as const),
  );
  const [thinking, content, toolCalls] = fieldNames.map((name) => fields.get(name));
  const startPattern = template.get("start_anchor_pattern");
  const startLiterals =
    anchor.literals ??
    (typeof startPattern === "string" ? expandLiterals(startPattern) : undefined);
  const loaded = {
    ...(thinking !== undefined && { thinking }),
    ...(content !== undefined && { content }),
    ...(toolCalls !== undefined && { toolCalls }),
    startLiterals: startLiterals ?? [],
  };
  requireServable(loaded, [...fields.values()]);
  const isThinkingLeft = thinking !== undefined && thinking.open === undefined;
  // SGLang then reads reasoning by another template, in which two fields would take the rest.
  if (dialect === "sglang" && isThinkingLeft && content?.open !== undefined) {
    throw templateProblem("content has open, and thinking has none");
  }
  return loaded;
}

function loadField(name: string, value: PyValue, dialect: Dialect): TemplateField {
  const place = `response_template.fields.${name}`;
  const field = requireDict(value, place);
  requireKnownKeys(field, fieldKeys, place);
  const open = compileAnchor(field, "open", place);
  const close = compileAnchor(field, "close", place);
  if (open?.canBeEmpty === true && close?.canBeEmpty === true) {
    throw templateProblem(`${place} opens and closes with nothing`);
  }
  const settings = requireDict(field.get("content_args") ?? new Map(), `${place}.content_args`);
  const content = textOf(field, "content", place) ?? "text";
  const options = { forgivesDepth: dialect === "sglang" };
  const read = compileContent(content, settings, options, `${place}.content_args`);
  checkJoin(field, place);
  const transform = checkTransform(field, [...(open?.names ?? []), ...(close?.names ?? [])], place);
  const inner = settings.get("value_parser");
  return {
    name,
    ...(open !== undefined && { open }),
    ...(close !== undefined && { close }),
    read,
    ...(transform !== undefined && { transform }),
    transformEach: field.get("transform_each") === true,
    isJson: content === "json" || (isPyDict(inner) && inner.get("name") === "json"),
  };
}

function checkJoin(field: PyDict, place: string): void {
  const join = field.get("join") ?? null;
  if (join === null) return;
  if (typeof join !== "string") throw templateProblem(`${place}.join is not a string`);
  if (!pythonTruthy(field.get("repeats") ?? false)) {
    throw templateProblem(`${place}.join is given without repeats`);
  }
}

function checkTransform(
  field: PyDict,
  captured: readonly string[],
  place: string,
): PyValue | undefined {
  const transform = field.get("transform") ?? null;
  const each = field.get("transform_each") ?? false;
  if (typeof each !== "boolean") throw templateProblem(`${place}.transform_each is no boolean`);
  if (transform === null) {
    if (each) throw templateProblem(`${place}.transform_each is given without a transform`);
    if (captured.length === 0) return undefined;
    throw templateProblem(`${place} captures ${captured.join(", ")}, and has no transform`);
  }
  const mixed = findMixedText(transform);
  if (mixed === undefined) return transform;
  throw templateProblem(
    `${place}.transform mixes a placeholder with text in ${JSON.stringify(mixed)}`,
  );
}

/**
 * Checks the requirements of servers beyond the form of a template.
 *
 * @throws UsageError if a requirement is not met.
 */
function requireServable(template: ResponseTemplate, fields: readonly TemplateField[]): void {
  const sinks = fields.filter(({ open }) => open === undefined);
  const [, second] = sinks;
  if (second !== undefined) {
    throw templateProblem(
      `${sinks.map(({ name }) => name).join(" and ")} have no open, expected one`,
    );
  }
  if (template.toolCalls !== undefined && template.toolCalls.open === undefined) {
    throw templateProblem("tool_calls has neither open nor open_pattern");
  }
  requireDecidable(template, fields);
}

/**
 * Refuses a template whose result would depend on a pattern that is only partly matched at the end
 * of the turn.
 *
 * @throws UsageError for such a template.
 */
function requireDecidable(template: ResponseTemplate, fields: readonly TemplateField[]): void {
  const sink = fields.find(({ open }) => open === undefined);
  const endsLikeStart = sink?.close?.literals?.some((literal) =>
    template.startLiterals.some((start) => literal !== start && literal.endsWith(start)),
  );
  const hasPattern = fields.some(({ open }) => open !== undefined && open.literals === undefined);
  if (endsLikeStart === true && hasPattern) {
    throw templateProblem(`${sink?.name} closes with the start of a turn, beside open_pattern`);
  }
}
