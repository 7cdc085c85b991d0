/**
 * Inference engines, and the interface of an engine of your own.
 *
 * @module
 */
export type { ChatAddress } from "./chat/chat-connection.ts";
export { createChatEngine, type ChatEngine } from "./chat/chat-engine.ts";
export type { ChatEngineOptions } from "./chat/chat-engine-options.ts";
export type {
  ChatToolCall,
  ChatTurn,
  ChatTurnRequest,
  ChatTurnUsage,
  OtherMembers,
  SentAssistantMessage,
  SentMessage,
  SentToolCall,
} from "./chat/chat-turn.ts";
export type {
  ColumnRequest,
  DiscardedSampling,
  EngineDescription,
  EngineLoad,
  Finish,
  GenerateOptions,
  GenerateRequest,
  Generation,
  GenerationPiece,
  LogprobConvention,
  SamplingConstraint,
  SamplingParameters,
  ScoreRequest,
  TopScoreRequest,
  TopScores,
  StreamedTokens,
  WorkerLoad,
} from "./engine.ts";
export type {
  EngineTimeouts,
  HttpEngineOptions,
  ResumePolicy,
} from "./http/http-engine-options.ts";
export type { HttpEngine, ScoringHttpEngine } from "./http/http-engine.ts";
export type { RetryPolicy } from "./http/http-retry.ts";
export { createLlamaCppEngine, type LlamaCppEngine } from "./llama-cpp/llama-cpp-engine.ts";
export type { LlamaCppEngineOptions } from "./llama-cpp/llama-cpp-options.ts";
export { createLlamaEngine, type LlamaEngineOptions } from "./llama/llama-engine.ts";
export type {
  NextOptions,
  EvaluatedId,
  EvaluatedNext,
  Llama,
  LlamaContext,
  LlamaContextOptions,
  LlamaGpu,
  LlamaLibrary,
  LlamaModel,
  LlamaSequence,
} from "./llama/llama-library.ts";
export type { LlamaEngine } from "./llama/sequence-engine.ts";
export {
  createReferenceEngine,
  type ReferenceEngineOptions,
  type ReloadableEngine,
  type ScoringEngine,
} from "./reference/index.ts";
export { requireColumns } from "./require-columns.ts";
export { createSglangEngine, type SglangEngine } from "./sglang/sglang-engine.ts";
export type { SglangEngineOptions } from "./sglang/sglang-options.ts";
export type { TokenIds } from "./token-id.ts";
export { createVllmEngine, type VllmEngine } from "./vllm/vllm-engine.ts";
export type { VllmApi, VllmEngineOptions } from "./vllm/vllm-options.ts";
