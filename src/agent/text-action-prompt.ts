import type { ToolDefinition } from "../message.ts";
import { stringifyPythonJson } from "../python/json/json-stringify.ts";

/** The system prompt of an agent that names its actions as text, around policy text and tools. */
export interface TextActionPrompt {
  /** Between the environment's policy text and the tools. */
  readonly beforeTools: string;
  /** After the tools: how an action is to be written. */
  readonly afterTools: string;
}

/** One prompt for each strategy that names its actions as text. */
export interface TextActionPrompts {
  /** Asks for an action alone. */
  readonly act: TextActionPrompt;
  /** Asks for a thought and then an action. */
  readonly react: TextActionPrompt;
}

/** The system message: policy text and tools, these as Python's `json.dumps()` writes them. */
export function renderTextActionPrompt(
  { beforeTools, afterTools }: TextActionPrompt,
  policyText: string,
  tools: readonly ToolDefinition[],
): string {
  const described = stringifyPythonJson(tools.map(({ openai }) => openai));
  return policyText + beforeTools + described + afterTools;
}
