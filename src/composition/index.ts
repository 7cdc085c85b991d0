/**
 * Runs from settings, as the command line assembles them, and replays of recorded runs.
 *
 * Use `rollout()` of `turnwright` to play. Use `createRun()` if you need the assembled parts before anything is played,
 * for example to show the template's warnings. Use `openRecordedRun()` and `createReplay()` to play recorded episodes again.
 *
 * @module
 */
export type {
  AgentConfig,
  ExamplesConfig,
  ForeignAgentConfig,
  ToolCallingConfig,
} from "./config/agent-config.ts";
export type { ConductConfig } from "./config/conduct-config.ts";
export type { EngineConfig, ServerConfig } from "./config/engine-config.ts";
export type { LimitsConfig } from "./config/limits-config.ts";
export type { RendererConfig, TemplateChoices } from "./config/renderer-config.ts";
export type { ColumnsConfig } from "./config/columns-config.ts";
export { readRunConfig, type RunConfig } from "./config/run-config.ts";
export type { EnvironmentConfig, EpochsConfig, ScopeConfig } from "./config/scope-config.ts";
export type {
  GivenSettings,
  NumberKind,
  Setting,
  SettingKind,
  SettingValues,
  ValueOf,
} from "./config/setting.ts";
export type { UserConfig } from "./config/user-config.ts";
export type { Variables } from "./create-engine.ts";
export { createRun, type PlayOptions, type Run, type RunSurroundings } from "./create-run.ts";
export { createReplay, openRecordedRun, type Bundle, type RecordedRun } from "./open-replay.ts";
