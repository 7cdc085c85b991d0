import type { ModelFamily } from "../../model-family.ts";
import { olmo3 } from "./olmo3.ts";

/** The parsers of Olmo. */
export const olmoFamily: ModelFamily = {
  toolCallParsers: [olmo3],
};
