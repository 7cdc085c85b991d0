import type { ModelFamily } from "../../model-family.ts";
import { gptOss } from "./gpt-oss.ts";
import { gptOssReasoning } from "./gpt-oss-reasoning.ts";
import { openai } from "./openai.ts";

/** The parsers of gpt-oss, which writes the Harmony format. */
export const harmonyFamily: ModelFamily = {
  toolCallParsers: [gptOss, openai],
  reasoningParsers: [gptOssReasoning],
};
