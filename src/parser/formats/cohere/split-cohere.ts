import { PythonError } from "../../../python/python-error.ts";
import type { ReasoningOptions, ReasoningResult } from "../../reasoning/reasoning-parser.ts";
import type { CohereFormat } from "./read-cohere-turn.ts";
import { findReasoningEnd, readCohereTurn } from "./read-cohere-turn.ts";

/**
 * vLLM's reasoning of a Cohere turn. The normal text is the answer; where a tool-call parser reads it
 * afterwards, it is what that one gives the same answer and the same calls for.
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
    // Reasoning that ends in an empty block changes what stands behind it.
    const isSame = readCohereTurn(rest, format).content === turn.content;
    return { reasoning: turn.reasoning, normalText: isSame ? rest : text };
  } catch (error) {
    // Text that the package does not take is handed on as it is.
    if (error instanceof PythonError) return { reasoning: "", normalText: text };
    throw error;
  }
}
