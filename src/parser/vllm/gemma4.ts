import { pythonStrip } from "../../python/strip.ts";
import { parseVllmGemmaArguments } from "./gemma4-arguments.ts";
import { engineReading } from "./parser-engine.ts";

const channelOpen = "<|channel>";
const channelClose = "<channel|>";
const thought = "thought\n";

/**
 * vLLM's table for Gemma 4: any text before `<channel|>` counts as reasoning, and a call that is cut
 * off counts.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/gemma4.py`.
 */
export const vllmGemma4 = engineReading({
  literals: [channelOpen, channelClose, "<|tool_call>", "<tool_call|>", "call:", "{"],
  steps: {
    content: {
      [channelOpen]: { to: "reasoning" },
      [channelClose]: { to: "content" },
      "<|tool_call>": { to: "preamble", starts: true },
      "<tool_call|>": { to: "content" },
    },
    reasoning: {
      [channelOpen]: { to: "reasoning" },
      [channelClose]: { to: "content" },
      "<|tool_call>": { to: "preamble", starts: true },
    },
    preamble: {
      "<tool_call|>": { to: "content" },
      "call:": { to: "name" },
    },
    name: { "{": { to: "arguments" } },
    arguments: { "<tool_call|>": { to: "content" } },
  },
  // Whether the beginning is reasoning shows only at its end.
  holdsAll: true,
  prepare: openChannel,
  // The engine waits for the rest of the heading, and forgets the text for it.
  losesContent: (reasoning) => reasoning !== thought && thought.startsWith(reasoning),
  convertArguments(body) {
    const text = pythonStrip(body);
    return parseVllmGemmaArguments(text.endsWith("}") ? text.slice(0, -1) : text);
  },
});

/** Writes the opening of a channel that the prompt may already hold. */
function openChannel(text: string): string {
  const isInChannel =
    text.includes(channelClose) || text.startsWith(thought) || text === pythonStrip(thought);
  return isInChannel && !text.includes(channelOpen) ? channelOpen + text : text;
}
