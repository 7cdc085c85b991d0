import { defineReasoning } from "../../reasoning/define-reasoning.ts";
import { splitByTags } from "../../reasoning/tag-splitter.ts";

const tags = { open: "<think>", close: "</think>", toolOpen: "<tool_call>" };

/**
 * Granite 4.2: tags. Line breaks between the closing tag and the answer are dropped.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/parser/reasoning_parser.py`
 * (`GraniteThinkingDetector`).
 */
export const graniteReasoning = defineReasoning({
  name: "granite_thinking_parser",
  markers: [tags.open],
  closer: tags.close,
  canSwap: false,
  split: (text, context) => {
    const { reasoning, normalText } = splitByTags(text, tags, context);
    const isClosed = text.includes(tags.close);
    const isSwapped = context.forceNonemptyContent && normalText === "";
    if (isSwapped) return { reasoning: "", normalText: reasoning };
    return { reasoning, normalText: isClosed ? normalText.replace(/^\n+/, "") : normalText };
  },
});
