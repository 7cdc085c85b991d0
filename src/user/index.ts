/**
 * Simulated users.
 *
 * @module
 */
export { noSpending } from "./chat/add-spending.ts";
export type { ChatCallOptions } from "./chat/ai-sdk-chat-model.ts";
export type { ChatBudget, ChatPrices } from "./chat/chat-budget.ts";
export type { ChatModelConfig } from "./chat/chat-model-config.ts";
export type {
  ChatFinishReason,
  ChatMessage,
  ChatModel,
  ChatReply,
  ChatRequest,
} from "./chat/chat-model.ts";
export type { ChatRetryOptions } from "../engine/chat/chat-retry.ts";
export type {
  AiSdkLanguageModel,
  LanguageModelCall,
  LanguageModelResult,
  PromptMessage,
  ReportedUsage,
  TokenCount,
} from "./chat/language-model-call.ts";
export {
  createUser,
  type ChatModelChoice,
  type CreateUserOptions,
  type JudgeChoices,
  type ModelChoices,
  type UserSurroundings,
} from "./create-user.ts";
export type { QualityGateOptions } from "./quality-gate.ts";
export { STOP_MARKER } from "./stop-marker.ts";
export type { InstructedPrompt, UserPrompts } from "./user-prompts.ts";
export {
  isLeaving,
  textOfLine,
  type LeavingLine,
  type UserQuality,
  type UserSpending,
  type UserUsage,
} from "./user.ts";
