import {
  parsePythonJson,
  type PyDict,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser } from "../../grammar.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<start_function_call>";
const close = "<end_function_call>";
const escape = "<escape>";
const head = /<start_function_call>call:([\p{L}\p{N}_]+)\{/gu;
const lastWord = /[\p{L}\p{N}_]+$/u;

interface WrittenCall {
  readonly name: string;
  readonly body: string;
}

/** Finds the closed calls, and the first unclosed one, which takes the rest of the text. */
function findCalls(text: string): WrittenCall[] {
  const found: WrittenCall[] = [];
  const pattern = new RegExp(head);
  for (let match = pattern.exec(text); match !== null; match = pattern.exec(text)) {
    const end = text.indexOf(`}${close}`, pattern.lastIndex);
    const name = match[1] ?? "";
    if (end === -1) return [...found, { name, body: text.slice(pattern.lastIndex) }];
    found.push({ name, body: text.slice(pattern.lastIndex, end) });
    pattern.lastIndex = end + 1 + close.length;
  }
  return found;
}

/** Reads keys and values: a name, a colon, and a value between escape tokens. */
function readArguments(body: string): PyDict {
  const values = new Map<string, PyValue>();
  const parts = body.split(escape);
  let index = 0;
  while (index + 2 < parts.length) {
    const before = parts[index] ?? "";
    const key = before.endsWith(":") ? lastWord.exec(before.slice(0, -1))?.[0] : undefined;
    if (key === undefined) {
      index += 1;
      continue;
    }
    const text = parts[index + 1] ?? "";
    const json = catchPython(() => parsePythonJson(text), "JSONDecodeError");
    values.set(key, json === undefined ? text : json);
    index += 2;
  }
  return values;
}

function extract(text: string): VllmExtraction | undefined {
  const calls = findCalls(text).map(({ name, body }) => ({
    name,
    argumentsText: writeJson(readArguments(body)),
  }));
  if (calls.length === 0) return undefined;
  return { content: pythonStrip(text.slice(0, text.indexOf(open))), calls };
}

function readBlock({ span, inner }: Frame): Block[] {
  const [call] = findCalls(`${open}${inner}${close}`);
  const argumentValue = catchPython(() => readArguments(call?.body ?? ""));
  if (call === undefined || argumentValue === undefined) {
    return [{ span, problem: malformed("expected call:name{…}") }];
  }
  return [{ span, name: call.name, argumentValue }];
}

/**
 * FunctionGemma: `call:name{key:<escape>value<escape>}` between tokens.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/functiongemma_tool_parser.py`.
 */
export const functiongemma = defineParser({
  name: "functiongemma",
  readings: {
    vllm: vllmReading({
      marker: open,
      strips: true,
      catchesAll: true,
      extract,
    }),
  },
  blocks: { open, close, begins: /^call:|^$/, read: readBlock },
});
