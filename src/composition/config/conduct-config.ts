import type { RecordPolicy } from "../../run/recording/read-recording.ts";
import type { SinkFormat } from "../../run/folder/run-folder.ts";
import { requireBranchRecord } from "../../values/require-branch-record.ts";
import type { EngineConfig } from "./engine-config.ts";
import { withoutUndefined } from "../../values/without-undefined.ts";
import { count, flag, text, type Setting, type SettingValues } from "./setting.ts";

/** The settings of a run's pace, retries and folder. */
export const conductSettings = [
  {
    name: "concurrency",
    kind: count(1),
    value: "n",
    help: "episodes at once (default: 64; llama: its sequences; chat: 32)",
    operational: true,
  },
  {
    name: "follow-load",
    kind: { type: "choice", choices: ["on", "off"] },
    help: "play fewer episodes at once while the engine's memory is full or its queue long",
    default: "on",
    operational: true,
  },
  {
    name: "attempts",
    kind: count(1),
    value: "n",
    help: "plays of an episode before its failure is final",
    default: 2,
    operational: true,
  },
  {
    name: "max-failures",
    kind: count(1),
    value: "n",
    help: "failures in a row that stop the run; each failure of the engine counts, others once per group",
    default: 20,
    operational: true,
  },
  {
    name: "out",
    kind: text,
    value: "dir",
    help: "folder of the run; the same command resumes it",
    operational: true,
  },
  {
    name: "format",
    kind: { type: "choice", choices: ["slime"] },
    help: "also write the samples in this trainer's format",
  },
  {
    name: "record",
    kind: { type: "choice", choices: ["all", "failed", "none"] },
    help: "episodes whose inputs are kept for replay and fork; with none, a stopped episode starts over",
    default: "all",
    operational: true,
  },
  {
    name: "retry-failed",
    kind: flag,
    help: "when resuming, play failed episodes again",
    operational: true,
  },
] as const satisfies readonly Setting[];

/** The pace, retries and folder of a run. */
export interface ConductConfig {
  /** Maximum number of concurrent episodes. */
  readonly concurrency: number;
  /** True to play fewer episodes at the same time while the engine is full. */
  readonly followLoad: boolean;
  /** The maximum number of plays of an episode. The failure of the last one is final. */
  readonly attempts: number;
  /** The number of failures in a row that stops the run; see `StartRunOptions`. */
  readonly maxFailuresInRow: number;
  /** The run's folder. Absent: a new folder in `runs/`. */
  readonly dir?: string;
  /** A trainer's format in which rows are also written. */
  readonly format?: SinkFormat;
  /** The episodes to keep in `recording.jsonl`. */
  readonly record: RecordPolicy;
  /** True to play failed episodes again when resuming. */
  readonly retryFailed: boolean;
}

/** The default number of concurrent episodes. */
const DEFAULT_CONCURRENCY = 64;
/** The default number of concurrent episodes for a server with rate limits. */
const DEFAULT_CHAT_CONCURRENCY = 32;
/** The llama engine's default number of sequences. */
const DEFAULT_LLAMA_SEQUENCES = 2;

/** Reads the pace, retries and folder of a run. */
export function readConductConfig(
  values: SettingValues<(typeof conductSettings)[number]> & {
    readonly "branch-at"?: string | undefined;
  },
  engine: EngineConfig,
): ConductConfig {
  if (values["branch-at"] !== undefined) requireBranchRecord(values.record);
  return {
    concurrency: values.concurrency ?? fittingConcurrency(engine),
    followLoad: values["follow-load"] === "on",
    attempts: values.attempts,
    maxFailuresInRow: values["max-failures"],
    record: values.record,
    retryFailed: values["retry-failed"] === true,
    ...withoutUndefined({ dir: values.out, format: values.format }),
  };
}

function fittingConcurrency(engine: EngineConfig): number {
  switch (engine.kind) {
    case "llama":
      return engine.sequenceCount ?? DEFAULT_LLAMA_SEQUENCES;
    case "chat":
      return DEFAULT_CHAT_CONCURRENCY;
    default:
      return DEFAULT_CONCURRENCY;
  }
}
