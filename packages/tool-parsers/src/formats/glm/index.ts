import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, thinkOrCall } from "../../reasoning/tag-reasoning.ts";
import { glm45, glm47, ling3 } from "./glm.ts";

/** The parsers of GLM and Ling 3. */
export const glmFamily: ModelFamily = {
  toolCallParsers: [glm45, glm47, ling3],
  reasoningParsers: [
    defineTagReasoning({ name: "glm45", ...thinkOrCall }),
    defineTagReasoning({ name: "ling3", ...thinkOrCall, swapsByDefault: true }),
  ],
};
