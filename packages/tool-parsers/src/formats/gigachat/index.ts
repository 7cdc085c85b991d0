import type { ModelFamily } from "../../model-family.ts";
import { gigachat3 } from "./gigachat3.ts";
import { gigachat35 } from "./gigachat35.ts";

/** The parsers of GigaChat. Version 3.5 shares DeepSeek R1's reasoning. */
export const gigachatFamily: ModelFamily = {
  toolCallParsers: [gigachat3, gigachat35],
};
