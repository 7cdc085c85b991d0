import { pythonStrip } from "../../../../python-values/src/index.ts";
import type { EngineReading } from "../../grammar.ts";
import { indexesOf } from "../../shared/text/indexes-of.ts";
import { parseGemmaArguments } from "./gemma4-arguments.ts";
import { engineReading, type EngineState } from "../../vllm/parser-engine.ts";
import { byVersion } from "../../vllm/vllm-reading.ts";

const channelOpen = "<|channel>";
const channelClose = "<channel|>";
const thought = "thought\n";

/** The differences between the releases. */
interface GemmaFormat {
  /** The literals before a tool's name. */
  readonly openers: readonly string[];
  /** The literals after a tool's name. */
  readonly braces: readonly string[];
  /** True if `<tool_call|>` ends a call that has no arguments. */
  readonly endsNames: boolean;
  readonly dropCloser: (body: string) => string;
}

function gemmaReading({ openers, braces, endsNames, dropCloser }: GemmaFormat): EngineReading {
  const end = { "<tool_call|>": { to: "content" } } as const;
  const steps = (literals: readonly string[], to: EngineState) =>
    Object.fromEntries(literals.map((literal) => [literal, { to }]));
  return engineReading({
    literals: [channelOpen, channelClose, "<|tool_call>", "<tool_call|>", ...openers, ...braces],
    steps: {
      content: {
        [channelOpen]: { to: "reasoning" },
        [channelClose]: { to: "content" },
        "<|tool_call>": { to: "preamble", starts: true },
        ...end,
      },
      reasoning: {
        [channelOpen]: { to: "reasoning" },
        [channelClose]: { to: "content" },
        "<|tool_call>": { to: "preamble", starts: true },
      },
      preamble: { ...end, ...steps(openers, "name") },
      name: { ...steps(braces, "arguments"), ...(endsNames && end) },
      arguments: end,
    },
    // Only the end of the turn shows whether its beginning is reasoning.
    holdsAll: true,
    prepare: openChannel,
    // The engine waits for the rest of the heading and then drops the text.
    losesContent: (reasoning) => reasoning !== thought && thought.startsWith(reasoning),
    convertArguments: (body) => parseGemmaArguments(dropCloser(pythonStrip(body)), "vllm"),
  });
}

/**
 * vLLM's table for Gemma 4: text before `<channel|>` is reasoning, and a call that is cut off
 * counts. Since 0.33 `call` may be missing, and round brackets may replace braces.
 *
 * **Source:** vllm-project/vllm, `vllm/parser/gemma4.py`.
 */
export const vllmGemma4 = byVersion(
  gemmaReading({
    openers: ["call:"],
    braces: ["{"],
    endsNames: false,
    dropCloser: (text) => (text.endsWith("}") ? text.slice(0, -1) : text),
  }),
  gemmaReading({
    openers: ["call:", ":"],
    braces: ["{", "("],
    endsNames: true,
    dropCloser: (text) => {
      const isClosed = text.endsWith("}") || (text.endsWith(")") && closesTooOften(text));
      return isClosed ? text.slice(0, -1) : text;
    },
  }),
);

function closesTooOften(text: string): boolean {
  return indexesOf(text, ")").length > indexesOf(text, "(").length;
}

/** Adds the opening of a channel that the prompt may already contain. */
function openChannel(text: string): string {
  const isInChannel =
    text.includes(channelClose) || text.startsWith(thought) || text === pythonStrip(thought);
  return isInChannel && !text.includes(channelOpen) ? channelOpen + text : text;
}
