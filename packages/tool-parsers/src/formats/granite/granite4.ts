import { parsePythonJson, PythonError } from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { asEntry } from "../../vllm/json-entry.ts";
import {
  asName,
  vllmReading,
  type VllmCall,
  type VllmExtraction,
} from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<tool_call>";
const close = "</tool_call>";

/**
 * Reads the calls.
 *
 * @throws PythonError if tags do not alternate or a call is malformed, which loses all calls.
 */
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
  const argumentsText = typeof value === "string" ? value : writeJson(value);
  return { name: asName(entry.get("name")), argumentsText };
}

/**
 * Granite 4: JSON objects between tags. One malformed object loses all calls. Arguments that are a
 * string are passed on unchanged.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/granite4_tool_parser.py`.
 */
export const granite4 = defineParser({
  name: "granite4",
  readings: {
    vllm: vllmReading({
      release: { stops: [open, close] },
      catchesAll: true,
      extract,
    }),
  },
  json: { open, close },
});
