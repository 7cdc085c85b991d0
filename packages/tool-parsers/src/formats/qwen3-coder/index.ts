import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, thinkOrCall } from "../../reasoning/tag-reasoning.ts";
import { mimo } from "./mimo.ts";
import { qwen3Coder } from "./qwen3-coder.ts";
import { seedOss } from "./seed-oss.ts";
import { step5 } from "./step5.ts";

/** The parsers of Qwen3-Coder and the models that write its tags. */
export const qwen3CoderFamily: ModelFamily = {
  toolCallParsers: [qwen3Coder, mimo, seedOss, step5],
  reasoningParsers: [defineTagReasoning({ name: "mimo", ...thinkOrCall })],
};
