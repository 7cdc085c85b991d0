import { PythonError, pythonStrip } from "../../../../python-values/src/index.ts";
import type { ParseContext } from "../../parse-context.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { recoverVllmStatement } from "./lfm2-recovery.ts";
import { restoreReserved } from "./lfm2-rewrites.ts";
import { readVllmCallList, readVllmPythonCalls } from "../../vllm/python-calls.ts";
import { vllmReading, type VllmCall, type VllmExtraction } from "../../vllm/vllm-reading.ts";

const open = "<|tool_call_start|>";
const close = "<|tool_call_end|>";

function extract(text: string, context: ParseContext): VllmExtraction | undefined {
  const start = text.indexOf(open);
  if (start === -1) return undefined;
  const bodyStart = start + open.length;
  const end = text.indexOf(close, bodyStart);
  const source = pythonStrip(text.slice(bodyStart, end === -1 ? text.length : end));
  if (!source.startsWith("[") || !source.endsWith("]")) return undefined;
  const calls = catchPython(() => readCalls(source, context));
  // Since 0.33 an empty list is not a call.
  if (calls === undefined || (calls.length === 0 && context.engineVersion !== "0.24"))
    return undefined;
  // The model tends to repeat the call and its closing token. Only text after the last closing
  // token counts.
  const after = end === -1 ? "" : text.slice(text.lastIndexOf(close) + close.length);
  const parts = [text.slice(0, start), after].map((part) => pythonStrip(part));
  return { content: parts.filter((part) => part !== "").join("\n"), calls };
}

/** Reads the calls. Since 0.33 some common mistakes in the Python are repaired. */
function readCalls(source: string, context: ParseContext): VllmCall[] {
  if (context.engineVersion === "0.24") return readVllmPythonCalls(source, context);
  const found = recoverVllmStatement(source);
  if (found === undefined) throw new PythonError("SyntaxError", "the calls are not Python");
  return readVllmCallList(
    found.statement,
    context,
    found.isRenamed ? restoreReserved : (key) => key,
  );
}

/**
 * vLLM's parser for LFM2: reads the first block as Python. The end of the block may be missing.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/lfm2_tool_parser.py`.
 */
export const vllmLfm2 = vllmReading({ marker: open, strips: true, extract });
