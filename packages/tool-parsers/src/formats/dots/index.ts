import type { ModelFamily } from "../../model-family.ts";
import { dots } from "./dots.ts";

/** The parsers of dots. */
export const dotsFamily: ModelFamily = {
  toolCallParsers: [dots],
};
