import type { ModelFamily } from "../../model-family.ts";
import { muse, museGlimmer } from "./muse.ts";
import { museReasoning } from "./muse-reasoning.ts";

/** The parsers of Muse. */
export const museFamily: ModelFamily = {
  toolCallParsers: [muse, museGlimmer],
  reasoningParsers: [museReasoning],
};
