import { parsePythonJson } from "../../../python/json/json-parse.ts";
import { stringifyPythonJson } from "../../../python/json/json-stringify.ts";
import { PythonError } from "../../../python/python-error.ts";
import { isPyDict } from "../../../python/value.ts";
import type { EngineReading } from "../../grammar.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { asName, vllmReading } from "../../vllm/vllm-reading.ts";
import type { VllmExtraction } from "../../vllm/vllm-reading.ts";

function extract(text: string, open: string, close: string): VllmExtraction {
  const pieces = splitOpenTags(text, open, close);
  const calls = pieces.map((piece) => {
    const entry = parsePythonJson(piece);
    const value = isPyDict(entry) ? entry.get("arguments") : undefined;
    if (!isPyDict(entry) || value === undefined) throw new PythonError("KeyError", "arguments");
    const argumentsText = stringifyPythonJson(value, { ensureAscii: false });
    return { name: asName(entry.get("name")), argumentsText };
  });
  return { content: text.slice(0, text.indexOf(open)), calls };
}

/** What follows each opening tag, up to the next closing tag or the end of the text. */
function splitOpenTags(text: string, open: string, close: string): string[] {
  const pieces: string[] = [];
  let start = text.indexOf(open);
  while (start !== -1) {
    const end = text.indexOf(close, start + open.length);
    pieces.push(text.slice(start + open.length, end === -1 ? text.length : end));
    start = end === -1 ? -1 : text.indexOf(open, end + close.length);
  }
  return pieces;
}

/**
 * vLLM's Hermes parser, between tags of a format: one malformed block loses all calls; both fields are needed.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/hermes_tool_parser.py`.
 */
export function hermesReading(open: string, close: string): EngineReading {
  return vllmReading({
    release: { stops: [open], strips: false },
    extract: (text) =>
      text.includes(open) ? catchPython(() => extract(text, open, close)) : undefined,
  });
}
