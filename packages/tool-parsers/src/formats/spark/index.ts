import type { ModelFamily } from "../../model-family.ts";
import { spark25 } from "./spark25.ts";

/** The parsers of Spark. */
export const sparkFamily: ModelFamily = {
  toolCallParsers: [spark25],
};
