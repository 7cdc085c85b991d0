import type { ModelFamily } from "../../model-family.ts";
import { xlam } from "./xlam.ts";

/** The parsers of xLAM. */
export const xlamFamily: ModelFamily = {
  toolCallParsers: [xlam],
};
