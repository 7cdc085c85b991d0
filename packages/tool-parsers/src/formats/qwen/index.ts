import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, thinkOrCall } from "../../reasoning/tag-reasoning.ts";
import { qwen25 } from "./qwen25.ts";
import { trinity } from "./trinity.ts";

/** The parsers of Qwen 2.5, Qwen 3 and Trinity: JSON in tags. */
export const qwenFamily: ModelFamily = {
  toolCallParsers: [qwen25, trinity],
  reasoningParsers: [
    defineTagReasoning({ name: "qwen3", aliases: ["dots", "nanbeige"], ...thinkOrCall }),
    defineTagReasoning({ name: "qwen3-thinking", ...thinkOrCall, forced: "always" }),
  ],
};
