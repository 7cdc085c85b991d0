import { pythonRstrip } from "../../python/strip.ts";
import { indexesOf } from "../indexes-of.ts";
import { unicodePattern } from "../python-pattern.ts";
import type { VllmCall } from "./vllm-reading.ts";
import { vllmReading } from "./vllm-reading.ts";

const sectionOpen = "<|tool_calls_section_begin|>";
const open = "<|tool_call_begin|>";
const close = "<|tool_call_end|>";
const headPattern = unicodePattern(
  String.raw`\s*([^<]+:\p{Nd}+)\s*<\|tool_call_argument_begin\|>\s*`,
  "uy",
);

function findCalls(text: string): VllmCall[] {
  const starts = indexesOf(text, open);
  const calls: VllmCall[] = [];
  let position = 0;
  for (const [index, start] of starts.entries()) {
    if (start < position) continue;
    headPattern.lastIndex = start + open.length;
    const id = headPattern.exec(text)?.[1];
    if (id === undefined) continue;
    const argumentsStart = headPattern.lastIndex;
    const end = text.indexOf(close, argumentsStart);
    if (end === -1) break;
    // The arguments must not hold the beginning of another call.
    if (end > (starts[index + 1] ?? Infinity)) continue;
    const name = (id.split(":")[0] ?? "").split(".").at(-1) ?? "";
    calls.push({ name, argumentsText: pythonRstrip(text.slice(argumentsStart, end)) });
    position = end + close.length;
  }
  return calls;
}

/**
 * vLLM's parser for Kimi K2: the id must hold a name and a number; the arguments are passed on as they
 * are written.
 *
 * **Source:** vllm-project/vllm, `vllm/tool_parsers/kimi_k2_tool_parser.py`.
 */
export const vllmKimiK2 = vllmReading({
  release: { stops: [sectionOpen], strips: false },
  extract: (text) => {
    const first = text.indexOf(sectionOpen);
    return first === -1 ? undefined : { content: text.slice(0, first), calls: findCalls(text) };
  },
});
