import { isPyDict, parsePythonJson, pythonRstrip } from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { asName, vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const callPattern = /function call<\|role_sep\|>\n|<\|function_call\|>/;
const contentEnd = /<\|message_sep\|>|<\|function_call\|>/;

function extract(turn: string): VllmExtraction {
  const text = pythonRstrip(turn).endsWith("</s>") ? turn.slice(0, turn.lastIndexOf("</s>")) : turn;
  const call = callPattern.exec(text);
  const json = call === null ? "null" : text.slice(call.index + call[0].length);
  const entry = catchPython(() => parsePythonJson(json, { strict: false }), "JSONDecodeError");
  if (entry === undefined) return { content: text, calls: [] };
  const content = text.slice(0, contentEnd.exec(text)?.index ?? text.length);
  const value = isPyDict(entry) && entry.has("name") ? entry.get("arguments") : undefined;
  if (!isPyDict(entry) || !isPyDict(value)) return { content, calls: [] };
  const argumentsText = writeJson(value);
  return { content, calls: [{ name: asName(entry.get("name")), argumentsText }] };
}

/**
 * vLLM's parser for GigaChat 3: one call. Its JSON reaches to the end of the turn.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/gigachat3_tool_parser.py`.
 */
export const vllmGigachat3 = vllmReading({
  release: {
    stops: ["function call<|role_sep|>\n", "<|function_call|>", "<|message_sep|>", "</s>"],
  },
  extract,
});
