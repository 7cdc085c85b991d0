import type { ModelFamily } from "../../model-family.ts";
import { granite } from "./granite.ts";
import { granite20bFc } from "./granite-20b-fc.ts";
import { graniteReasoning } from "./granite-reasoning.ts";
import { granite4 } from "./granite4.ts";

/** The parsers of Granite. */
export const graniteFamily: ModelFamily = {
  toolCallParsers: [granite, granite20bFc, granite4],
  reasoningParsers: [graniteReasoning],
};
