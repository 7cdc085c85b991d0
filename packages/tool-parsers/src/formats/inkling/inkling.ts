import {
  isPyDict,
  parsePythonJson,
  type PyDict,
  pythonStrip,
  pythonTruthy,
  type PyValue,
  stringifyPythonJson,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { inkling as tokens, inklingControlPattern } from "./inkling-tokens.ts";
import { readJson } from "../../shared/json/json-payload.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { malformed, invalidJson, type Frame } from "../../shared/tags/tag-blocks.ts";
import { hasJsonConstants } from "../../shared/json/json-constants.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { inklingReading } from "./vllm-inkling.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { holdsAll } from "../../tool-call-stream.ts";

/**
 * SGLang's detector for Inkling. One malformed call fails all calls. Then only the last JSON call
 * is tried. If that fails too, the text is returned without control tokens.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/inkling_detector.py`.
 */
function detect(text: string): EngineResult {
  const canonical = readCanonical(text);
  if (canonical !== undefined) return canonical;
  const recovered = recoverLast(text);
  return recovered === undefined
    ? { normalText: dropTokens(text), calls: [] }
    : { normalText: "", calls: [recovered] };
}

function readCanonical(text: string): EngineResult | undefined {
  const pattern = /<\|content_invoke_tool_(json|text)\|>/g;
  const calls: CompatCall[] = [];
  const normal: string[] = [];
  let position = 0;
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    normal.push(dropHeader(text.slice(position, match.index)));
    const end = text.indexOf(tokens.endMessage, pattern.lastIndex);
    if (end === -1) return undefined;
    const body = text.slice(pattern.lastIndex, end);
    const call =
      match[1] === "json" ? readStrict(body, calls.length) : readText(body, calls.length);
    if (call === undefined) return undefined;
    calls.push(call);
    position = end + tokens.endMessage.length;
    pattern.lastIndex = position;
  }
  return { normalText: dropTokens(normal.join("") + text.slice(position)), calls };
}

/** Drops the header of a message, if no control token interrupts it. */
function dropHeader(text: string): string {
  const start = text.lastIndexOf(tokens.messageModel);
  if (start === -1) return text;
  const header = text.slice(start + tokens.messageModel.length);
  return inklingControlPattern().test(header) ? text : text.slice(0, start);
}

function dropTokens(text: string): string {
  return text.replaceAll(inklingControlPattern(), "");
}

function readStrict(body: string, toolIndex: number): CompatCall | undefined {
  const json = pythonStrip(body);
  const payload = catchPython(() => parsePythonJson(json), "ValueError");
  if (!isPyDict(payload)) return undefined;
  return hasJsonConstants(json) ? undefined : toCall(payload, toolIndex);
}

function readText(body: string, toolIndex: number): CompatCall {
  const value = new Map<string, PyValue>([["text", dropTokens(body)]]);
  return { name: "", argumentsText: stringifyPythonJson(value), toolIndex };
}

function recoverLast(text: string): CompatCall | undefined {
  const start = text.lastIndexOf(tokens.invokeJson);
  if (start === -1) return undefined;
  const bodyStart = start + tokens.invokeJson.length;
  const end = text.indexOf(tokens.endMessage, bodyStart);
  const body = pythonStrip(dropTokens(text.slice(bodyStart, end === -1 ? text.length : end)));
  const payload = catchPython(() => parsePythonJson(body), "ValueError");
  if (!isPyDict(payload) || !pythonTruthy(payload.get("name") ?? null)) return undefined;
  return toCall(payload, 0);
}

function toCall(payload: PyDict, toolIndex: number): CompatCall | undefined {
  const name = payload.get("name");
  const value = payload.get("args");
  if (typeof name !== "string" || !isPyDict(value)) return undefined;
  return { name, argumentsText: writeJson(value), toolIndex };
}

function readBlock({ span, inner }: Frame): Block[] {
  const json = readJson(inner.trim());
  if (json.type === "problem") {
    return [{ span, problem: invalidJson(json.detail) }];
  }
  if (!isPyDict(json.value)) return [{ span, problem: malformed("the call is not a JSON object") }];
  const name = json.value.get("name");
  const argumentValue = json.value.get("args");
  const base = { span, ...(typeof name === "string" && { name }) };
  if (argumentValue === undefined) return [{ ...base, problem: malformed("the call has no args") }];
  return [{ ...base, argumentValue }];
}

/** Inkling: `{"name": …, "args": …}` between control tokens. */
export const inkling = defineParser({
  name: "inkling",
  markers: [tokens.invokeJson],
  readings: {
    sglang: sglangReading({
      release: holdsAll,
      hasToolCall: (text) => text.includes(tokens.invokeJson) || text.includes(tokens.invokeText),
      detect,
    }),
    vllm: inklingReading,
  },
  blocks: {
    open: tokens.invokeJson,
    close: tokens.endMessage,
    begins: /^\s*(?:\{|$)/,
    read: readBlock,
  },
});
