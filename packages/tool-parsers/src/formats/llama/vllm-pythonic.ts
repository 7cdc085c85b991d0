import type { ParseContext } from "../../parse-context.ts";
import { matchesPythonicList } from "../../shared/python/pythonic-list.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { readVllmPythonCalls } from "../../vllm/python-calls.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { holdsAll } from "../../tool-call-stream.ts";

const start = "<|python_start|>";
const end = "<|python_end|>";

function extract(text: string, context: ParseContext): VllmExtraction | undefined {
  const calls = matchesPythonicList(text)
    ? catchPython(() => readVllmPythonCalls(text, context))
    : undefined;
  return calls === undefined ? undefined : { content: "", calls };
}

/**
 * vLLM's parser for calls in Python: the complete turn must be a list of calls.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/pythonic_tool_parser.py`.
 */
export const vllmPythonic = vllmReading({
  release: { stops: [], startStop: "[" },
  extract,
});

/**
 * vLLM's parser for Llama 4: calls in Python, optionally between tokens.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/llama4_pythonic_tool_parser.py`.
 */
export const vllmLlama4Pythonic = vllmReading({
  release: holdsAll,
  extract: (text, context) => {
    if (!text.startsWith(start)) return extract(text, context);
    const rest = text.slice(start.length).replaceAll(end, "");
    return extract(rest, context) ?? { content: rest, calls: [] };
  },
});
