/**
 * Agent strategies: how a policy's text becomes actions, and how results are shown to the policy.
 *
 * @module
 */
export type { Intent, Observed, Opening, Reading } from "./agent.ts";
export {
  refusableNotes,
  repairableStatuses,
  type CallPolicy,
  type RefusableNote,
  type RepairableStatus,
} from "./call-policy.ts";
export { createChatToolAgent, type ChatToolOptions } from "./chat-tool-agent.ts";
export {
  createFewShotAgent,
  type FewShotDraw,
  type FewShotExamples,
  type FewShotOptions,
} from "./few-shot-agent.ts";
export { ownTextActionPrompts } from "./own-text-action-prompts.ts";
export { readFewShotExamples } from "./read-few-shot-examples.ts";
export { readTextActionPrompts } from "./read-text-action-prompts.ts";
export type { SplitReasoning } from "./split-reasoning.ts";
export { createTextActionAgent, type TextActionOptions } from "./text-action-agent.ts";
export type { TextActionPrompt, TextActionPrompts } from "./text-action-prompt.ts";
export type { ToolIntentOptions } from "./tool-intents.ts";
export { createToolCallingAgent, type ToolCallingOptions } from "./tool-calling-agent.ts";
export { toolUsePolicies, type ToolUsePolicy } from "./tool-use-policy.ts";
export type { AttemptPlace, ReasoningMarkup, TextSpan, TurnForm } from "./turn-form.ts";
export type { TurnFormats } from "./turn-parts.ts";
