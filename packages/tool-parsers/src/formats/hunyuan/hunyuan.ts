import { type PyDict, pythonStrip } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { findHunyuanSchema, readHunyuanValue } from "./hunyuan-value.ts";
import { isSince } from "../../engine-version.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { findTagBlocks, malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { findArgPairs } from "../../shared/tags/arg-pairs.ts";
import { forwardsUnknown } from "../../sglang/base-json.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmHunyuan } from "./vllm-hunyuan.ts";
import { writeJson } from "../../shared/json/write-json.ts";

/** The tokens of the format as this model's vocabulary spells them. */
interface Tokens {
  readonly calls: string;
  readonly call: string;
  readonly separator: string;
  readonly key: string;
  readonly value: string;
}

/**
 * Resolves the tokens. Released models put a suffix on each token, such as
 * `<tool_call:opensource>`.
 */
function resolveTokens({ vocabulary }: Pick<ParseContext, "vocabulary">): Tokens {
  const spell = (name: string): string => {
    const pattern = new RegExp(`^<${name}(?::[^>]+)?>$`);
    return vocabulary.findLast((token) => pattern.test(token)) ?? `<${name}>`;
  };
  return {
    calls: spell("tool_calls"),
    call: spell("tool_call"),
    separator: spell("tool_sep"),
    key: spell("arg_key"),
    value: spell("arg_value"),
  };
}

function closing(token: string): string {
  return `</${token.slice(1)}`;
}

/**
 * SGLang's detector for Hunyuan.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/hunyuan_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const tokens = resolveTokens(context);
  const first = text.indexOf(tokens.calls);
  if (first === -1) return { normalText: text, calls: [] };
  const calls = splitCalls(text, context).flatMap(({ name, body }): CompatCall[] => {
    const toolIndex = context.toolPositions.get(name);
    if (toolIndex === undefined && !forwardsUnknown(context)) return [];
    const values = readArguments(body, name, context);
    const argumentsText = writeJson(values);
    return [{ name, argumentsText, toolIndex: toolIndex ?? -1 }];
  });
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

/** True if a key, or the end of the call, also ends the name. */
function endsName(context: ParseContext): boolean {
  return isSince(sglangVersion(context), "0.5.23");
}

function splitCalls(text: string, context: ParseContext): { name: string; body: string }[] {
  const tokens = resolveTokens(context);
  const close = closing(tokens.call);
  const otherEnds = endsName(context) ? [tokens.key, close] : [];
  const found: { name: string; body: string }[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(tokens.call, position);
    if (start === -1) return found;
    const nameStart = start + tokens.call.length;
    const ends = [tokens.separator, ...otherEnds].map((token) => text.indexOf(token, nameStart));
    const nameEnd = Math.min(...ends.filter((place) => place !== -1));
    if (nameEnd === Infinity) return found;
    const hasSeparator = nameEnd === ends[0];
    const bodyStart = nameEnd + (hasSeparator ? tokens.separator.length : 0);
    const end = text.indexOf(close, bodyStart);
    if (end === -1) return found;
    found.push({
      name: pythonStrip(text.slice(nameStart, nameEnd)),
      body: text.slice(bodyStart, end),
    });
    position = end + close.length;
  }
}

/**
 * Reads the arguments of a call.
 *
 * @throws PythonError if the schema has another form than the engine expects.
 */
function readArguments(body: string, name: string, context: ParseContext): PyDict {
  const { key: keyOpen, value: valueOpen } = resolveTokens(context);
  const format = {
    keyOpen,
    keyClose: closing(keyOpen),
    valueOpen,
    valueClose: closing(valueOpen),
  };
  return new Map(
    findArgPairs(body, format).map(([rawKey, text]) => {
      const key = pythonStrip(rawKey);
      return [
        key,
        readHunyuanValue(text, findHunyuanSchema(name, key, context), (value) => value),
      ] as const;
    }),
  );
}

function readBlock({ span, inner }: Frame, context: ParseContext): Block[] {
  const { separator, key } = resolveTokens(context);
  const isNew = context.dialect === "sglang" && endsName(context);
  const keyStart = isNew ? inner.indexOf(key) : -1;
  const separatorStart = inner.indexOf(separator);
  if (separatorStart === -1 && !isNew) {
    return [{ span, problem: malformed(`expected ${separator} after the name`) }];
  }
  const places = [separatorStart, keyStart].filter((place) => place !== -1);
  const nameEnd = Math.min(...places, inner.length);
  const name = pythonStrip(inner.slice(0, nameEnd));
  const body = inner.slice(nameEnd === separatorStart ? nameEnd + separator.length : nameEnd);
  const argumentValue = catchPython(() => readArguments(body, name, context));
  if (argumentValue === undefined) {
    return [{ span, name, problem: malformed("the arguments cannot be read") }];
  }
  const keyCount = body.split(key).length - 1;
  const problem =
    keyCount === argumentValue.size
      ? {}
      : { problem: malformed("expected pairs of keys and values") };
  return [{ span, name, argumentValue, ...problem }];
}

/** Hunyuan: `<tool_call>name<tool_sep>`, then keys and values in tags, inside `<tool_calls>`. */
export const hunyuan = defineParser({
  name: "hunyuan",
  aliases: ["hy_v3"],
  closers: /<\/tool_calls(?::[^>]*)?>/g,
  markers: ["<tool_calls>", "<tool_sep>"],
  readings: {
    sglang: sglangReading({
      release: { stops: ["<tool_calls"], strips: true },
      hasToolCall: (text, context) => text.includes(resolveTokens(context).calls),
      catchesAll: true,
      detect,
    }),
    vllm: vllmHunyuan,
  },
  findBlocks: (text, context) => {
    const { call } = resolveTokens(context);
    const begins = /^[^<]*(?:<tool_sep|$)/;
    const format = { open: call, close: closing(call), begins, read: readBlock };
    return findTagBlocks(text, format, context);
  },
});
