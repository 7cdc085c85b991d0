import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, thinkOrCall } from "../../reasoning/tag-reasoning.ts";
import { minimaxM2 } from "./minimax-m2.ts";
import { minimaxM3 } from "./minimax-m3.ts";
import { minimaxAppendThink, minimaxM3Reasoning } from "./minimax-reasoning.ts";

/** The parsers of MiniMax. */
export const minimaxFamily: ModelFamily = {
  toolCallParsers: [minimaxM2, minimaxM3],
  reasoningParsers: [
    defineTagReasoning({ name: "minimax", ...thinkOrCall, forced: "always" }),
    minimaxAppendThink,
    minimaxM3Reasoning,
  ],
};
