import { parsePythonJson } from "../../../python/json/json-parse.ts";
import { pythonStrip } from "../../../python/text/strip.ts";
import type { EngineResult, Grammar } from "../../grammar.ts";
import { defineParser } from "../../grammar.ts";
import { findJsonTagBlocks } from "../../shared/json/json-tag-blocks.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { argumentsOfEntry, parseBaseJson } from "../../sglang/base-json.ts";
import type { SglangDetector } from "../../sglang/sglang-reading.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";
import { hermesReading } from "./vllm-hermes.ts";

const open = "<tool_call>";
const close = "</tool_call>";

/**
 * SGLang's detector for the Hermes format: one malformed block loses all calls of the turn, and a
 * last block may lack its closing tag.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/hermes_detector.py`.
 */
const detector: SglangDetector = {
  release: { stops: [open], strips: true },
  hasToolCall: (text) => text.includes(open),
  detect: (text, context) =>
    catchPython(() => detect(text, context)) ?? { normalText: text, calls: [] },
};

function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const calls = splitBlocks(text).flatMap((inner) =>
    inner === "" ? [] : parseBaseJson(parsePythonJson(pythonStrip(inner)), context),
  );
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

/** What follows each opening tag, up to the next closing tag or the end of the text. */
function splitBlocks(text: string): string[] {
  const blocks: string[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(open, position);
    if (start === -1) return blocks;
    const end = text.indexOf(close, start + open.length);
    blocks.push(text.slice(start + open.length, end === -1 ? text.length : end));
    if (end === -1) return blocks;
    position = end + close.length;
  }
}

const grammar: Grammar = {
  name: "hermes",
  aliases: ["qwen3_json"],
  markers: [open],
  readings: { sglang: sglangReading(detector), vllm: hermesReading(open, close) },
  findBlocks: (text) =>
    findJsonTagBlocks(text, {
      open,
      close,
      fields: { name: "name", readArguments: argumentsOfEntry },
      closesAtEnd: true,
    }),
};

/** Hermes: `<tool_call>{"name": …, "arguments": …}</tool_call>`. */
export const hermes = defineParser(grammar);
