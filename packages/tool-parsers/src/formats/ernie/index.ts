import type { ModelFamily } from "../../model-family.ts";
import { ernie45 } from "./ernie45.ts";

/** The parsers of Ernie. */
export const ernieFamily: ModelFamily = {
  toolCallParsers: [ernie45],
};
