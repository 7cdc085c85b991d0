import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, think } from "../../reasoning/tag-reasoning.ts";
import { iquestQ1 } from "./iquest-q1.ts";

/** The parsers of IQuest. */
export const iquestFamily: ModelFamily = {
  toolCallParsers: [iquestQ1],
  reasoningParsers: [defineTagReasoning({ name: "iquest_q1", ...think, forced: "by-default" })],
};
