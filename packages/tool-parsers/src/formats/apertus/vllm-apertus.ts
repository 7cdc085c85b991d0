import {
  decodePythonJsonAt,
  isPyDict,
  isPyList,
  pythonLstrip,
  pythonStrip,
  pythonTruthy,
  type PyValue,
} from "../../../../python-values/src/index.ts";
import { parsePartialJson } from "../../shared/json/partial-json.ts";
import { catchPython } from "../../shared/python/python-catch.ts";
import { pythonTextEnd } from "../../shared/text/python-pattern.ts";
import { vllmReading, type VllmExtraction } from "../../vllm/vllm-reading.ts";
import { writeJson } from "../../shared/json/write-json.ts";

const open = "<|tools_prefix|>";
const close = "<|tools_suffix|>";

function extract(text: string): VllmExtraction | undefined {
  const start = text.indexOf(open);
  if (start === -1) return undefined;
  const bodyStart = start + open.length;
  const suffix = text.indexOf(close, bodyStart);
  const bodyEnd = suffix === -1 ? Math.max(bodyStart, pythonTextEnd(text)) : suffix;
  const { value, trailing } = readPayload(text.slice(bodyStart, bodyEnd));
  const single = pythonTruthy(value) ? [value] : [];
  const calls = (isPyList(value) ? value : single).flatMap((entry) => {
    const [first] = isPyDict(entry) ? entry : [];
    if (first === undefined) return [];
    const [name, argumentValue] = first;
    return [{ name, argumentsText: writeJson(argumentValue) }];
  });
  const after = text.slice(suffix === -1 ? bodyEnd : bodyEnd + close.length);
  const parts = [text.slice(0, start), trailing, after.replaceAll(close, "")].map((part) =>
    pythonStrip(part),
  );
  return { content: parts.filter((part) => part !== "").join("\n"), calls };
}

/** Reads the JSON at the start of the block, completed if it is cut off, and the text after it. */
function readPayload(body: string): { value: PyValue; trailing: string } {
  const text = pythonLstrip(body);
  const whole = catchPython(() => decodePythonJsonAt(text, 0), "JSONDecodeError");
  if (whole !== undefined) return { value: whole.value, trailing: text.slice(whole.end) };
  return { value: parsePartialJson(body, { isForgiving: false }), trailing: "" };
}

/**
 * vLLM's parser for Apertus: reads the first block and completes JSON that is cut off.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/apertus_tool_parser.py`.
 */
export const vllmApertus2509 = vllmReading({
  marker: open,
  strips: true,
  catchesAll: true,
  extract,
});
