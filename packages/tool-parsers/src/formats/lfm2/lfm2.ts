import {
  parsePythonJson,
  PythonError,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { isSince } from "../../engine-version.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { blocksOfPayload, readJson } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parseFirstStatement, type Expression } from "../../shared/python-source/expression.ts";
import { readPythonicArgument, type ArgumentRules } from "../../shared/python/pythonic-argument.ts";
import { dottedName, readPythonicList } from "../../shared/python/pythonic-blocks.ts";
import { invalidJson, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { readLfm2Calls } from "./lfm2-calls.ts";
import { argumentsOfEntry, forwardsUnknown, parseBaseJson } from "../../sglang/base-json.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { vllmLfm2 } from "./vllm-lfm2.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<|tool_call_start|>";
const close = "<|tool_call_end|>";

type Call = Extract<Expression, { type: "call" }>;

/** The rules for arguments. Since August 2026 JSON's names of constants are allowed. */
function rulesOf(context: ParseContext): ArgumentRules {
  const names: [string, PyValue][] = [
    ["true", true],
    ["false", false],
    ["null", null],
  ];
  const isNew = isSince(sglangVersion(context), "2026-08");
  return { names: new Map(isNew ? names : []), allowsTuples: true, allowsNegative: true };
}

/**
 * SGLang's detector for LFM2: blocks of calls in Python, or of JSON.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/lfm2_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const calls = betweenTags(text, open, close).flatMap((inner) =>
    readCalls(pythonStrip(inner), context),
  );
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

function readCalls(content: string, context: ParseContext): CompatCall[] {
  if (looksLikeJson(content)) {
    const payload = catchPython(() => parsePythonJson(content), "JSONDecodeError");
    const calls = payload === undefined ? [] : parseBaseJson(payload, context);
    if (calls.length > 0) return calls;
  }
  const read = isSince(sglangVersion(context), "0.5.23") ? readLfm2Calls : readPythonCalls;
  return catchPython(() => read(content, context)) ?? [];
}

function looksLikeJson(content: string): boolean {
  return content.startsWith("[{") || content.startsWith("{");
}

function readPythonCalls(content: string, context: ParseContext): CompatCall[] {
  const node = parseFirstStatement(content);
  if (node === undefined) return [];
  const items = node.type === "list" ? node.items : [node];
  const calls = items.filter((item): item is Call => item.type === "call");
  if (calls.length !== items.length) return [];
  return calls.flatMap((call, toolIndex) => {
    const read = readPythonCall(call, context);
    return read === undefined ? [] : [{ ...read, toolIndex }];
  });
}

/** Reads a call; `undefined` if its tool is unknown or an argument is not a literal. */
function readPythonCall(
  { callee, keywords }: Call,
  context: ParseContext,
): Pick<CompatCall, "name" | "argumentsText"> | undefined {
  const allowsDots = isSince(sglangVersion(context), "2026-08");
  const name = allowsDots || callee.type === "name" ? dottedName(callee) : undefined;
  if (name === undefined) return undefined;
  if (!context.toolPositions.has(name) && !forwardsUnknown(context)) return undefined;
  const values = new Map<string, PyValue>();
  const foreign: PythonError[] = [];
  for (const { name: key, value } of keywords) {
    if (key === undefined) continue;
    try {
      values.set(key, readPythonicArgument(value, rulesOf(context)));
    } catch (error) {
      if (!(error instanceof PythonError)) throw error;
      if (error.exception === "ValueError") return undefined;
      foreign.push(error);
    }
  }
  // A value that JSON cannot represent is noticed last, and loses the complete block.
  if (foreign[0] !== undefined) throw foreign[0];
  return { name, argumentsText: writeJson(values) };
}

function readBlocks({ span, inner, innerStart }: Frame, context: ParseContext): Block[] {
  const content = pythonStrip(inner);
  if (!looksLikeJson(content)) {
    const place = { source: inner, sourceStart: innerStart };
    return readPythonicList(span, place, rulesOf(context));
  }
  const json = readJson(content);
  if (json.type === "problem") {
    return [{ span, problem: invalidJson(json.detail) }];
  }
  const payload = { span, value: json.value, json: inner, jsonStart: innerStart };
  return blocksOfPayload(payload, { readArguments: argumentsOfEntry });
}

/** LFM2: `[name(key=value), …]` or JSON between control tokens. */
export const lfm2 = defineParser({
  name: "lfm2",
  readings: {
    sglang: sglangReading({
      marker: open,
      strips: true,
      detect,
    }),
    vllm: vllmLfm2,
  },
  blocks: {
    open,
    close,
    begins: /^\s*(?:[[{]|$)/,
    read: readBlocks,
  },
});
