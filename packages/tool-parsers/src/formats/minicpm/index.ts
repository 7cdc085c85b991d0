import type { ModelFamily } from "../../model-family.ts";
import { minicpm5 } from "./minicpm5.ts";

/** The parsers of MiniCPM. */
export const minicpmFamily: ModelFamily = {
  toolCallParsers: [minicpm5],
};
