import { pythonStrip } from "../../python/strip.ts";
import type { PyDict, PyValue } from "../../python/value.ts";
import { unicodePattern } from "../python-pattern.ts";
import { engineReading } from "./parser-engine.ts";

/**
 * vLLM's table for Qwen3-Coder, which MiMo shares: `<function=` calls without `<tool_call>`, too, and
 * a call that is cut off counts.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/qwen3.py`.
 */
export const vllmQwen3Coder = engineReading({
  literals: [
    "<think>",
    "</think>",
    "<tool_call>",
    "</tool_call>",
    "<function=",
    "</function>",
    "<parameter=",
    "</parameter>",
    ">",
  ],
  steps: {
    content: {
      "</think>": { to: "content" },
      "<tool_call>": { to: "preamble", starts: true },
      "<function=": { to: "name", starts: true },
    },
    preamble: {
      "</tool_call>": { to: "content" },
      "<function=": { to: "name" },
    },
    name: {
      ">": { to: "arguments" },
      "</function>": { to: "between" },
    },
    arguments: { "</function>": { to: "between" } },
    between: {
      "</tool_call>": { to: "content" },
      "<tool_call>": { to: "preamble", starts: true },
      "<function=": { to: "name", starts: true },
    },
  },
  convertArguments: readParameters,
});

const headStart = unicodePattern(String.raw`<\s*parameter\s*=\s*`, "g");
/** What ends a value: its closing tag, or the next parameter. */
const valueEnd = unicodePattern(String.raw`<\s*(?:/\s*parameter\s*>|parameter\s*=)`, "g");

function readParameters(body: string): PyDict {
  const values = new Map<string, PyValue>();
  let position = 0;
  for (;;) {
    headStart.lastIndex = position;
    if (!headStart.test(body)) return values;
    const nameStart = headStart.lastIndex;
    const nameEnd = body.indexOf(">", nameStart);
    if (nameEnd === -1) return values;
    valueEnd.lastIndex = nameEnd + 1;
    const end = valueEnd.exec(body);
    if (end === null) return values;
    values.set(body.slice(nameStart, nameEnd), pythonStrip(body.slice(nameEnd + 1, end.index)));
    position = end[0].endsWith(">") ? valueEnd.lastIndex : end.index;
  }
}
