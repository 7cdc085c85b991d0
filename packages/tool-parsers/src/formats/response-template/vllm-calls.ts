import {
  isPyDict,
  isPyList,
  type PyDict,
  PythonValueError,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import type { VllmCall, VllmExtraction } from "../../vllm/vllm-reading.ts";
import { coerceCalls } from "./coerce-arguments.ts";
import type { ResponseTemplate, TemplateField } from "./response-template.ts";
import { applyTransform } from "./transform.ts";
import { walkRegions, type Region, type Walk } from "./walk-regions.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const answer: TemplateField = {
  name: "content",
  read: (text) => text,
  transformEach: false,
  isJson: false,
};

/**
 * Finds all regions of a turn. If the template has no field for the answer, text outside all fields
 * is the answer.
 */
export function walkTurn(text: string, template: ResponseTemplate): Walk {
  const { thinking, content, toolCalls, startLiterals } = template;
  const named = [thinking, content, toolCalls].filter((field) => field !== undefined);
  const needsAnswer = content === undefined && named.every(({ open }) => open !== undefined);
  return walkRegions(text, { fields: needsAnswer ? [...named, answer] : named, startLiterals });
}

/**
 * Reads a turn by a response template as vLLM does. Reasoning is part of the text unless a reasoning parser was chosen
 * as well. If one call of a region is incomplete, no call of the region counts.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/parser/response_template.py`.
 */
export function extractTemplateCalls(
  text: string,
  template: ResponseTemplate,
  context: ParseContext,
): VllmExtraction {
  const content: string[] = [];
  const calls: VllmCall[] = [];
  for (const region of walkTurn(text, template).regions) {
    if (region.field !== template.toolCalls) content.push(region.body);
    else {
      const value = catchPython(
        () => valueOf(region, context),
        ...(["KeyError", "TypeError", "ValueError"] as const),
      );
      if (value !== undefined) calls.push(...callsOf(value));
    }
  }
  return { content: content.join(""), calls };
}

function valueOf({ field, body, captures }: Region, context: ParseContext): PyValue {
  const value = transformed(field, field.read(body), captures);
  if (context.tools.length === 0) return value;
  return coerceCalls(value, {
    dialect: "vllm",
    isJson: field.isJson,
    propertiesOf: (name) => propertiesOf(name, context),
  });
}

function transformed(
  { transform, transformEach }: TemplateField,
  content: PyValue,
  captures: ReadonlyMap<string, string>,
): PyValue {
  const scope = new Map<string, PyValue>(captures);
  if (transform === undefined) return content;
  if (!transformEach) return applyTransform(transform, scope.set("content", content));
  if (!isPyList(content)) throw new PythonValueError("transform_each requires a list");
  return content.map((item) => {
    if (!isPyDict(item)) throw new PythonValueError("transform_each requires dicts");
    return applyTransform(transform, new Map([...scope, ...item]));
  });
}

function propertiesOf(name: string, { tools }: ParseContext): PyDict | undefined {
  const tool = tools.findLast((each) => each.name === name);
  const parameters = tool === undefined ? undefined : toolParameters(tool);
  const properties = isPyDict(parameters) ? parameters.get("properties") : undefined;
  return isPyDict(properties) ? properties : undefined;
}

/** All calls of a region's value; empty if one of them is incomplete. */
function callsOf(value: PyValue): readonly VllmCall[] {
  const calls: VllmCall[] = [];
  for (const item of isPyList(value) ? value : [value]) {
    const call = isPyDict(item) ? item.get("function") : undefined;
    const name = isPyDict(call) ? call.get("name") : undefined;
    const given = isPyDict(call) ? (call.get("arguments") ?? null) : null;
    if (typeof name !== "string" || name === "" || given === null) return [];
    const argumentsText = typeof given === "string" ? given : writeJson(given);
    calls.push({ name, argumentsText: argumentsText === "" ? "{}" : argumentsText });
  }
  return calls;
}
