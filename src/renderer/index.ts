/**
 * Chat templates: messages to token ids.
 *
 * @module
 */
export type { TemplateLimits } from "../../packages/chat-template/src/evaluate/budget.ts";
export type { CapabilityCard, HistoryEdit } from "./capability/capability-card.ts";
export type { HistoryPolicy } from "./capability/classify-template.ts";
export { createRenderer, type RendererOptions } from "./create-renderer.ts";
export type { GuardPolicy } from "./guard/control-token-guard.ts";
export type { Conversation, EnvironmentDelta, RenderedIds, TurnToContinue } from "./renderer.ts";
