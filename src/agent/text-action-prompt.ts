import type { ToolDefinition } from "../message.ts";
import { stringifyPythonJson } from "../../packages/python-values/src/json/json-stringify.ts";

/** The parts of the system prompt that surround the policy text and the tools. */
export interface TextActionPrompt {
  /** Text between the policy text and the tools. */
  readonly beforeTools: string;
  /** Text after the tools, which specifies the form of an action. */
  readonly afterTools: string;
}

/** The prompts of the strategies that name their actions as text. */
export interface TextActionPrompts {
  /** Requests an action alone. */
  readonly act: TextActionPrompt;
  /** Requests a thought and an action. */
  readonly react: TextActionPrompt;
}

/** Returns the system message: policy text and tools, formatted as Python's `json.dumps()` does. */
export function renderTextActionPrompt(
  { beforeTools, afterTools }: TextActionPrompt,
  policyText: string,
  tools: readonly ToolDefinition[],
): string {
  const described = stringifyPythonJson(tools.map(({ openai }) => openai));
  return policyText + beforeTools + described + afterTools;
}
