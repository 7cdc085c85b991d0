import { isSince } from "../../engine-version.ts";
import { defineReasoning, type ReasoningContext } from "../../reasoning/define-reasoning.ts";
import { splitByTags, TagSplitter, type ReasoningTags } from "../../reasoning/tag-splitter.ts";

const names: ReadonlyMap<string, string> = new Map([
  ["high", "think"],
  ["medium", "think_fast"],
  ["low", "think_faster"],
]);

function tagsOf({ reasoningEffort = "high" }: ReasoningContext): ReasoningTags {
  const name = names.get(reasoningEffort) ?? "think_fast";
  return { open: `<ifm|${name}>`, close: `</ifm|${name}>`, toolOpen: "<ifm|tool_call" };
}

/**
 * K2 Horizon: tags whose name gives the reasoning effort. The prompt opens them.
 *
 * **Source:** sgl-project/sglang 0.5.23, `python/sglang/srt/parser/reasoning_parser.py`
 * (`K2V3Detector`).
 */
export const k2HorizonReasoning = defineReasoning({
  name: "k2_horizon",
  markers: ["<ifm|think>", "<ifm|think_fast>", "<ifm|think_faster>"],
  forced: "always",
  split: (text, context) => splitByTags(text, tagsOf(context), context),
  createSplitter: (context) =>
    isSince(context.version, "2026-05")
      ? new TagSplitter(tagsOf(context), context.isForced)
      : undefined,
});
