/**
 * Parts of environments beyond `defineEnvironment()`: state tables, tool schemas, scripted replays.
 *
 * @module
 */
export type { GetResource } from "./episode-resources.ts";
export { replayCalls, type ReplayedCalls } from "./play-actions.ts";
export type {
  ObjectSchema,
  StandardIssue,
  StandardResult,
  StandardSchema,
} from "./standard-schema.ts";
export { CopyOnWriteTable, type CopyOnWriteTableOptions } from "./state/copy-on-write-table.ts";
export type { Difference, DifferenceCall, StateDifference } from "./state/difference.ts";
export type { CheckedArguments, ParameterCheck, ToolParameters } from "./tool-parameters.ts";
export { toolFromOpenAi, toolsFromOpenAi } from "../message.ts";
export { PlaybackStop, callThrough } from "../outside.ts";
