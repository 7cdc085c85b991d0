import { isPyList, parsePythonJson } from "../../../../python-values/src/index.ts";
import { defineParser } from "../../grammar.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { callOfEntry } from "../../vllm/json-entry.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";

const open = "functools";

/** Reads the calls. The list reaches to the first closing bracket, even one inside the list. */
function extract(text: string): VllmExtraction | undefined {
  const start = text.indexOf(`${open}[`);
  const end = start === -1 ? -1 : text.indexOf("]", start);
  if (end === -1) return undefined;
  const json = text.slice(start + open.length, end + 1);
  const list = catchPython(() => parsePythonJson(json), "JSONDecodeError");
  const entries = isPyList(list) ? list : [];
  return {
    content: "",
    calls: entries.map((entry) => callOfEntry(entry, "arguments", "parameters")),
  };
}

/**
 * Phi-4 mini: `functools` and a JSON list of calls. The text around it is lost.
 *
 * **Source:** vllm-project/vllm 0.33, `vllm/tool_parsers/phi4mini_tool_parser.py`.
 */
export const phi4MiniJson = defineParser({
  name: "phi4_mini_json",
  readings: {
    vllm: vllmReading({
      release: holdsAll,
      catchesAll: true,
      extract,
    }),
  },
  json: {
    open,
    readArguments: (entry) => entry.get("arguments") ?? entry.get("parameters"),
  },
});
