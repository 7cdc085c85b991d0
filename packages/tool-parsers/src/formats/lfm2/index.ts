import type { ModelFamily } from "../../model-family.ts";
import { lfm2 } from "./lfm2.ts";

/** The parsers of LFM2. */
export const lfm2Family: ModelFamily = {
  toolCallParsers: [lfm2],
};
