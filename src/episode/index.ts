/**
 * One episode: `playEpisode()`, limits, and the recorded inputs of an episode.
 *
 * Use `rollout()` of `turnwright` to play. Use `playEpisode()` if you schedule, retry and store episodes yourself.
 *
 * @module
 */
export type { EpisodeAssignment, EpisodeSetup, PlayAttempt } from "./episode-setup.ts";
export type { EpisodeTrace, EpisodeTracer } from "./episode-tracer.ts";
export type {
  AttemptRecord,
  EpisodeCounts,
  FormatFacts,
  SharedCounts,
  TreeTurn,
  TurnStep,
} from "./episode.ts";
export type { InputOptions } from "./inputs/open-inputs.ts";
export { RecordingEnd, ReplayDivergence } from "./inputs/playback-stop.ts";
export {
  inputsBefore,
  type Input,
  type Outcome as InputOutcome,
  type Inputs,
  type RecordedError,
} from "./inputs/input.ts";
export {
  conversationRoles,
  lineageEdges,
  type ConversationRole,
  type LineageEdge,
  type LineageLink,
  type Rejection,
  type RowLineage,
} from "./lineage.ts";
export { lineageOf } from "./lineage-of.ts";
export { defaultLimits, type EpisodeLimits } from "./limits.ts";
export { playEpisode, type PlayEpisodeOptions } from "./play-episode.ts";
