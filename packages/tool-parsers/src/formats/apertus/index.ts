import type { ModelFamily } from "../../model-family.ts";
import { apertus2509 } from "./apertus.ts";
import { apertusReasoning } from "./apertus-reasoning.ts";

/** The parsers of Apertus. */
export const apertusFamily: ModelFamily = {
  toolCallParsers: [apertus2509],
  reasoningParsers: [apertusReasoning],
};
