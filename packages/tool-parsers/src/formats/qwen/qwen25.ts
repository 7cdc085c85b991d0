import { parsePythonJson, pythonStrip } from "../../../../python-values/src/index.ts";
import type { Block, Diagnostic } from "../../attempt.ts";
import { isSince, type SglangVersion } from "../../engine-version.ts";
import { defineParser, type EngineResult } from "../../grammar.ts";
import { findJsonTagBlocks } from "../../shared/json/json-tag-blocks.ts";
import type { ParseContext } from "../../parse-context.ts";
import type { CompatCall } from "../../tool-call-parser.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { argumentsOfEntry, parseBaseJson } from "../../sglang/base-json.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { sglangReading, type SglangDetector } from "../../sglang/sglang-reading.ts";
import { sglangVersion } from "../../sglang/sglang-version.ts";

/**
 * The tags of a release. Up to 0.4.6 they have no line breaks, and a block that is not JSON raises.
 * Later tags include the line breaks, and such a block is skipped.
 */
function tagsOf(version: SglangVersion): { open: string; close: string; strict: boolean } {
  return isSince(version, "0.4.9")
    ? { open: "<tool_call>\n", close: "\n</tool_call>", strict: false }
    : { open: "<tool_call>", close: "</tool_call>", strict: true };
}

/**
 * SGLang's detector for Qwen 2.5 and Qwen 3.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/qwen25_detector.py` (and
 * `function_call_parser.py` of v0.4.5).
 */
export const qwen25Detector = {
  release: { stops: ["<tool_call>"], strips: true },
  hasToolCall: (text, context) => text.includes(tagsOf(sglangVersion(context)).open),
  detect,
} satisfies SglangDetector;

function detect(text: string, context: ParseContext): EngineResult {
  const { open, close, strict } = tagsOf(sglangVersion(context));
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const calls: CompatCall[] = [];
  for (const inner of betweenTags(text, open, close)) {
    const payload = strict
      ? parsePythonJson(inner)
      : catchPython(() => parsePythonJson(pythonStrip(inner)), "JSONDecodeError");
    if (payload === undefined) continue;
    for (const call of parseBaseJson(payload, context)) calls.push(call);
  }
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

/** Checks the white space around the JSON, which is part of the tags. */
function checkFrame(inner: string): Diagnostic | undefined {
  if (inner.startsWith("\n") && inner.endsWith("\n")) return undefined;
  return {
    status: "malformed-structure",
    detail: "expected a line break after <tool_call> and before </tool_call>",
  };
}

/** Finds the attempts of Qwen 2.5's format. */
export function findQwen25Blocks(text: string, context: ParseContext): Block[] {
  return findJsonTagBlocks(text, {
    open: "<tool_call>",
    close: "</tool_call>",
    readArguments: argumentsOfEntry,
    ...(isSince(sglangVersion(context), "0.4.9") && { checkFrame }),
  });
}

/** Qwen 2.5 and Qwen 3: `<tool_call>\n{"name": …, "arguments": …}\n</tool_call>`. */
export const qwen25 = defineParser({
  name: "qwen25",
  aliases: ["qwen"],
  markers: ["<tool_call>"],
  readings: { sglang: sglangReading(qwen25Detector) },
  findBlocks: findQwen25Blocks,
});
