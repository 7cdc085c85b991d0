import {
  type PyDict,
  pythonLower,
  pythonStrip,
  pythonTruthy,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { toolParameters } from "../../tool-definition.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parsePythonFloat, parsePythonInt } from "../../shared/python/python-number.ts";
import { vllmReading, type VllmCall, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { requireDict } from "../../shared/schema/require-dict.ts";
import { findByHead } from "../../shared/tags/between-tags.ts";

const sectionOpen = "<｜tool_calls_begin｜>";
const sectionClose = "<｜tool_calls_end｜>";
const open = "<｜tool_call_begin｜>";
const close = "<｜tool_call_end｜>";
const separator = "<｜tool_sep｜>";
const oldParameterPattern = /<steptml:parameter name="([^"]+)">([^<]*)<\/steptml:parameter>/g;
const parameterHead = /<steptml:parameter name="([^"]+)">/g;
const parameterClose = "</steptml:parameter>";

function extract(text: string, context: ParseContext): VllmExtraction | undefined {
  const start = text.indexOf(sectionOpen);
  const end = start === -1 ? -1 : text.indexOf(sectionClose, start + sectionOpen.length);
  if (end === -1) return undefined;
  const section = text.slice(start + sectionOpen.length, end);
  const calls = section.split(open).flatMap((part) => readCall(part, context));
  const around = text.slice(0, start) + text.slice(end + sectionClose.length);
  return calls.length === 0 ? undefined : { content: pythonStrip(around), calls };
}

function readCall(part: string, context: ParseContext): VllmCall[] {
  const end = part.indexOf(close);
  const content = part.slice(0, Math.max(end, 0));
  const typeEnd = content.indexOf(separator);
  if (typeEnd === -1 || pythonStrip(content.slice(0, typeEnd)) !== "function") return [];
  const invoke = content.slice(typeEnd + separator.length);
  const name = /<steptml:invoke name="([^"]+)">/.exec(invoke)?.[1];
  if (name === undefined) return [];
  const schemas = findSchemas(name, context);
  const values = new Map<string, PyValue>(
    findParameters(invoke, context).map(([key, raw]) => [
      key,
      cast(pythonStrip(raw), schemas === undefined ? undefined : typeOf(schemas, key)),
    ]),
  );
  return [{ name, argumentsText: writeJson(values) }];
}

/**
 * Finds the parameters of a call. Up to 0.24 a value must not contain `<`; since 0.33 it reaches to
 * the next closing tag.
 */
function findParameters(invoke: string, { engineVersion }: ParseContext): [string, string][] {
  if (engineVersion === "0.24") {
    return [...invoke.matchAll(oldParameterPattern)].map(([, key = "", raw = ""]) => [key, raw]);
  }
  return findByHead(invoke, parameterHead, parameterClose).map(({ head, inner }) => [
    head[1] ?? "",
    inner,
  ]);
}

/**
 * The schemas of a tool's parameters.
 *
 * @throws PythonError if a schema has another form than the engine expects. The engine does not
 *   catch it.
 */
function findSchemas(name: string, { tools }: ParseContext): PyDict | undefined {
  const tool = tools.find((candidate) => candidate.name === name);
  if (tool === undefined) return undefined;
  const parameters = toolParameters(tool) ?? null;
  if (!pythonTruthy(parameters)) return new Map();
  return requireDict(requireDict(parameters).get("properties") ?? new Map());
}

function typeOf(schemas: PyDict, key: string): PyValue | undefined {
  return requireDict(schemas.get(key) ?? new Map()).get("type");
}

function cast(text: string, type: PyValue | undefined): PyValue {
  const lower = pythonLower(text);
  switch (type) {
    case "integer":
      return catchPython(() => parsePythonInt(text), "ValueError") ?? text;
    case "number":
      return catchPython(() => parsePythonFloat(text), "ValueError") ?? text;
    case "boolean":
      return lower === "true" || lower === "false" ? lower === "true" : text;
    case "null":
      return lower === "null" ? null : text;
    default:
      return text;
  }
}

/**
 * vLLM's parser for Step-3. Both markers of the section are required. The text around the section
 * is stripped.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/step3_tool_parser.py`.
 */
export const vllmStep3 = vllmReading({ marker: sectionOpen, strips: true, extract });
