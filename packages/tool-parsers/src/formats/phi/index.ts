import type { ModelFamily } from "../../model-family.ts";
import { phi4MiniJson } from "./phi4-mini.ts";

/** The parsers of Phi. */
export const phiFamily: ModelFamily = {
  toolCallParsers: [phi4MiniJson],
};
