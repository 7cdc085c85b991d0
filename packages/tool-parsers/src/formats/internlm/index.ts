import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, thinkOrCall } from "../../reasoning/tag-reasoning.ts";
import { internlm } from "./internlm.ts";
import { interns1 } from "./interns1.ts";

/** The parsers of InternLM and Intern-S1. */
export const internlmFamily: ModelFamily = {
  toolCallParsers: [internlm, interns1],
  reasoningParsers: [defineTagReasoning({ name: "interns1", ...thinkOrCall })],
};
