import { splitCohere } from "./split-cohere.ts";
import { defineReasoning } from "../../reasoning/define-reasoning.ts";

const open = "<|START_THINKING|>";
const close = "<|END_THINKING|>";
const textOpen = "<|START_TEXT|>";
const textClose = "<|END_TEXT|>";
const actionOpen = "<|START_ACTION|>";

/**
 * Cohere Command A. Everything up to the end of thinking, the text block or the action block is reasoning. Of the text
 * after the reasoning, the normal text is the text block, or all of it if there is an action block.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py` (`CohereCommand4Detector`).
 */
export const cohereCommand4Reasoning = defineReasoning({
  name: "cohere_command4",
  markers: [open],
  closer: close,
  splitAsVllm: (text, context) => splitCohere(text, "command4", context),
  split: (text) => {
    const { end, restStart } = findEnd(text);
    const reasoning = text.slice(0, end);
    return {
      reasoning: reasoning.startsWith(open) ? reasoning.slice(open.length) : reasoning,
      normalText: unwrapText(text.slice(restStart)),
    };
  },
});

/** Cohere Command A (03-2025), which only vLLM has. */
export const cohereCommand3Reasoning = defineReasoning({
  name: "cohere_command3",
  markers: [open],
  closer: close,
  splitAsVllm: (text, context) => splitCohere(text, "command3", context),
});

function findEnd(text: string): { end: number; restStart: number } {
  const end = text.indexOf(close);
  if (end !== -1) return { end, restStart: end + close.length };
  const start = [text.indexOf(textOpen), text.indexOf(actionOpen)].find((index) => index !== -1);
  return { end: start ?? text.length, restStart: start ?? text.length };
}

function unwrapText(text: string): string {
  const start = text.indexOf(textOpen);
  if (start === -1) return text.includes(actionOpen) ? text : "";
  const end = text.indexOf(textClose, start);
  return text.slice(start + textOpen.length, end === -1 ? text.length : end);
}
