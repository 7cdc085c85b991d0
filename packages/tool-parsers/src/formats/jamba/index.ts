import type { ModelFamily } from "../../model-family.ts";
import { jamba } from "./jamba.ts";

/** The parsers of Jamba. */
export const jambaFamily: ModelFamily = {
  toolCallParsers: [jamba],
};
