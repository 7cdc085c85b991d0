import { decodePythonJsonAt, isPyDict, PythonError } from "../../../../python-values/src/index.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { asName, vllmReading, type VllmCall } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";
import { holdsAll } from "../../tool-call-stream.ts";

/** Reads the calls. @throws PythonError for the first object that is not a call. */
function readCalls(text: string): VllmCall[] {
  const calls: VllmCall[] = [];
  let start = text.indexOf("{");
  while (start !== -1) {
    const { value: entry, end } = decodePythonJsonAt(text.slice(start), 0);
    const value = isPyDict(entry) ? (entry.get("arguments") ?? entry.get("parameters")) : undefined;
    const hasNull = isPyDict(entry) && entry.get("arguments") === null;
    if (!isPyDict(entry) || (value === undefined && !hasNull)) {
      throw new PythonError("KeyError", "parameters");
    }
    const argumentsText = writeJson(hasNull ? null : (value ?? null));
    calls.push({ name: asName(entry.get("name")), argumentsText });
    // A brace that follows immediately does not open an object.
    start = text.indexOf("{", start + end + 1);
  }
  return calls;
}

/**
 * vLLM's parser for Llama 3: every JSON object in the text must be a call, and the text around them
 * is dropped.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/llama_tool_parser.py`.
 */
export const vllmLlama3 = vllmReading({
  release: holdsAll,
  extract: (text) => {
    const calls = catchPython(() => readCalls(text)) ?? [];
    return calls.length === 0 ? undefined : { content: "", calls };
  },
});
