import { defineReasoning } from "../../reasoning/define-reasoning.ts";
import type { ReasoningResult } from "../../reasoning/reasoning-parser.ts";

const open = "<|inner_prefix|>";
const close = "<|inner_suffix|>";
const toolOpen = "<|tools_prefix|>[";
const toolClose = "<|tools_suffix|>";

/**
 * Apertus: the reasoning consists of any number of blocks. Tool calls inside a block are normal text.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py` (`Apertus2509Detector`).
 */
export const apertusReasoning = defineReasoning({
  name: "apertus2509",
  markers: [open],
  forced: "never",
  split: (text) => {
    const reasoning: string[] = [];
    const normal: string[] = [];
    let position = 0;
    for (;;) {
      const start = text.indexOf(open, position);
      normal.push(text.slice(position, start === -1 ? text.length : start));
      if (start === -1) break;
      const end = text.indexOf(close, start + open.length);
      const inner = splitInner(text.slice(start + open.length, end === -1 ? text.length : end));
      reasoning.push(inner.reasoning);
      normal.push(inner.normalText);
      if (end === -1) break;
      position = end + close.length;
    }
    return { reasoning: reasoning.join(""), normalText: normal.join("") };
  },
});

function splitInner(text: string): ReasoningResult {
  const reasoning: string[] = [];
  const tools: string[] = [];
  let position = 0;
  for (;;) {
    const start = text.indexOf(toolOpen, position);
    reasoning.push(text.slice(position, start === -1 ? text.length : start));
    if (start === -1) break;
    const end = text.indexOf(toolClose, start);
    tools.push(text.slice(start, end === -1 ? text.length : end + toolClose.length));
    if (end === -1) break;
    position = end + toolClose.length;
  }
  return { reasoning: reasoning.join(""), normalText: tools.join("") };
}
