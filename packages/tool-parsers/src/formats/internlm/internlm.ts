import { parsePythonJson, PythonError } from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { asEntry } from "../../vllm/json-entry.ts";
import { asName, vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<|action_start|><|plugin|>";
const close = "<|action_end|>";

/**
 * Reads the call.
 *
 * @throws PythonError for a second marker and for a malformed call, which vLLM does not catch.
 */
function extract(text: string): VllmExtraction | undefined {
  const [content = "", action, more] = text.split(open);
  if (action === undefined) return undefined;
  if (more !== undefined) throw new PythonError("ValueError", "too many values to unpack");
  const inner = action.split(close)[0] ?? "";
  const entry = asEntry(parsePythonJson(inner.slice(inner.indexOf("{"))));
  const field = entry.has("parameters") ? "parameters" : "arguments";
  const value = entry.has(field) ? (entry.get(field) ?? null) : new Map();
  const argumentsText = writeJson(value);
  return { content, calls: [{ name: asName(entry.get("name")), argumentsText }] };
}

/**
 * InternLM 2: one JSON object after the plugin marker.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/internlm2_tool_parser.py`.
 */
export const internlm = defineParser({
  name: "internlm",
  readings: { vllm: vllmReading({ marker: open, extract }) },
  json: {
    open,
    close,
    readArguments: (entry) => entry.get("parameters") ?? entry.get("arguments") ?? new Map(),
    closesAtEnd: true,
  },
});
