/**
 * Types that public signatures mention and nobody makes by hand, so that they can be named.
 *
 * @module
 */
export type { TextSpan } from "./agent/turn-form.ts";
export type { TurnFormats } from "./agent/turn-parts.ts";
export type { GenerateOptions } from "./engine/engine.ts";
export type {
  EngineTimeouts,
  HttpEngineOptions,
  ResumePolicy,
} from "./engine/http/http-engine-options.ts";
export type { HttpEngine, ScoringHttpEngine } from "./engine/http/http-engine.ts";
export type { RetryPolicy } from "./engine/http/http-retry.ts";
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
} from "./engine/llama/llama-library.ts";
export type { LlamaEngine } from "./engine/llama/sequence-engine.ts";
export type { SpecialTokens } from "./verify/exported/special-tokens.ts";
export type { ReloadableEngine, ScoringEngine } from "./engine/reference/index.ts";
export type { VllmApi } from "./engine/vllm/vllm-options.ts";
export type { EpisodeCounts, SharedCounts, TreeTurn } from "./episode/episode.ts";
export type { Clock } from "./async/clock.ts";
export type { Redactor } from "./secrets/redactor.ts";
export type { Widened } from "./api/rollout-options.ts";
export type {
  ReasoningOptions,
  ReasoningResult,
  ReasoningStream,
} from "./parser/reasoning/reasoning-parser.ts";
export type {
  CompatCall,
  Dialect,
  ToolCallStream,
  ToolStreamEvent,
} from "./parser/tool-call-parser.ts";
export type { PythonJsonOptions } from "./python/json/json-parse.ts";
export type { PythonDumpsOptions } from "./python/json/json-stringify.ts";
export type { PlainJson } from "./python/value.ts";
export type { HistoryEdit } from "./renderer/capability/capability-card.ts";
export type { HistoryPolicy } from "./renderer/capability/classify-template.ts";
export type { GuardPolicy } from "./renderer/guard/control-token-guard.ts";
export type { Conversation, TurnToContinue } from "./renderer/renderer.ts";
export type { PolicyPrices } from "./report/evaluation-tally.ts";
export type {
  Durations,
  Evaluation,
  Miss,
  MissCounts,
  TaskEvaluation,
  TrialEvaluation,
} from "./report/evaluation.ts";
export type { Estimate, IntervalMethod } from "./report/statistics/interval.ts";
export type { TauBenchMetrics } from "./report/tau-bench-metrics.ts";
export type { EpisodeRow, EpisodeStory } from "./run/folder/episode-row.ts";
export type { FileFacts, Files, OpenFile, OpenMode } from "./run/disk/files.ts";
export type { EpisodePlace } from "./run/schedule/plan-run.ts";
export type { Machine, ProcessPlace } from "./run/disk/process-place.ts";
export type { SinkFormat } from "./run/folder/run-folder.ts";
export type { LockOptions } from "./run/disk/lock-options.ts";
export type { UnscoredReason } from "./run/folder/unscored-reason.ts";
export type { ForeignAgentConfig, ToolCallingConfig } from "./composition/config/agent-config.ts";
export type { Variables } from "./composition/create-engine.ts";
export type { ServerConfig } from "./composition/config/engine-config.ts";
export type { TemplateChoices } from "./composition/config/renderer-config.ts";
export type {
  GivenSettings,
  NumberKind,
  Setting,
  SettingKind,
  SettingValues,
  ValueOf,
} from "./composition/config/setting.ts";
export type { SlimeAttempt, SlimeChoice, SlimeSummary } from "./run/slime/slime-file.ts";
export type { SlimeOmission, SlimePlace } from "./run/slime/slime.ts";
export type { DisguisingText } from "./tokenizer/disguising-text.ts";
export type { LoadTokenCodecOptions } from "./tokenizer/load-codec.ts";
export type { SampleFacts } from "./trajectory/check-tokens.ts";
export type { SkippedRow } from "./trajectory/rescore-file.ts";
export type { RolloutEnd, RolloutIdentity } from "./trajectory/sample.ts";
export type { Span, SpanKind } from "./trajectory/span.ts";
export type { DroppedStop, SampledSpan } from "./trajectory/token-ledger.ts";
export type { LineViolation, VerifyFileOptions } from "./trajectory/verify-file.ts";
export type { RawRow } from "./trajectory/violation.ts";
export type { ChatCallOptions } from "./user/chat/ai-sdk-chat-model.ts";
export type { ChatBudget, ChatPrices } from "./user/chat/chat-budget.ts";
export type { ChatModelConfig } from "./user/chat/chat-model-config.ts";
export type {
  ChatFinishReason,
  ChatMessage,
  ChatModel,
  ChatReply,
  ChatRequest,
} from "./user/chat/chat-model.ts";
export type { ChatRetryOptions } from "./user/chat/chat-retry.ts";
export type {
  ChatModelChoice,
  JudgeChoices,
  ModelChoices,
  UserSurroundings,
} from "./user/create-user.ts";
export type {
  AiSdkLanguageModel,
  LanguageModelCall,
  LanguageModelResult,
  PromptMessage,
  ReportedUsage,
  TokenCount,
} from "./user/chat/language-model-call.ts";
export type { QualityGateOptions } from "./user/quality-gate.ts";
export type { ScriptLines, ScriptedUserOptions } from "./user/scripted-user.ts";
export type { InstructedPrompt, UserPrompts } from "./user/user-prompts.ts";
export type { UserQuality, UserSpending } from "./user/user.ts";
export type { ForkPlace, OutcomeCounts } from "./trajectory/sample.ts";
export type { PlayEpisodeOptions } from "./episode/play-episode.ts";
export type { RecordedAttempt } from "./run/recording/read-recording.ts";
export type { RecordedGroups } from "./run/folder/started-groups.ts";
export type { RecordingJournal, RecordingOptions } from "./run/recording/recording-journal.ts";
export type { ReplayOptions } from "./run/recording/replay-episode.ts";
export type { Outcome as InputOutcome } from "./episode/inputs/input.ts";
export type { InputOptions } from "./episode/inputs/open-inputs.ts";
export type { BeginLine } from "./run/recording/recording-line.ts";
export type { StartedGroup } from "./run/folder/started-groups.ts";
export type { StartedAttempt } from "./run/folder/same-groups.ts";
export type { TaskRecord, OwnTask } from "./run/folder/task-record.ts";
export type { RecordedGrouping } from "./run/folder/episode-events.ts";
export type { AttemptRecording, RecordingStart } from "./run/recording/recording-journal.ts";
export type { JournalOptions, JsonlJournal } from "./run/disk/jsonl-journal.ts";
export type { RecordedError } from "./episode/inputs/input.ts";
export type { EncodedLine } from "./run/disk/encode-line.ts";
export type { VerifyExportOptions } from "./verify/exported/verify-export.ts";
export type { ExportSummary } from "./export/export-run.ts";
export type { ExportAction, ExportKind } from "./export/exporter.ts";
export type { EngineOutage } from "./run/policy/engine-watch.ts";
export type { EpochsConfig } from "./composition/config/scope-config.ts";
export type { GatewayCounts } from "./gateway/gateway-counters.ts";
export type { MintId } from "./gateway/mint-id.ts";
export type { AccessRules } from "./gateway/server/access.ts";
export type { SessionIdentity } from "./gateway/session/session.ts";
export type { RowChoice } from "./gateway/tree/collect-rows.ts";
export type { Strictness } from "./gateway/tree/match-turn.ts";
export type { PlacementNote, RootCause } from "./gateway/tree/turn-node.ts";
export type { PlayAttempt } from "./episode/episode-setup.ts";
