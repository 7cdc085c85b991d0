import type { ModelFamily } from "../../model-family.ts";
import { k2Horizon } from "./k2-horizon.ts";
import { k2HorizonReasoning } from "./k2-horizon-reasoning.ts";

/** The parsers of K2 Horizon. */
export const k2HorizonFamily: ModelFamily = {
  toolCallParsers: [k2Horizon],
  reasoningParsers: [k2HorizonReasoning],
};
