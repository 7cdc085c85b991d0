import type { ModelFamily } from "../../model-family.ts";
import { cohereCommand4 } from "./cohere-command4.ts";
import { cohereCommand3Reasoning, cohereCommand4Reasoning } from "./cohere-reasoning.ts";
import { cohereCommand3 } from "./vllm-cohere.ts";

/** The parsers of Cohere Command A. */
export const cohereFamily: ModelFamily = {
  toolCallParsers: [cohereCommand3, cohereCommand4],
  reasoningParsers: [cohereCommand3Reasoning, cohereCommand4Reasoning],
};
