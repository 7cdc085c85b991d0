/**
 * τ-bench's domains as environments with the Python original's behaviour, byte for byte.
 *
 * @module
 */
export { createTauAirline } from "./airline/create-tau-airline.ts";
export type { DomainData, TauBenchBundle, TauDomainName } from "./bundle.ts";
export { loadTauBenchBundle } from "./bundle.ts";
export type { ToolOutcome } from "./call-tool.ts";
export type { Play, PlayedEpisode, PlayedStep } from "./play-actions.ts";
export { playActions } from "./play-actions.ts";
export type { Replay, ReplayCall } from "./replay.ts";
export { replayCalls } from "./replay.ts";
export { createTauRetail } from "./retail/create-tau-retail.ts";
export type { RewardInfo } from "./reward.ts";
export type { TauEnvironment, TauToolbox } from "./tau-environment.ts";
export type { SplitTasks } from "./read-tasks.ts";
export type { TaskPlace, TauAction, TauTaskData } from "./tau-task.ts";
export { readTauTask } from "./tau-task.ts";
