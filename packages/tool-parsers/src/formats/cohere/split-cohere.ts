import { PythonError } from "../../../../python-values/src/index.ts";
import type { ReasoningOptions, ReasoningResult } from "../../reasoning/reasoning-parser.ts";
import { findReasoningEnd, readCohereTurn, type CohereFormat } from "./read-cohere-turn.ts";

/**
 * vLLM's reasoning of a Cohere turn. The normal text is the answer. If a tool-call parser reads the normal text
 * afterwards, the normal text is instead one from which that parser gets the same answer and the same calls.
 */
export function splitCohere(
  text: string,
  format: CohereFormat,
  { toolCallParserActive = false }: Pick<ReasoningOptions, "toolCallParserActive">,
): ReasoningResult {
  try {
    const turn = readCohereTurn(text, format);
    if (!toolCallParserActive) return { reasoning: turn.reasoning, normalText: turn.content };
    const rest = text.slice(findReasoningEnd(text, format));
    // Reasoning that ends in an empty block changes the text after it.
    const isSame = readCohereTurn(rest, format).content === turn.content;
    return { reasoning: turn.reasoning, normalText: isSame ? rest : text };
  } catch (error) {
    // Text that the package refuses is returned unchanged.
    if (error instanceof PythonError) return { reasoning: "", normalText: text };
    throw error;
  }
}
