import type { ModelFamily } from "../../model-family.ts";
import { inkling } from "./inkling.ts";
import { inklingReasoning } from "./inkling-reasoning.ts";

/** The parsers of Inkling. */
export const inklingFamily: ModelFamily = {
  toolCallParsers: [inkling],
  reasoningParsers: [inklingReasoning],
};
