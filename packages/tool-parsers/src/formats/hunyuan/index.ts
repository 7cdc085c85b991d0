import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, think } from "../../reasoning/tag-reasoning.ts";
import { hunyuan } from "./hunyuan.ts";
import { hunyuanA13b } from "./hunyuan-a13b.ts";
import { hyV4 } from "./hy-v4.ts";

/** The parsers of Hunyuan. */
export const hunyuanFamily: ModelFamily = {
  toolCallParsers: [hunyuan, hunyuanA13b, hyV4],
  reasoningParsers: [defineTagReasoning({ name: "hunyuan", ...think, toolOpen: "<tool_calls>" })],
};
