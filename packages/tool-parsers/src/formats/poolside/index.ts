import type { ModelFamily } from "../../model-family.ts";
import { defineTagReasoning, thinkOrCall } from "../../reasoning/tag-reasoning.ts";
import { poolsideV1 } from "./poolside-v1.ts";

/** The parsers of Poolside's Laguna. */
export const poolsideFamily: ModelFamily = {
  toolCallParsers: [poolsideV1],
  reasoningParsers: [defineTagReasoning({ name: "poolside_v1", ...thinkOrCall })],
};
