import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  pythonStrip,
  pythonTruthy,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { blocksOfPayload, readJson } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { pythonPattern } from "../../shared/text/python-pattern.ts";
import { malformed, invalidJson, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { argumentsOfEntry, parseBaseJson } from "../../sglang/base-json.ts";
import { betweenTags, divideSpan } from "../../shared/tags/between-tags.ts";
import { readDotsValue } from "./dots-value.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmReading, type VllmCall, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<dots_function_call>";
const close = "</dots_function_call>";
const invokeHead = pythonPattern(String.raw`<invoke\s+name\s*=`, "g");
const parameterHead = pythonPattern(String.raw`<parameter\s+name\s*=`, "g");

/** An element `<… name="…">…</…>`. */
interface NamedElement {
  readonly name: string;
  readonly body: string;
  readonly start: number;
}

/**
 * SGLang's detector for dots: reads elements, or else one JSON object in each block. JSON is not
 * repaired, as in an engine without the optional package `json_repair`.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/dots_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const calls: CompatCall[] = betweenTags(text, open, close).flatMap(
    (block) => catchPython(() => readCalls(pythonStrip(block), context), ...skipped) ?? [],
  );
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

/**
 * vLLM's parser for dots. If it finds no call, the text stays unchanged.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/dots_tool_parser.py`.
 */
function extractForVllm(text: string, context: ParseContext): VllmExtraction | undefined {
  const calls = betweenTags(text, open, close).flatMap((block) => {
    const content = pythonStrip(block);
    return catchPython(() => readEntries(content, context).flatMap(toCall), ...skipped) ?? [];
  });
  if (calls.length === 0) return undefined;
  return { content: pythonStrip(text.slice(0, text.indexOf(open))), calls };

  function toCall(entry: PyDict): VllmCall[] {
    const name = entry.get("name");
    if (typeof name !== "string" || !context.toolPositions.has(name)) return [];
    const written =
      entry.get("arguments") ?? (entry.has("arguments") ? null : entry.get("parameters"));
    const values = written !== undefined && pythonTruthy(written) ? written : new Map();
    if (!isPyDict(values)) return [];
    return [{ name, argumentsText: writeJson(values) }];
  }
}

/** The exceptions that lose one block only. */
const skipped = ["ValueError", "TypeError"] as const;

function readCalls(content: string, context: ParseContext): CompatCall[] {
  return readEntries(content, context).flatMap((entry) => parseBaseJson(entry, context));
}

/**
 * Reads the calls of a block as dictionaries.
 *
 * @throws PythonError if the JSON of a block cannot be read.
 */
function readEntries(content: string, context: ParseContext): PyDict[] {
  if (content.startsWith("<invoke")) {
    return findElements(content, invokeHead, "</invoke>").map(
      ({ name, body }): PyDict =>
        new Map<string, PyValue>([
          ["name", name],
          ["arguments", readArguments(name, body, context)],
        ]),
    );
  }
  const payload = parsePythonJson(content);
  return isPyDict(payload) ? [payload] : [];
}

/**
 * Finds the closed elements, in order. A name extends to the end of the tag. The quotes around the name are dropped.
 */
function findElements(text: string, head: RegExp, elementClose: string): NamedElement[] {
  const found: NamedElement[] = [];
  const pattern = new RegExp(head);
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const nameStart = pattern.lastIndex;
    const nameEnd = text.indexOf(">", nameStart);
    if (nameEnd === -1) break;
    if (nameEnd === nameStart) continue;
    const end = text.indexOf(elementClose, nameEnd + 1);
    if (end === -1) break;
    const name = unquote(pythonStrip(text.slice(nameStart, nameEnd)));
    found.push({ name, body: text.slice(nameEnd + 1, end), start: match.index });
    pattern.lastIndex = end + elementClose.length;
  }
  return found;
}

function unquote(name: string): string {
  const isQuoted = name.length > 1 && /^["']/.test(name) && name.endsWith(name[0] ?? "");
  return isQuoted ? name.slice(1, -1) : name;
}

function readArguments(name: string, body: string, context: ParseContext): PyDict {
  const values = new Map<string, PyValue>();
  for (const parameter of findElements(body, parameterHead, "</parameter>")) {
    const key = parameter.name;
    values.set(key, readDotsValue(pythonStrip(parameter.body), { name, key }, context));
  }
  return values;
}

function readBlocks(frame: Frame, context: ParseContext): Block[] {
  const { span, inner, innerStart } = frame;
  const content = pythonStrip(inner);
  if (!content.startsWith("<invoke")) return readJsonBlock(frame, content);
  const whole = frame.closed ? inner : `${inner}</parameter></invoke>`;
  const elements = findElements(whole, invokeHead, "</invoke>");
  if (elements.length === 0) return [{ span, problem: malformed("expected an invoke element") }];
  const spans = divideSpan(
    span,
    elements.map(({ start }) => innerStart + start),
  );
  return elements.map(({ name, body }, index) => {
    const argumentValue = catchPython(() => readArguments(name, body, context));
    const count = body.split("<parameter").length - 1;
    const isWhole = argumentValue !== undefined && count === argumentValue.size;
    return {
      span: spans[index] ?? span,
      name,
      ...(argumentValue !== undefined && { argumentValue }),
      ...(!isWhole && { problem: malformed("expected </parameter>") }),
    };
  });
}

function readJsonBlock({ span, inner, innerStart }: Frame, content: string): Block[] {
  const json = readJson(content);
  if (json.type === "problem") {
    return [{ span, problem: invalidJson(json.detail) }];
  }
  const payload = { span, value: json.value, json: inner, jsonStart: innerStart };
  const problem = isPyDict(json.value) ? undefined : malformed("expected one JSON object");
  return blocksOfPayload(payload, { readArguments: argumentsOfEntry }, problem);
}

/** dots: `<invoke name="…">` elements, or a JSON object, between tags. */
export const dots = defineParser({
  name: "dots",
  readings: {
    sglang: sglangReading({
      marker: open,
      strips: true,
      detect,
    }),
    vllm: vllmReading({
      marker: open,
      strips: true,
      extract: extractForVllm,
    }),
  },
  blocks: {
    open,
    close,
    begins: /^\s*(?:[<{]|$)/,
    read: readBlocks,
  },
});
