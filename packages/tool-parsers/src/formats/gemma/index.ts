import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning } from "../../reasoning/tag-reasoning.ts";
import { functiongemma } from "./functiongemma.ts";
import { gemma4 } from "./gemma4.ts";

/** The parsers of Gemma. */
export const gemmaFamily: ModelFamily = {
  toolCallParsers: [gemma4, functiongemma],
  reasoningParsers: [
    defineTagReasoning({
      name: "gemma4",
      open: "<|channel>thought\n",
      hint: "<|channel>",
      close: "<channel|>",
    }),
  ],
};
