import { parsePythonJson } from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { betweenTags } from "../../shared/tags/between-tags.ts";
import { callOfEntry, iterateCalls } from "../../vllm/json-entry.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";

const open = "<tool_calls>";
const close = "</tool_calls>";

function extract(text: string): VllmExtraction | undefined {
  const [json] = betweenTags(text, open, close);
  if (json === undefined) return undefined;
  const calls = iterateCalls(parsePythonJson(json)).map((entry) => callOfEntry(entry, "arguments"));
  const content = text.slice(0, text.indexOf(open));
  return { content: content === " " ? "" : content, calls };
}

/**
 * Jamba: a JSON list of calls between tags. Only the first list counts.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/jamba_tool_parser.py`.
 */
export const jamba = defineParser({
  name: "jamba",
  readings: {
    vllm: vllmReading({
      marker: open,
      strips: true,
      catchesAll: true,
      extract,
    }),
  },
  json: { open, close },
});
