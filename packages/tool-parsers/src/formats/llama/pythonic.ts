import { pythonStrip, type PyValue } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { parseFirstStatement, type Expression } from "../../shared/python-source/expression.ts";
import { findPythonicBlocks } from "../../shared/python/pythonic-blocks.ts";
import { findPythonicList } from "../../shared/python/pythonic-list.ts";
import { readPythonicArgument } from "../../shared/python/pythonic-argument.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { forwardsUnknown } from "../../sglang/base-json.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmLlama4Pythonic, vllmPythonic } from "./vllm-pythonic.ts";
import { writeJson } from "../../shared/json/write-json.ts";

function prepare(text: string): string {
  return pythonStrip(text).replaceAll("<|python_start|>", "").replaceAll("<|python_end|>", "");
}

/**
 * SGLang's detector for Llama 4's Python calls. Everything between the first and the last bracket
 * of a possible list is one list. An argument that is not a constant, list or dictionary loses all
 * calls.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/pythonic_detector.py`.
 */
function detect(turn: string, context: ParseContext): EngineResult {
  const text = prepare(turn);
  const match = findPythonicList(text);
  if (match === undefined) return { normalText: text, calls: [] };
  const [start, end] = match;
  const calls = catchPython(() => readCalls(text.slice(start, end), context)) ?? [];
  return { normalText: text.slice(0, start) + text.slice(end), calls };
}

function readCalls(source: string, context: ParseContext): CompatCall[] {
  const list = parseFirstStatement(source);
  if (list?.type !== "list" || !list.items.every(isCall)) return [];
  return list.items.filter(isCall).flatMap((call, toolIndex): CompatCall[] => {
    const { callee } = call;
    if (callee.type !== "name") return [];
    if (!context.toolPositions.has(callee.id) && !forwardsUnknown(context)) return [];
    const values = new Map<string, PyValue>();
    for (const { name: key = "null", value } of call.keywords) {
      values.set(key, readPythonicArgument(value, strictArguments));
    }
    const argumentsText = writeJson(values);
    return [{ name: callee.id, argumentsText, toolIndex }];
  });
}

const strictArguments = { names: new Map(), allowsTuples: false, allowsNegative: false } as const;

function isCall(node: Expression): node is Extract<Expression, { type: "call" }> {
  return node.type === "call";
}

function findBlocks(text: string): Block[] {
  return findPythonicBlocks(text, strictArguments);
}

/** Llama 4: `[name(key=value), …]`. */
export const pythonic = defineParser({
  name: "pythonic",
  markers: ["<|python_start|>"],
  closers: /<\|python_end\|>/g,
  readings: {
    sglang: sglangReading({
      release: { stops: ["[", "<|python_"], strips: true },
      hasToolCall: (text) => findPythonicList(prepare(text)) !== undefined,
      detect,
    }),
    vllm: vllmPythonic,
  },
  findBlocks,
});

/** Llama 4 under vLLM's name. `<|python_start|>` may precede the list. */
export const llama4Pythonic = defineParser({
  name: "llama4_pythonic",
  markers: ["<|python_start|>"],
  closers: /<\|python_end\|>/g,
  readings: { vllm: vllmLlama4Pythonic },
  findBlocks,
});
