import type { ModelFamily } from "../../model-family.ts";
import { llama3 } from "./llama3.ts";
import { pythonic, llama4Pythonic } from "./pythonic.ts";

/** The parsers of Llama 3 and 4. */
export const llamaFamily: ModelFamily = {
  toolCallParsers: [llama3, pythonic, llama4Pythonic],
};
