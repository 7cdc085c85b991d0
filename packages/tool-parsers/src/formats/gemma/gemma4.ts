import type { Block } from "../../attempt.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { PythonError } from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { malformed, type Frame } from "../../shared/tags/tag-blocks.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { findGemmaBraceEnd, parseGemmaArguments } from "./gemma4-arguments.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { vllmGemma4 } from "./vllm-gemma4.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<|tool_call>";
const close = "<tool_call|>";
const head = "call:";

/**
 * SGLang's detector for Gemma 4. The first closing token ends a call, even inside a string.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/gemma4_detector.py`.
 */
function detect(text: string, context: ParseContext): EngineResult {
  const matches = betweenTags(text, open, close).flatMap((inner) => {
    const call = splitCall(inner);
    return call === undefined ? [] : [call];
  });
  if (matches.length === 0) return { normalText: text, calls: [] };
  const calls = matches.map(({ name, body }): CompatCall => {
    const argumentsText = writeJson(parseGemmaArguments(body, "sglang"));
    return { name, argumentsText, toolIndex: context.toolPositions.get(name) ?? -1 };
  });
  return { normalText: text.slice(0, text.indexOf(open)), calls };
}

function splitCall(inner: string): { name: string; body: string; closed: boolean } | undefined {
  const brace = inner.startsWith(head) ? inner.indexOf("{") : -1;
  if (brace === -1) return undefined;
  const content = inner.slice(brace + 1);
  const end = findGemmaBraceEnd(content);
  const body = end === undefined ? content : content.slice(0, end);
  return { name: inner.slice(head.length, brace), body, closed: end !== undefined };
}

function readBlock({ span, inner }: Frame): Block[] {
  const call = splitCall(inner);
  if (call === undefined) return [{ span, problem: malformed("expected call:name{…}") }];
  const { name, body, closed } = call;
  const argumentValue = catchPython(() => parseGemmaArguments(body, "sglang"));
  if (argumentValue === undefined) {
    return [{ span, name, problem: malformed("the arguments cannot be read") }];
  }
  const problem = closed ? {} : { problem: malformed("expected } at the end of the arguments") };
  return [{ span, name, argumentValue, ...problem }];
}

/** Gemma 4: `call:name{key:value,…}` between control tokens. */
export const gemma4 = defineParser({
  name: "gemma4",
  readings: {
    sglang: sglangReading({
      marker: open,
      detect: (text, context) => {
        try {
          return detect(text, context);
        } catch (error) {
          // The engine catches every exception except the recursion limit.
          const isCaught = error instanceof PythonError && error.exception !== "RecursionError";
          if (!isCaught) throw error;
          return { normalText: text, calls: [] };
        }
      },
    }),
    vllm: vllmGemma4,
  },
  blocks: { open, close, begins: /^\s*(?:call:|$)/, read: readBlock },
});
