/**
 * The parts of a run: `startRun()`, run folders, task sources, replays.
 *
 * Use `rollout()` of `turnwright` to play. Use `startRun()` if you assemble the parts of an episode yourself, for example
 * to share one engine gate among several runs or to play attempts elsewhere.
 *
 * @module
 */
export { openColumnFolder, type ColumnFolder } from "./columns/column-folder.ts";
export type { ColumnPlace } from "./columns/column-index.ts";
export type { ColumnWriter, ColumnWriterOptions } from "./columns/column-writer.ts";
export type { EncodedLine } from "./disk/encode-line.ts";
export type { FileFacts, Files, OpenFile, OpenMode } from "./disk/files.ts";
export type { JournalOptions, JsonlJournal } from "./disk/jsonl-journal.ts";
export type { LineRange } from "./disk/line-ranges.ts";
export type { Machine, ProcessPlace } from "./disk/process-place.ts";
export type { RunLock } from "./disk/run-lock.ts";
export type { LockOptions } from "./disk/lock-options.ts";
export { packRun, unpackRun, type RepackedFile, type RepackOptions } from "./gzip/pack-run.ts";
export type { RecordedGrouping } from "./folder/episode-events.ts";
export type { FolderJournal } from "./folder/folder-journals.ts";
export type {
  FolderRecordings,
  FolderRecordingsOptions,
  FoundRecordings,
} from "./folder/folder-recordings.ts";
export type { FolderResults } from "./folder/folder-results.ts";
export type { LockedFolder } from "./folder/locked-folder.ts";
export {
  RunFolder,
  type FinishedEpisode,
  type FolderManifest,
  type RunFolderOptions,
  type SinkFormat,
} from "./folder/run-folder.ts";
export type { StartedAttempt } from "./folder/same-groups.ts";
export type { RecordedGroups, StartedGroup } from "./folder/started-groups.ts";
export type { OwnTask, TaskRecord } from "./folder/task-record.ts";
export type { UnscoredReason } from "./folder/unscored-reason.ts";
export type { EngineOutage } from "./policy/engine-watch.ts";
export type {
  RecordedAttemptPlace,
  RecordPolicy,
  RecordedAttempt,
  RecordingIndex,
} from "./recording/read-recording.ts";
export type {
  AttemptRecording,
  RecordingJournal,
  RecordingOptions,
  RecordingStart,
} from "./recording/recording-journal.ts";
export type { PackedRecording } from "./packed/packed-episode.ts";
export type { BeginLine, RecordingPoint } from "./recording/recording-line.ts";
export {
  replayEpisode,
  type ReplayOptions,
  type ReplayVerdict,
  type StoredEpisode,
} from "./recording/replay-episode.ts";
export type { RunOptions } from "./run-rollouts.ts";
export { traceSetup } from "./run-tracer.ts";
export {
  createAdmissionGate,
  type AdmissionRequest,
  type EngineGate,
  type EngineGateOptions,
  type LoadFollowing,
} from "./schedule/admission.ts";
export {
  playHere,
  type AttemptPlayOptions,
  type AttemptPlayer,
  type PlayPlace,
} from "./attempt/attempt-player.ts";
export {
  planRun,
  type EpisodePlace,
  type PlannedEpisode,
  type RunPlan,
  type RunScope,
} from "./schedule/plan-run.ts";
export { createPlanSource } from "./schedule/task-source.ts";
export type { SlimeAttempt, SlimeChoice, SlimeSummary } from "./slime/slime-file.ts";
export {
  toSlimeGroup,
  type SlimeMember,
  type SlimeOmission,
  type SlimePlace,
  type SlimeRow,
  type SlimeSample,
} from "./slime/slime.ts";
export type { AdmissionGate, StartRunOptions } from "./start-run-options.ts";
export { startRun } from "./start-run.ts";
export type { Redactor } from "../secrets/redactor.ts";
