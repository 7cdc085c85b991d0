/**
 * Token-exact, multi-turn agent rollouts for reinforcement learning: define an environment, play it, measure and read runs.
 *
 * @module
 */
export type { Agent } from "./agent/agent.ts";
export { checkEnvironment, type CheckOptions } from "./api/check/check-environment.ts";
export type { EnvironmentProblem } from "./api/check/problem-list.ts";
export type { EnvironmentCheck } from "./api/check/task-checker.ts";
export { evaluate, type EvaluateOptions } from "./api/evaluate.ts";
export { readRun, type ReadRun } from "./api/read-run.ts";
export type {
  CamelCase,
  LibrarySettings,
  RolloutEpisode,
  RolloutGroup,
  RolloutOptions,
  TeacherLibrarySettings,
  TeacherValues,
  Widened,
} from "./api/rollout-options.ts";
export type { EpisodesScored } from "./composition/open-episode-teacher.ts";
export type { FollowResult } from "./teacher/follow-run.ts";
export type { LeftOutRow, ScoringCounts, ScoringResult } from "./teacher/score-run.ts";
export { rollout, type Rollout } from "./api/rollout.ts";
export type { Clock } from "./async/clock.ts";
export type { RunSettings } from "./composition/config/run-config.ts";
export type { Engine } from "./engine/engine.ts";
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
export type { ComparedMembers } from "./environment/compared-members.ts";
export type { DefinedUser } from "./environment/defined-user.ts";
export type { MadeCall, MadeTurn, PlayedOutcome } from "./environment/action-log.ts";
export type { PlayedEpisode } from "./environment/defined-world.ts";
export type {
  Action,
  AgentTurn,
  Environment,
  Score,
  Step,
  World,
} from "./environment/environment.ts";
export { playActions, type PlayedActions } from "./environment/play-actions.ts";
export { readTasks } from "./environment/read-tasks.ts";
export { ToolRefusal, refuse } from "./environment/refuse.ts";
export type { RewardComponent, RewardComponents } from "./environment/reward-parts.ts";
export type { DetailedScore, ScoreResult } from "./environment/score-result.ts";
export { createSeededRandom, type Random } from "./environment/seeded-random.ts";
export type { TaskItem, TaskList, TaskSplits } from "./environment/task-list.ts";
export type { CallableTool, ToolContext } from "./environment/tool-call.ts";
export type { Episode, TurnRecord } from "./episode/episode.ts";
export {
  InvariantError,
  RolloutError,
  UsageError,
  type Failure,
  type FailureCode,
  type Party,
} from "./errors.ts";
export type { ForeignAgent, ForeignRun, ForeignTool } from "./gateway/agent/foreign-agent.ts";
export type { AssistantMessage, Message, ToolCall, ToolDefinition } from "./message.ts";
export type { Outside } from "./outside.ts";
export type { Renderer } from "./renderer/renderer.ts";
export type { ComponentEvaluation } from "./report/component-tally.ts";
export type { PolicyPrices } from "./report/evaluation-tally.ts";
export type {
  Durations,
  Evaluation,
  Miss,
  MissCounts,
  TaskEvaluation,
  TrialEvaluation,
} from "./report/evaluation.ts";
export type {
  AttemptFigure,
  RoleEvaluation,
  RowsEvaluation,
  UntrainedTurns,
} from "./report/rows/rows-evaluation.ts";
export type { Estimate, IntervalMethod } from "./report/statistics/interval.ts";
export type { TauBenchMetrics } from "./report/tau-bench-metrics.ts";
export type { EpisodeRow, EpisodeStory } from "./run/folder/episode-row.ts";
export type { RunManifest } from "./run/folder/run-folder.ts";
export type { LiveRun } from "./run/live-run.ts";
export type { UpdateMode } from "./run/policy/policy-gate.ts";
export type { StalenessOptions } from "./run/policy/staleness.ts";
export type { RunProgress } from "./run/run-progress.ts";
export type { RunResult } from "./run/run-rollouts.ts";
export { advantages, type AdvantageEstimator } from "./run/schedule/advantages.ts";
export { turnAdvantages, type TurnAdvantageOptions } from "./run/schedule/turn-advantages.ts";
export { createSpreadFilter, rewardsOf, type EpisodeGroup } from "./run/schedule/group.ts";
export { createPushedTasks, type PushedTasks } from "./run/schedule/pushed-tasks.ts";
export { createTaskStream } from "./run/schedule/streamed-tasks.ts";
export {
  createCurriculum,
  createEndlessTasks,
  createTaskList,
  type Fork,
  type SourcedTask,
  type TaskSource,
} from "./run/schedule/task-source.ts";
export type { AdmissionOptions, GroupingOptions } from "./run/start-run-options.ts";
export type { Task } from "./task.ts";
export type { SampleFacts } from "./trajectory/check-tokens.ts";
export type { Outcome, OutcomeCounts, Sample, StopReason } from "./trajectory/sample.ts";
export type { Segment } from "./trajectory/segment.ts";
export { verifySample, type Violation } from "./trajectory/verify-sample.ts";
export {
  createScriptedUser,
  type ScriptLines,
  type ScriptedUserOptions,
} from "./user/scripted-user.ts";
export type { User, UserLine, UserSession } from "./user/user.ts";
export type { Finding } from "./verify/finding.ts";
export { verifyRun, type RunVerification } from "./verify/verify-run.ts";
