import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, thinkOrCall } from "../../reasoning/tag-reasoning.ts";

/** The parsers of Nemotron 3, which writes calls as Qwen3-Coder does. */
export const nemotronFamily: ModelFamily = {
  reasoningParsers: [
    defineTagReasoning({ name: "nemotron_3", ...thinkOrCall, toolSince: "2026-08" }),
  ],
};
