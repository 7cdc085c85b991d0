import { parsePythonJson, pythonStrip } from "../../../../python-values/src/index.ts";
import { defineParser, type EngineResult, type Grammar } from "../../grammar.ts";
import type { ParseContext } from "../../parse-context.ts";
import { argumentsOfEntry, parseBaseJson } from "../../sglang/base-json.ts";
import { sglangReading, type SglangDetector } from "../../sglang/sglang-reading.ts";
import { hermesReading } from "./vllm-hermes.ts";
import { findOpened } from "../../shared/tags/between-tags.ts";

const open = "<tool_call>";
const close = "</tool_call>";

/**
 * SGLang's detector for the Hermes format: one malformed block loses all calls of the turn, and the
 * last block may lack its closing tag.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/hermes_detector.py`.
 */
const detector: SglangDetector = {
  marker: open,
  strips: true,
  catchesAll: true,
  detect,
};

function detect(text: string, context: ParseContext): EngineResult {
  const first = text.indexOf(open);
  if (first === -1) return { normalText: text, calls: [] };
  const calls = findOpened(text, open, close).flatMap(({ inner }) =>
    inner === "" ? [] : parseBaseJson(parsePythonJson(pythonStrip(inner)), context),
  );
  return { normalText: pythonStrip(text.slice(0, first)), calls };
}

const grammar: Grammar = {
  name: "hermes",
  aliases: ["qwen3_json"],
  readings: { sglang: sglangReading(detector), vllm: hermesReading(open, close) },
  json: { open, close, readArguments: argumentsOfEntry, closesAtEnd: true },
};

/** Hermes: `<tool_call>{"name": …, "arguments": …}</tool_call>`. */
export const hermes = defineParser(grammar);
