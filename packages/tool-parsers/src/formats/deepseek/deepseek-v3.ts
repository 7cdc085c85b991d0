import { parsePythonJson, PythonError, pythonStrip } from "../../../../python-values/src/index.ts";
import type { Block } from "../../attempt.ts";
import { defineParser, type EngineReading, type EngineResult } from "../../grammar.ts";
import { readJson } from "../../shared/json/json-payload.ts";
import type { ParseContext } from "../../parse-context.ts";
import { malformed, invalidJson, type Frame } from "../../shared/tags/tag-blocks.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import type { ToolCallParser } from "../../tool-call-parser.ts";
import { vllmDeepseekV3, vllmDeepseekV31 } from "./vllm-deepseek-v3.ts";
import { callsNamed } from "../../sglang/base-json.ts";

const sectionOpen = "<｜tool▁calls▁begin｜>";
const open = "<｜tool▁call▁begin｜>";
const close = "<｜tool▁call▁end｜>";
const separator = "<｜tool▁sep｜>";

/** A call's name and the text of its arguments. */
interface CallParts {
  readonly name: string;
  readonly json: string;
}

/**
 * Splits the inside of a call as a DeepSeek release writes it; `undefined` if it has another form.
 */
type SplitCall = (inner: string) => CallParts | undefined;

/** V3 and R1: `function<｜tool▁sep｜>name`, then the arguments in a fenced block. */
const splitFenced: SplitCall = (inner) => {
  const tail = "\n```";
  const fence = "\n```json\n";
  if (!inner.endsWith(tail)) return undefined;
  const body = inner.slice(0, -tail.length);
  const fenceStart = body.lastIndexOf(fence);
  if (fenceStart === -1) return undefined;
  const nameEnd = body.slice(0, fenceStart).lastIndexOf(separator);
  if (nameEnd === -1) return undefined;
  return {
    name: body.slice(nameEnd + separator.length, fenceStart),
    json: body.slice(fenceStart + fence.length),
  };
};

/** V3.1: `name<｜tool▁sep｜>arguments`. */
const splitPlain: SplitCall = (inner) => {
  const nameEnd = inner.lastIndexOf(separator);
  if (nameEnd === -1) return undefined;
  return { name: inner.slice(0, nameEnd), json: inner.slice(nameEnd + separator.length) };
};

function detect(text: string, context: ParseContext, split: SplitCall): EngineResult {
  const first = text.indexOf(sectionOpen);
  if (first === -1) return { normalText: text, calls: [] };
  const calls = betweenTags(text, open, close).flatMap((inner) => {
    const parts = split(inner);
    if (parts === undefined) throw new PythonError("AttributeError", "no match");
    return callsNamed(parts.name, parsePythonJson(parts.json), context);
  });
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

function readBlock({ span, inner }: Frame, split: SplitCall): Block[] {
  const parts = split(inner);
  if (parts === undefined)
    return [{ span, problem: malformed(`expected a name, ${separator} and arguments`) }];
  const json = readJson(parts.json);
  if (json.type === "problem") {
    return [{ span, name: parts.name, problem: invalidJson(json.detail) }];
  }
  return [{ span, name: parts.name, argumentValue: json.value }];
}

/** The differences between the formats. */
interface DeepseekFormat {
  readonly name: string;
  readonly begins: RegExp;
  readonly split: SplitCall;
  readonly vllm: EngineReading;
  readonly vllmName: string;
}

/** Defines the parser of one DeepSeek format. Any error in any call loses all calls of the turn. */
function defineDeepseek({ name, begins, split, vllm, vllmName }: DeepseekFormat): ToolCallParser {
  return defineParser({
    name,
    aliases: [vllmName],
    closers: /<｜tool▁calls▁end｜>/g,
    markers: [sectionOpen],
    readings: {
      sglang: sglangReading({
        marker: sectionOpen,
        strips: true,
        catchesAll: true,
        detect: (text, context) => detect(text, context, split),
      }),
      vllm,
    },
    blocks: { open, close, begins, read: (frame) => readBlock(frame, split) },
  });
}

/**
 * DeepSeek V3 and R1: `function<｜tool▁sep｜>name`, the arguments in a fenced block.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/deepseekv3_detector.py`.
 */
export const deepseekV3 = defineDeepseek({
  name: "deepseekv3",
  begins: /^\s*(?:function|$)/,
  split: splitFenced,
  vllm: vllmDeepseekV3,
  vllmName: "deepseek_v3",
});

/**
 * DeepSeek V3.1: `name<｜tool▁sep｜>arguments`.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/deepseekv31_detector.py`.
 */
export const deepseekV31 = defineDeepseek({
  name: "deepseekv31",
  begins: /^[^<\s]*(?:<|$)/,
  split: splitPlain,
  vllm: vllmDeepseekV31,
  vllmName: "deepseek_v31",
});
