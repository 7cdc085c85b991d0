/**
 * Token-exact, multi-turn agent rollouts for reinforcement learning.
 *
 * @module
 */
export type * from "./public-types.ts";
export type { Agent, Intent, Observed, Opening, Reading } from "./agent/agent.ts";
export {
  refusableNotes,
  repairableStatuses,
  type CallPolicy,
  type RefusableNote,
  type RepairableStatus,
} from "./agent/call-policy.ts";
export { fewShotAgent, type FewShotDraw, type FewShotOptions } from "./agent/few-shot-agent.ts";
export { ownTextActionPrompts } from "./agent/own-text-action-prompts.ts";
export { readFewShotExamples } from "./agent/read-few-shot-examples.ts";
export { readTextActionPrompts } from "./agent/read-text-action-prompts.ts";
export type { SplitReasoning } from "./agent/split-reasoning.ts";
export { textActionAgent, type TextActionOptions } from "./agent/text-action-agent.ts";
export type { TextActionPrompt, TextActionPrompts } from "./agent/text-action-prompt.ts";
export { toolCallingAgent, type ToolCallingOptions } from "./agent/tool-calling-agent.ts";
export { toolUsePolicies, type ToolUsePolicy } from "./agent/tool-use-policy.ts";
export type { AttemptPlace, ReasoningMarkup, TurnForm } from "./agent/turn-form.ts";
export type {
  DiscardedSampling,
  Engine,
  EngineDescription,
  EngineLoad,
  Finish,
  GenerateRequest,
  Generation,
  GenerationPiece,
  LogprobConvention,
  SamplingConstraint,
  SamplingParameters,
  ScoreRequest,
  StreamedTokens,
  WorkerLoad,
} from "./engine/engine.ts";
export { createLlamaEngine, type LlamaEngineOptions } from "./engine/llama/llama-engine.ts";
export { createLlamaCppEngine, type LlamaCppEngine } from "./engine/llama-cpp/llama-cpp-engine.ts";
export type { LlamaCppEngineOptions } from "./engine/llama-cpp/llama-cpp-options.ts";
export { createReferenceEngine, type ReferenceEngineOptions } from "./engine/reference/index.ts";
export { createSglangEngine, type SglangEngine } from "./engine/sglang/sglang-engine.ts";
export type { SglangEngineOptions } from "./engine/sglang/sglang-options.ts";
export { createVllmEngine, type VllmEngine } from "./engine/vllm/vllm-engine.ts";
export type { VllmEngineOptions } from "./engine/vllm/vllm-options.ts";
export {
  CopyOnWriteTable,
  type CopyOnWriteTableOptions,
} from "./environment/state/copy-on-write-table.ts";
export {
  defineEnvironment,
  type DefinedEnvironment,
  type EnvironmentOptions,
  type StateContext,
  type ToolRecord,
} from "./environment/define-environment.ts";
export {
  defineTool,
  type Tool,
  type ToolMembers,
  type ToolOptions,
} from "./environment/define-tool.ts";
export type { DefinedUser } from "./environment/defined-user.ts";
export type { MadeCall, PlayedEpisode } from "./environment/defined-world.ts";
export type {
  Difference,
  DifferenceCall,
  StateDifference,
} from "./environment/state/difference.ts";
export type { Action, Environment, Score, Step, World } from "./environment/environment.ts";
export {
  playActions,
  replayCalls,
  type PlayedActions,
  type ReplayedCalls,
} from "./environment/play-actions.ts";
export type { GetResource } from "./environment/episode-resources.ts";
export { readTasks } from "./environment/read-tasks.ts";
export { refuse, ToolRefusal } from "./environment/refuse.ts";
export type { DetailedScore, ScoreResult } from "./environment/score-result.ts";
export type {
  ObjectSchema,
  StandardIssue,
  StandardResult,
  StandardSchema,
} from "./environment/standard-schema.ts";
export type { TaskItem, TaskList, TaskSplits } from "./environment/task-list.ts";
export type { CallableTool, ToolContext } from "./environment/tool-call.ts";
export type {
  CheckedArguments,
  ParameterCheck,
  ToolParameters,
} from "./environment/tool-parameters.ts";
export { seededRandom, type Random } from "./environment/seeded-random.ts";
export type {
  AttemptRecord,
  Episode,
  FormatFacts,
  TurnRecord,
  TurnStep,
} from "./episode/episode.ts";
export { defaultLimits, type EpisodeLimits } from "./episode/limits.ts";
export type { EpisodeAssignment, EpisodeSetup } from "./episode/episode-setup.ts";
export type { EpisodeTrace, EpisodeTracer } from "./episode/episode-tracer.ts";
export { playEpisode } from "./episode/play-episode.ts";
export {
  InvariantError,
  RolloutError,
  UsageError,
  type Failure,
  type FailureCode,
  type Party,
} from "./errors.ts";
export { commandAgent } from "./gateway/agent/command-agent.ts";
export type { ForeignAgent, ForeignRun, ForeignTool } from "./gateway/agent/foreign-agent.ts";
export { createForeignPlayer, type ForeignPlayer } from "./gateway/agent/foreign-player.ts";
export {
  createGateway,
  inProcessUrl,
  type GatewayInProcess,
  type GatewayInProcessOptions,
} from "./gateway/create-gateway.ts";
export type {
  GatewayOptions,
  OpenedSession,
  ScoredSession,
  SessionScorer,
} from "./gateway/gateway.ts";
export type { SessionLimits } from "./gateway/session/session-limits.ts";
export type { SessionRequest } from "./gateway/session/session-store.ts";
export type { SessionReward } from "./gateway/session/session.ts";
export {
  toolFromOpenAi,
  toolsFromOpenAi,
  type AssistantMessage,
  type Message,
  type ToolCall,
  type ToolDefinition,
} from "./message.ts";
export { verifyExport, type ExportVerification } from "./verify/exported/verify-export.ts";
export { exportGroup, exportGroups, type ExportedGroup } from "./export/export-groups.ts";
export { exportRun, type ExportOptions, type RunExport } from "./export/export-run.ts";
export type { ExportMember, ExportNote, ExportSurroundings } from "./export/exporter.ts";
export type { ExportTarget } from "./export/exporters.ts";
export { chooseParser, type ParserChoice, type ParserSettings } from "./parser/choose-parser.ts";
export type { ReasoningParser } from "./parser/reasoning/reasoning-parser.ts";
export { findReasoningParser, listReasoningParsers } from "./parser/reasoning/registry.ts";
export { findToolCallParser, listToolCallParsers } from "./parser/registry.ts";
export type {
  Attempt,
  AttemptStatus,
  CompatResult,
  ParseOptions,
  ParseResult,
  ToolCallParser,
} from "./parser/tool-call-parser.ts";
export { parsePythonJson } from "./python/json/json-parse.ts";
export { stringifyPythonJson } from "./python/json/json-stringify.ts";
export { toPlainJson, toPyValue, type PyDict, type PyList, type PyValue } from "./python/value.ts";
export type { TemplateLimits } from "./jinja/evaluate/budget.ts";
export type { CapabilityCard } from "./renderer/capability/capability-card.ts";
export { createRenderer, type RendererOptions } from "./renderer/create-renderer.ts";
export type { EnvironmentDelta, RenderedIds, Renderer } from "./renderer/renderer.ts";
export type { FolderJournal } from "./run/folder/folder-journals.ts";
export {
  planRun,
  type PlannedEpisode,
  type RunPlan,
  type RunScope,
} from "./run/schedule/plan-run.ts";
export {
  RunFolder,
  type FinishedEpisode,
  type RunFolderOptions,
  type FolderManifest,
  type RunManifest,
} from "./run/folder/run-folder.ts";
export {
  createAdmissionGate,
  type AdmissionWish,
  type EngineGate,
  type EngineGateOptions,
  type LoadFollowing,
} from "./run/schedule/admission.ts";
export type { RunProgress } from "./run/run-progress.ts";
export { runRollouts, type RunOptions, type RunResult } from "./run/run-rollouts.ts";
export {
  playHere,
  type AttemptPlayer,
  type AttemptPlayOptions,
  type PlayPlace,
} from "./run/schedule/attempt-player.ts";
export { startRun } from "./run/start-run.ts";
export type { LiveRun } from "./run/live-run.ts";
export type {
  AdmissionGate,
  AdmissionOptions,
  GroupingOptions,
  StartRunOptions,
} from "./run/start-run-options.ts";
export {
  curriculum,
  endlessTasks,
  planSource,
  pushedTasks,
  taskList,
  tasksFrom,
  type Fork,
  type PushedTasks,
  type SourcedTask,
  type TaskSource,
} from "./run/schedule/task-source.ts";
export { rewardSpread, rewardsOf, type EpisodeGroup } from "./run/schedule/group.ts";
export { advantages, type AdvantageEstimator } from "./run/schedule/advantages.ts";
export type { StalenessOptions } from "./run/policy/staleness.ts";
export type { UpdateMode } from "./run/policy/policy-gate.ts";
export type { RecordPolicy } from "./run/recording/read-recording.ts";
export {
  replayEpisode,
  type ReplayVerdict,
  type StoredEpisode,
} from "./run/recording/replay-episode.ts";
export {
  createReplay,
  openRecordedRun,
  type Bundle,
  type RecordedRun,
} from "./composition/open-replay.ts";
export { startMetricsServer, type MetricsServer } from "./metrics/metrics-server.ts";
export type { MetricsSource, RunMetrics } from "./metrics/run-metrics.ts";
export { traceSetup } from "./run/run-tracer.ts";
export { callThrough, PlaybackStop, type Outside } from "./outside.ts";
export { inputsBefore, type Input, type Inputs } from "./episode/inputs/input.ts";
export { RecordingEnd, ReplayDivergence } from "./episode/inputs/input-player.ts";
export { findModelFolder } from "./hub/find-model-folder.ts";
export type { FetchModelOptions } from "./hub/fetch-model.ts";
export type { HubVariables } from "./hub/hub-place.ts";
export { evaluate, type EvaluateOptions } from "./api/evaluate.ts";
export { readRun, type ReadRun } from "./api/read-run.ts";
export { handOut, type HandedOut } from "./api/hand-out.ts";
export { rollout } from "./api/rollout.ts";
export {
  checkEnvironment,
  type CheckOptions,
  type EnvironmentCheck,
  type EnvironmentProblem,
} from "./api/check-environment.ts";
export type {
  CamelCase,
  LibrarySettings,
  RolloutEpisode,
  RolloutGroup,
  RolloutOptions,
} from "./api/rollout-options.ts";
export { type Finding } from "./verify/finding.ts";
export { verifyRun, type RunVerification } from "./verify/verify-run.ts";
export {
  createRun,
  type PlayOptions,
  type Run,
  type RunSurroundings,
} from "./composition/create-run.ts";
export type { AgentConfig, ExamplesConfig } from "./composition/config/agent-config.ts";
export type { ConductConfig } from "./composition/config/conduct-config.ts";
export type { EngineConfig } from "./composition/config/engine-config.ts";
export type { LimitsConfig } from "./composition/config/limits-config.ts";
export type { RendererConfig } from "./composition/config/renderer-config.ts";
export {
  readRunConfig,
  type RunConfig,
  type RunSettings,
} from "./composition/config/run-config.ts";
export type { EnvironmentConfig, ScopeConfig } from "./composition/config/scope-config.ts";
export type { UserConfig } from "./composition/config/user-config.ts";
export { toSlimeGroup, type SlimeMember, type SlimeSample } from "./run/slime/slime.ts";
export type { Task } from "./task.ts";
export type { AddedToken, TokenCodec } from "./tokenizer/codec.ts";
export { IncrementalDecoder } from "./tokenizer/incremental-decoder.ts";
export { loadTokenCodec } from "./tokenizer/load-codec.ts";
export { toSamples, type Outcome, type Sample, type StopReason } from "./trajectory/sample.ts";
export {
  rescoreFile,
  type FileRescoring,
  type RescoredToken,
  type RescoreOptions,
} from "./trajectory/rescore-file.ts";
export { TokenLedger } from "./trajectory/token-ledger.ts";
export type { Segment, TurnSpan } from "./trajectory/trajectory-recorder.ts";
export { verifyFile, type FileVerification } from "./trajectory/verify-file.ts";
export { verifySample, type Violation } from "./trajectory/verify-sample.ts";
export { createUser, type CreateUserOptions } from "./user/create-user.ts";
export { scriptedUser } from "./user/scripted-user.ts";
export { STOP_MARKER } from "./user/stop-marker.ts";
export {
  isLeaving,
  textOfLine,
  type LeavingLine,
  type User,
  type UserLine,
  type UserSession,
  type UserUsage,
} from "./user/user.ts";
export { mcpTools, type McpTools, type McpToolsOptions } from "./worlds/mcp/mcp-tools.ts";
export type { McpAddress, McpCommand, McpServer } from "./worlds/mcp/mcp-server.ts";
export { openEnv, type OpenEnvEnvironment } from "./worlds/open-env/open-env.ts";
export type {
  OpenEnvOptions,
  OpenEnvReward,
  OpenEnvTask,
} from "./worlds/open-env/open-env-options.ts";
export type { OpenEnvPlace } from "./worlds/open-env/open-env-session.ts";
export {
  serveOpenEnv,
  type ServedOpenEnv,
  type ServeOpenEnvOptions,
} from "./worlds/open-env/serve-open-env.ts";
export { defineSandboxes } from "./worlds/sandbox/define-sandboxes.ts";
export { dockerSandboxes, type DockerSandboxOptions } from "./worlds/sandbox/docker-sandboxes.ts";
export { localSandboxes, type LocalSandboxOptions } from "./worlds/sandbox/local-sandboxes.ts";
export {
  readSandboxFile,
  writeSandboxFile,
  type Sandbox,
  type SandboxCommandOptions,
  type SandboxResult,
  type Sandboxes,
} from "./worlds/sandbox/sandbox.ts";
