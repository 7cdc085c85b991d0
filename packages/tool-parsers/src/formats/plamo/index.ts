import type { ModelFamily } from "../../model-family.ts";
import { plamo3 } from "./plamo3.ts";

/** The parsers of PLaMo. */
export const plamoFamily: ModelFamily = {
  toolCallParsers: [plamo3],
};
