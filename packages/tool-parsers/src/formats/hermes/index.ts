import type { ModelFamily } from "../../model-family.ts";
import { hermes } from "./hermes.ts";
import { longcat } from "./longcat.ts";

/** The parsers of Hermes and LongCat: JSON in tags. */
export const hermesFamily: ModelFamily = {
  toolCallParsers: [hermes, longcat],
};
