import { stringifyPythonJson } from "../../python/json-stringify.ts";
import { pythonStrip } from "../../python/strip.ts";
import type { PyValue } from "../../python/value.ts";
import { isPythonSpace } from "../../python/white-space.ts";
import type { Block } from "../attempt.ts";
import type { EngineResult } from "../grammar.ts";
import { defineParser } from "../grammar.ts";
import { compileLinear, optional, repeat, repeatOnce, sequence } from "../linear-pattern.ts";
import type { Pattern } from "../linear-pattern.ts";
import type { ParseContext } from "../parse-context.ts";
import { catchPython } from "../python-catch.ts";
import type { Expression } from "../python-source/expression.ts";
import { parseFirstStatement } from "../python-source/expression.ts";
import { findPythonicBlocks } from "../pythonic-blocks.ts";
import { readPythonicArgument } from "../pythonic-argument.ts";
import type { CompatCall } from "../tool-call-parser.ts";
import { forwardsUnknown } from "./base-json.ts";
import { sglangReading } from "./sglang-reading.ts";

const any: Pattern = { type: "one", accepts: () => true };
const space: Pattern = { type: "one", accepts: isPythonSpace };
const letter: Pattern = {
  type: "one",
  accepts: (unit) => /[a-zA-Z]/.test(String.fromCharCode(unit)),
};
const word: Pattern = {
  type: "one",
  accepts: (codePoint) => /[\p{L}\p{N}_]/u.test(String.fromCodePoint(codePoint)),
};
const name = sequence(repeatOnce(letter), repeat(word));
const keyword = sequence(name, "=", repeat(any));
const keywordThenComma = sequence(keyword, ",", repeat(space));
const callThenComma = sequence(
  sequence(name, "(", repeat(keywordThenComma), optional(sequence(keyword, space)), ")"),
  sequence(",", repeat(space)),
);
const lastCall = sequence(
  sequence(name, "(", repeat(keywordThenComma), optional(sequence(keyword, repeat(space))), ")"),
  repeat(space),
);

/**
 * The engine's pattern for a list of calls. Python's own engine takes exponential time for it; this
 * matcher finds the same match in linear time.
 */
const listMatcher = compileLinear(sequence("[", repeat(callThenComma), repeatOnce(lastCall), "]"));

function prepare(text: string): string {
  return pythonStrip(text).replaceAll("<|python_start|>", "").replaceAll("<|python_end|>", "");
}

/**
 * SGLang's detector for Llama 4's Python calls. Everything between the first and the last bracket that
 * may belong to a list counts as one; an argument that is no constant, list or dictionary loses all
 * calls.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/pythonic_detector.py`.
 */
function detect(whole: string, context: ParseContext): EngineResult {
  const text = prepare(whole);
  const match = listMatcher.search(text, "[");
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
    const argumentsText = stringifyPythonJson(values, { ensureAscii: false });
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
  aliases: [],
  markers: ["<|python_start|>"],
  readings: {
    sglang: sglangReading({
      release: { stops: ["[", "<|python_"], strips: true },
      hasToolCall: (text) => listMatcher.search(prepare(text), "[") !== undefined,
      detect,
    }),
  },
  findBlocks,
});
