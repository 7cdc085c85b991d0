export { characterIds, createCharacterRenderer, characterStopId } from "./character-renderer.ts";
export type { Deferred } from "./deferred.ts";
export { createDeferred } from "./deferred.ts";
export type { EchoPolicyOptions } from "./echo-policy.ts";
export { createEchoPolicy } from "./echo-policy.ts";
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
export type { ScriptedPolicy, ScriptedTurn } from "./scripted-policy.ts";
export { createScriptedPolicy } from "./scripted-policy.ts";
export type { SeededPolicyOptions } from "./seeded-policy.ts";
export { createSeededPolicy } from "./seeded-policy.ts";
export type { FaultRequest, ServerFault, ServerFaults } from "./server-fault.ts";
export type {
  PolicyRequest,
  PolicyScoreRequest,
  PolicyToken,
  PolicyTokens,
  ServerPolicy,
} from "./server-policy.ts";
export type {
  RecordedRequest,
  ServerStats,
  SglangTestControls,
  SglangTestServer,
  SglangTestServerOptions,
} from "./sglang-test-server.ts";
export type { FinishReason, PauseMode } from "./server/request-scheduler.ts";
export type { SequenceRequest } from "./server/sequence-request.ts";
export type { TestServer, TestServerOptions } from "./server/server-core.ts";
export { startSglangTestServer } from "./sglang-test-server.ts";
export type { SglangRelease } from "./sglang/releases.ts";
export type {
  RouterStats,
  SglangTestRouter,
  SglangTestRouterOptions,
} from "./sglang-test-router.ts";
export { startSglangTestRouter } from "./sglang-test-router.ts";
export type { SpawnedServer, SpawnedServerOptions } from "./spawn-sglang-test-server.ts";
export { spawnSglangTestServer } from "./spawn-sglang-test-server.ts";
export type { TextPolicyOptions, TextTurns } from "./text-policy.ts";
export { createTextPolicy } from "./text-policy.ts";
export type {
  VllmTestControls,
  VllmTestServer,
  VllmTestServerOptions,
} from "./vllm-test-server.ts";
export { startVllmTestServer } from "./vllm-test-server.ts";
export type { VllmRelease } from "./vllm/releases.ts";
export type {
  LlamaCppTestControls,
  LlamaCppTestServer,
  LlamaCppTestServerOptions,
} from "./llama-cpp-test-server.ts";
export { startLlamaCppTestServer } from "./llama-cpp-test-server.ts";
export type { LlamaCppRelease } from "./llama-cpp/releases.ts";
