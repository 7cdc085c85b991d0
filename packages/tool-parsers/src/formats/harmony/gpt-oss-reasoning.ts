import { parseHarmony } from "./harmony.ts";
import { splitAsVllm } from "./openai.ts";
import { defineReasoning } from "../../reasoning/define-reasoning.ts";

/**
 * gpt-oss: the analysis channel is the reasoning; tool calls keep their markers for the tool-call
 * parser.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/parser/reasoning_parser.py`
 * (`GptOssDetector`).
 */
export const gptOssReasoning = defineReasoning({
  name: "gpt-oss",
  aliases: ["openai_gptoss"],
  splitAsVllm,
  markers: ["<|channel|>analysis<|message|>"],
  split: (text) => {
    const events = parseHarmony(text);
    return {
      reasoning: events.map(({ type, content }) => (type === "reasoning" ? content : "")).join(""),
      normalText: events
        .map(({ type, content, raw }) => (type === "reasoning" ? "" : (raw ?? content)))
        .join(""),
    };
  },
});
