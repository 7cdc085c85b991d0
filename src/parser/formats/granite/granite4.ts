import { parsePythonJson } from "../../../python/json/json-parse.ts";
import { stringifyPythonJson } from "../../../python/json/json-stringify.ts";
import { PythonError } from "../../../python/python-error.ts";
import { defineParser } from "../../grammar.ts";
import { findJsonTagBlocks } from "../../shared/json/json-tag-blocks.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { asEntry } from "../../vllm/json-entry.ts";
import type { VllmCall, VllmExtraction } from "../../vllm/vllm-reading.ts";
import { asName, vllmReading } from "../../vllm/vllm-reading.ts";

const open = "<tool_call>";
const close = "</tool_call>";

/** @throws PythonError where tags do not alternate, or a call is none; then all are lost. */
function extract(text: string): VllmExtraction {
  const content: string[] = [];
  const calls: VllmCall[] = [];
  let isInside = false;
  for (const part of text.split(/(<\/?tool_call>)/)) {
    if (part === open || part === close) {
      if (isInside === (part === open)) throw new PythonError("ValueError", "tags must alternate");
      isInside = part === open;
    } else if (isInside) calls.push(readCall(part));
    else content.push(part);
  }
  if (isInside) throw new PythonError("ValueError", "a call is not closed");
  return { content: content.join(""), calls };
}

function readCall(json: string): VllmCall {
  const entry = asEntry(parsePythonJson(json));
  const value = entry.get("arguments");
  if (value === undefined || value === null) throw new PythonError("KeyError", "arguments");
  const argumentsText =
    typeof value === "string" ? value : stringifyPythonJson(value, { ensureAscii: false });
  return { name: asName(entry.get("name")), argumentsText };
}

/**
 * Granite 4: JSON objects between tags; one that is malformed loses all. Arguments that are a text are
 * passed on as they are.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/granite4_tool_parser.py`.
 */
export const granite4 = defineParser({
  name: "granite4",
  aliases: [],
  markers: [open],
  readings: {
    vllm: vllmReading({
      release: { stops: [open, close], strips: false },
      extract: (text) => catchPython(() => extract(text)),
    }),
  },
  findBlocks: (text) =>
    findJsonTagBlocks(text, {
      open,
      close,
      fields: { name: "name", readArguments: (entry) => entry.get("arguments") },
    }),
});
