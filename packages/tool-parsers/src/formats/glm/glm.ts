import { defineParser, type EngineReading } from "../../grammar.ts";
import type { CompatCall, ToolCallParser } from "../../tool-call-parser.ts";
import {
  isPyDict,
  pythonLstrip,
  pythonRstrip,
  pythonStrip,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { isSince } from "../../engine-version.ts";
import { schemaOfTool, type ParseContext } from "../../parse-context.ts";
import { sglangParameters } from "../../sglang/sglang-parameters.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { requireJson, type PythonLiteral } from "../../shared/python/python-literal.ts";
import { inferSchemaType } from "../../shared/schema/schema-type.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import { findArgPairs } from "../../shared/tags/arg-pairs.ts";
import { forwardsUnknown, callsNamed } from "../../sglang/base-json.ts";
import { betweenTags, outsideTags } from "../../shared/tags/between-tags.ts";
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
  /** True for GLM 4.7. Its arguments are read by other rules since 0.5.23. */
  readonly isGlm47: boolean;
}

/** Splits the inside of a call; `undefined` if it has no name. */
type SplitCall = (inner: string) => CallParts | undefined;

/** GLM 4.5: the name ends with its line. A backslash followed by `n` counts as a line break too. */
function splitAtLineBreak(inner: string): CallParts | undefined {
  const match = /\\n|\n/.exec(inner);
  if (match === null) return undefined;
  const body = inner.slice(match.index + match[0].length);
  return { name: inner.slice(0, match.index), body, isGlm47: false };
}

/** GLM 4.7: the name ends at the first argument. */
function splitAtArgument(inner: string): CallParts {
  const bodyStart = inner.indexOf("<arg_key>");
  if (bodyStart === -1) return { name: inner, body: "", isGlm47: true };
  return { name: inner.slice(0, bodyStart), body: inner.slice(bodyStart), isGlm47: true };
}

/** Reads the arguments of a call. @throws PythonError if the engine raises. */
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

function readCalls(text: string, context: ParseContext, split: SplitCall): CompatCall[] {
  return betweenTags(text, open, close).flatMap((inner) => {
    const parts = split(inner);
    if (parts === undefined) return [];
    const literal = readArguments(parts, context);
    const isReported = context.toolPositions.has(parts.name) || forwardsUnknown(context);
    const value = isReported ? requireJson(literal) : literal.value;
    return callsNamed(parts.name, value, context);
  });
}

/** Ling 3: the name ends with its line, with the call, or at the first argument. */
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

function readBlock({ span, inner }: Frame, context: ParseContext, split: SplitCall): Block[] {
  const parts = split(inner);
  if (parts === undefined) {
    return [{ span, problem: malformed("expected a line break after the name") }];
  }
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

/** The differences between the GLM formats. */
interface GlmFormat {
  readonly name: string;
  readonly aliases?: readonly string[];
  readonly vllm: EngineReading;
  /** Splits the inside of a call into its name and its pairs of keys and values. */
  readonly split: SplitCall;
  /** Matches the text after an opening tag that opens a call. */
  readonly begins: RegExp;
  /** True if the text after the calls is kept as well. Default false. */
  readonly keepsTail?: boolean;
}

function defineGlm({
  split,
  begins,
  keepsTail = false,
  vllm,
  ...names
}: GlmFormat): ToolCallParser {
  return defineParser({
    ...names,
    readings: {
      sglang: sglangReading({
        marker: open,
        strips: true,
        catchesAll: true,
        detect: (text, context) => {
          const around = keepsTail
            ? outsideTags(text, open, close)
            : text.slice(0, text.indexOf(open));
          if (!text.includes(open)) return { normalText: text, calls: [] };
          return { normalText: pythonStrip(around), calls: readCalls(text, context, split) };
        },
      }),
      vllm,
    },
    blocks: { open, close, begins, read: (frame, context) => readBlock(frame, context, split) },
  });
}

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
export const glm47 = defineGlm({
  name: "glm47",
  vllm: vllmGlm,
  split: splitAtArgument,
  begins: /^[^\s<]*\s*(?:<arg_key>|$)/,
  keepsTail: true,
});

/**
 * Ling 3: as GLM 4.5, but the line break after the name may be missing.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/function_call/ling3_detector.py`.
 */
export const ling3 = defineGlm({
  name: "ling3",
  vllm: vllmLing3,
  split: splitLing3,
  begins: /^\s*[^\s<]*\s*(?:\\n|<arg_key>|$)/,
});
