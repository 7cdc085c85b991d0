import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning } from "../../reasoning/tag-reasoning.ts";
import { mistral } from "./mistral.ts";

/** The parsers of Mistral. */
export const mistralFamily: ModelFamily = {
  toolCallParsers: [mistral],
  reasoningParsers: [defineTagReasoning({ name: "mistral", open: "[THINK]", close: "[/THINK]" })],
};
