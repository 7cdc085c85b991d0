export { characterIds, createCharacterRenderer, characterStopId } from "./character-renderer.ts";
export type { Deferred } from "./deferred.ts";
export { createDeferred } from "./deferred.ts";
export type { EchoPolicyOptions } from "./policies/echo-policy.ts";
export { createEchoPolicy } from "./policies/echo-policy.ts";
export type {
  ConformanceTestApi,
  ConformanceTurn,
  EngineCase,
  EngineHarness,
  EngineScenario,
  EngineUnderTest,
} from "./engine-conformance.ts";
export { registerEngineConformance } from "./engine-conformance.ts";
export type { ScoringHarness } from "./engine-scoring-conformance.ts";
export { registerScoringConformance } from "./engine-scoring-conformance.ts";
export type { MalformedToken, ReportedTurn } from "./malformed-turn.ts";
export { malformTurn } from "./malformed-turn.ts";
export type { ManualClock, ManualClockOptions } from "./manual-clock.ts";
export { createManualClock } from "./manual-clock.ts";
export type {
  GenerationScript,
  ScriptedEngine,
  ScriptedEngineOptions,
  ScriptedGeneration,
} from "./scripted-engine.ts";
export { createScriptedEngine } from "./scripted-engine.ts";
export type { ScriptedPolicy, ScriptedTurn } from "./policies/scripted-policy.ts";
export { createScriptedPolicy } from "./policies/scripted-policy.ts";
export type { SeededPolicyOptions } from "./policies/seeded-policy.ts";
export { createSeededPolicy } from "./policies/seeded-policy.ts";
export type { FaultRequest, ServerFault, ServerFaults } from "./protocol-servers/server-fault.ts";
export type {
  PolicyRequest,
  PolicyScoreRequest,
  PolicyToken,
  PolicyTokens,
  ServerPolicy,
} from "./policies/server-policy.ts";
export type {
  RecordedRequest,
  ServerStats,
  SglangTestControls,
  SglangTestServer,
  SglangTestServerOptions,
} from "./protocol-servers/sglang/sglang-test-server.ts";
export type { FinishReason, PauseMode } from "./protocol-servers/shared/request-scheduler.ts";
export type { SequenceRequest } from "./protocol-servers/shared/sequence-request.ts";
export type {
  ColumnModel,
  ComputedToken,
  DrawnToken,
  LikelyToken,
  ScoredToken,
  TestColumns,
} from "./protocol-servers/shared/column-model.ts";
export type { TestServer, TestServerOptions } from "./protocol-servers/shared/server-core.ts";
export { startSglangTestServer } from "./protocol-servers/sglang/sglang-test-server.ts";
export type { SglangRelease } from "./protocol-servers/sglang/releases.ts";
export type {
  RouterStats,
  SglangTestRouter,
  SglangTestRouterOptions,
} from "./protocol-servers/sglang/router/sglang-test-router.ts";
export { startSglangTestRouter } from "./protocol-servers/sglang/router/sglang-test-router.ts";
export type { SpawnedServer, SpawnedServerOptions } from "./protocol-servers/spawn-test-server.ts";
export { spawnTestServer } from "./protocol-servers/spawn-test-server.ts";
export type { TextPolicyOptions, TextTurns } from "./policies/text-policy.ts";
export { createTextPolicy } from "./policies/text-policy.ts";
export type {
  VllmTestControls,
  VllmTestServer,
  VllmTestServerOptions,
} from "./protocol-servers/vllm/vllm-test-server.ts";
export { startVllmTestServer } from "./protocol-servers/vllm/vllm-test-server.ts";
export type { VllmRelease } from "./protocol-servers/vllm/releases.ts";
export type {
  LlamaCppTestControls,
  LlamaCppTestServer,
  LlamaCppTestServerOptions,
} from "./protocol-servers/llama-cpp/llama-cpp-test-server.ts";
export { startLlamaCppTestServer } from "./protocol-servers/llama-cpp/llama-cpp-test-server.ts";
export type { LlamaCppRelease } from "./protocol-servers/llama-cpp/releases.ts";
