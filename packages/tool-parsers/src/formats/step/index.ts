import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, think } from "../../reasoning/tag-reasoning.ts";
import { step3 } from "./step3.ts";
import { step3p5 } from "./step3p5.ts";

/** The parsers of Step 3. */
export const stepFamily: ModelFamily = {
  toolCallParsers: [step3, step3p5],
  reasoningParsers: [
    defineTagReasoning({ name: "step3", ...think, forced: "always" }),
    defineTagReasoning({ name: "step3p5", ...think, forced: "always" }),
  ],
};
