import type { PlainJson } from "../../../../python-values/src/index.ts";

/**
 * Beam's response template, which is built into SGLang.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/parser/beam.py`.
 */
export const beamTemplate: PlainJson = {
  defaults: { role: "assistant" },
  start_anchor_pattern: String.raw`<\|start\|>assistant`,
  fields: {
    thinking: {
      open: "<|channel|>analysis<|message|>",
      close: "<|end|><|start|>assistant",
      content: "text",
    },
    content: {
      open: "<|channel|>final<|message|>",
      close: ["<|return|>", "<|end|>", "<|call|>"],
      content: "text",
    },
    tool_calls: {
      open_pattern: String.raw` to=(?P<name>[^\s<]+)<\|channel\|>analysis <\|constrain\|>xml<\|message\|>`,
      close: ["<|end|><|start|>assistant", "<|call|>"],
      repeats: true,
      content: "xml-inline",
      content_args: {
        tag_pattern: String.raw`<rfl:parameter name="(?P<key>[^"]+)">\n(?P<value>.*?)\n(?:</rfl:parameter>|(?=<rfl:parameter name="))`,
        value_parser: { name: "text", args: { strip: false } },
      },
      transform: { type: "function", function: { name: "{name}", arguments: "{content}" } },
    },
  },
};
