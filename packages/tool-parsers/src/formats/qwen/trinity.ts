import type { Block } from "../../attempt.ts";
import { defineParser } from "../../grammar.ts";
import { findQwen25Blocks, qwen25Detector } from "./qwen25.ts";
import { sglangReading } from "../../sglang/sglang-reading.ts";

const tagPattern = /<\/?think>/g;

function dropTags(text: string): string {
  return text.replaceAll(tagPattern, "");
}

/** Moves blocks of the text without thinking tags to their places in the text with them. */
function toOriginal(text: string, blocks: readonly Block[]): Block[] {
  const tags = [...text.matchAll(tagPattern)].map(({ 0: tag, index }) => ({ tag, index }));
  let tagIndex = 0;
  let dropped = 0;
  const place = (index: number, isEnd: boolean): number => {
    for (;;) {
      const tag = tags[tagIndex];
      if (tag === undefined) break;
      const at = tag.index - dropped;
      if (isEnd ? at >= index : at > index) break;
      dropped += tag.tag.length;
      tagIndex += 1;
    }
    return index + dropped;
  };
  return blocks.map((block) => {
    const start = place(block.span[0], false);
    return { ...block, span: [start, Math.max(start, place(block.span[1], true))] };
  });
}

/**
 * Trinity: Qwen 2.5's format, also inside the reasoning: the tags `<think>` and `</think>` are
 * dropped before anything is read.
 *
 * **Source:** sgl-project/sglang, `python/sglang/srt/function_call/trinity_detector.py`.
 */
export const trinity = defineParser({
  name: "trinity",
  markers: ["<tool_call>"],
  readings: {
    sglang: sglangReading({
      release: { stops: ["<tool_call>", "<think>", "</think>"], strips: true },
      hasToolCall: (text, context) => qwen25Detector.hasToolCall(dropTags(text), context),
      detect: (text, context) => qwen25Detector.detect(dropTags(text), context),
    }),
  },
  readsReasoning: true,
  findBlocks: (text, context) => toOriginal(text, findQwen25Blocks(dropTags(text), context)),
});
