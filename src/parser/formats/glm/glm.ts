import { PythonError } from "../../../python/python-error.ts";
import { pythonLstrip, pythonRstrip, pythonStrip } from "../../../python/text/strip.ts";
import type { PyValue } from "../../../python/value.ts";
import { isPyDict } from "../../../python/value.ts";
import type { Block } from "../../attempt.ts";
import type { EngineResult } from "../../grammar.ts";
import { defineParser } from "../../grammar.ts";
import { isSince } from "../../engine-version.ts";
import type { ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { schemaOfTool } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import type { PythonLiteral } from "../../shared/python/python-literal.ts";
import { inferSchemaType } from "../../shared/schema/schema-type.ts";
import type { Frame } from "../../shared/tags/tag-blocks.ts";
import { findTagBlocks, malformed } from "../../shared/tags/tag-blocks.ts";
import { findArgPairs } from "../../shared/tags/arg-pairs.ts";
import { forwardsUnknown, parseBaseJson } from "../../sglang/base-json.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { convertGlmValue } from "./glm-value.ts";
import { readGlm47Arguments } from "./glm47-value.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";
import { vllmGlm, vllmLing3 } from "./vllm-glm.ts";

const open = "<tool_call>";
const close = "</tool_call>";

/** A call's name, and the text that holds its arguments. */
interface CallParts {
  readonly name: string;
  readonly body: string;
  /** Whether the call is GLM 4.7's, whose arguments are read by other rules since 0.5.23. */
  readonly isGlm47: boolean;
}

/** GLM 4.5: the name ends with its line; a backslash and an n count as a line break. */
function splitAtLineBreak(inner: string): CallParts | undefined {
  const match = /\\n|\n/.exec(inner);
  if (match === null) return undefined;
  const body = inner.slice(match.index + match[0].length);
  return { name: inner.slice(0, match.index), body, isGlm47: false };
}

/** GLM 4.7: the name ends where the first argument begins. */
function splitAtArgument(inner: string): CallParts {
  const bodyStart = inner.indexOf("<arg_key>");
  if (bodyStart === -1) return { name: inner, body: "", isGlm47: true };
  return { name: inner.slice(0, bodyStart), body: inner.slice(bodyStart), isGlm47: true };
}

/**
 * The arguments of a call.
 *
 * @throws PythonError where the engine raises.
 */
function readArguments({ name, body, isGlm47 }: CallParts, context: ParseContext): PythonLiteral {
  const version = sglangVersion(context);
  if (isGlm47 && isSince(version, "0.5.23")) {
    const pairs = findArgPairs(body, { spelledBreaks: true });
    return readGlm47Arguments(pairs, schemaOfTool(context, name));
  }
  const values = new Map<string, PyValue>();
  let isJson = true;
  for (const [rawKey, text] of findArgPairs(body, { spelledBreaks: true })) {
    const key = pythonStrip(rawKey);
    const schema = parameterSchema(name, key, context);
    const literal = convertGlmValue(text, inferSchemaType(schema, version), version);
    isJson &&= literal.isJson;
    values.set(key, literal.value);
  }
  return { value: values, isJson };
}

function parameterSchema(name: string, key: string, context: ParseContext): PyValue | undefined {
  const position = context.toolPositions.get(name);
  const tool = position === undefined ? undefined : context.tools[position];
  const parameters = tool === undefined ? undefined : sglangParameters(tool, context);
  const properties = isPyDict(parameters) ? parameters.get("properties") : undefined;
  return isPyDict(properties) ? properties.get(key) : undefined;
}

function readCalls(
  text: string,
  context: ParseContext,
  split: (inner: string) => CallParts | undefined,
): EngineResult["calls"] {
  return betweenTags(text, open, close).flatMap((inner) => {
    const parts = split(inner);
    if (parts === undefined) return [];
    const { value, isJson } = readArguments(parts, context);
    const isReported = context.toolPositions.has(parts.name) || forwardsUnknown(context);
    if (!isJson && isReported) {
      throw new PythonError("TypeError", "an argument is not JSON serializable");
    }
    const entry = new Map<string, PyValue>([
      ["name", parts.name],
      ["parameters", value],
    ]);
    return parseBaseJson(entry, context);
  });
}

/** Ling 3: the name ends with its line, where the first argument begins, or with the call. */
function splitLing3(inner: string): CallParts {
  const argument = inner.indexOf("<arg_key>");
  const end = argument === -1 ? inner.length : argument;
  const start = end - pythonLstrip(inner.slice(0, end)).length;
  const trimmed = Math.max(start, pythonRstrip(inner.slice(0, end)).length);
  const lineBreak = inner.indexOf("\n", trimmed);
  const isSpelled = trimmed - 2 >= start && inner.startsWith("\\n", trimmed - 2);
  const nameEnd = isSpelled ? trimmed - 2 : lineBreak === -1 || lineBreak > end ? end : lineBreak;
  return { name: inner.slice(start, nameEnd), body: inner.slice(end), isGlm47: false };
}

function detectBefore(
  text: string,
  context: ParseContext,
  split: (inner: string) => CallParts | undefined,
): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const calls = readCalls(text, context, split);
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

function detectGlm47(text: string, context: ParseContext): EngineResult {
  if (!text.includes(open)) return { normalText: text, calls: [] };
  const calls = readCalls(text, context, splitAtArgument);
  return { normalText: pythonStrip(outsideTags(text)), calls };
}

/** The text outside closed blocks. */
function outsideTags(text: string): string {
  const parts: string[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(open, position);
    const end = start === -1 ? -1 : text.indexOf(close, start + open.length);
    if (end === -1) return parts.join("") + text.slice(position);
    parts.push(text.slice(position, start));
    position = end + close.length;
  }
}

function readBlock(frame: Frame, context: ParseContext, parts: CallParts | undefined): Block[] {
  const { span } = frame;
  if (parts === undefined)
    return [{ span, problem: malformed("expected a line break after the name") }];
  const { name, body } = parts;
  const literal = catchPython(() => readArguments(parts, context));
  if (literal?.isJson !== true) {
    return [{ span, name, problem: malformed("the arguments cannot be read") }];
  }
  const rest = body.replace(pairPattern, "").replaceAll("\\n", "").trim();
  const problem =
    rest === "" ? {} : { problem: malformed("expected pairs of <arg_key> and <arg_value>") };
  return [{ span, name, argumentValue: literal.value, ...problem }];
}

const pairPattern =
  /<arg_key>(?:(?!<\/?arg_(?:key|value)>)[^])*<\/arg_key>(?:\\n|\s)*<arg_value>(?:(?!<\/arg_value>)[^])*<\/arg_value>/g;

/**
 * GLM 4.5 and 4.6: the name on the line of the tag, then keys and values in tags.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/glm4_moe_detector.py`.
 */
export const glm45 = defineGlm({
  name: "glm45",
  aliases: ["glm"],
  vllm: vllmGlm,
  split: splitAtLineBreak,
  begins: /^[^\s<]*\s*(?:\\n|<arg_key>|$)/,
});

/**
 * GLM 4.7 and 5: as GLM 4.5, without line breaks.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/glm47_moe_detector.py`.
 */
export const glm47 = defineParser({
  name: "glm47",
  aliases: [],
  markers: [open],
  readings: {
    sglang: sglangReading({
      release: { stops: [open], strips: true },
      hasToolCall: (text) => text.includes(open),
      detect: (text, context) =>
        catchPython(() => detectGlm47(text, context)) ?? { normalText: text, calls: [] },
    }),
    vllm: vllmGlm,
  },
  findBlocks: (text, context) =>
    findTagBlocks(text, {
      open,
      close,
      begins: /^[^\s<]*\s*(?:<arg_key>|$)/,
      read: (frame) => readBlock(frame, context, splitAtArgument(frame.inner)),
    }),
});

/**
 * Ling 3: as GLM 4.5, but the line break after the name may be missing.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/ling3_detector.py`.
 */
export const ling3 = defineGlm({
  name: "ling3",
  aliases: [],
  vllm: vllmLing3,
  split: splitLing3,
  begins: /^\s*[^\s<]*\s*(?:\\n|<arg_key>|$)/,
});

/** A format whose name stands before its pairs of keys and values. */
function defineGlm({
  name,
  aliases,
  vllm,
  split,
  begins,
}: {
  readonly name: string;
  readonly aliases: readonly string[];
  readonly vllm: typeof vllmGlm;
  /** Parts the inside of a call into its name and its pairs. */
  readonly split: typeof splitAtLineBreak;
  /** What a tag that opens a call is followed by. */
  readonly begins: RegExp;
}) {
  return defineParser({
    name,
    aliases,
    markers: [open],
    readings: {
      sglang: sglangReading({
        release: { stops: [open], strips: true },
        hasToolCall: (text) => text.includes(open),
        detect: (text, context) =>
          catchPython(() => detectBefore(text, context, split)) ?? { normalText: text, calls: [] },
      }),
      vllm,
    },
    findBlocks: (text, context) =>
      findTagBlocks(text, {
        open,
        close,
        begins,
        read: (frame) => readBlock(frame, context, split(frame.inner)),
      }),
  });
}
