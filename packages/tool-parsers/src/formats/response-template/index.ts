import type { ModelFamily } from "../../model-family.ts";
import { beam, responseTemplate } from "./template-parsers.ts";
import { beamReasoning, responseTemplateReasoning } from "./template-reasoning.ts";

/** The parsers of models that describe their turns in a `response_template`. */
export const responseTemplateFamily: ModelFamily = {
  toolCallParsers: [beam, responseTemplate],
  reasoningParsers: [beamReasoning, responseTemplateReasoning],
};
