import path from "node:path";
import type { Input, Inputs } from "../../episode/inputs/input.ts";
import { AttemptLines } from "../folder/attempt-lines.ts";
import { parseJson } from "../folder/episode-row.ts";
import { type Files, withFile, readBytes } from "../disk/files.ts";
import { keepLines } from "../disk/keep-lines.ts";
import { endLastLine } from "../disk/last-line.ts";
import { type LineRange, scanLines } from "../disk/line-ranges.ts";
import {
  type BeginLine,
  holdsGeneration,
  isOfOtherRun,
  readRecordingLine,
  recordingFile,
} from "./recording-line.ts";
import type { StartedAttempt } from "../folder/same-groups.ts";
import { storageError } from "../disk/storage-error.ts";

/** Selects the episodes that are recorded: all, those that failed or did not end, or none. */
export type RecordPolicy = "all" | "failed" | "none";

/** The recording of a rollout's latest attempt. */
export interface RecordedAttempt {
  readonly begin: BeginLine;
  readonly inputs: Inputs;
  readonly partCount: number;
  /** The hash of the last line of inputs. */
  readonly lastHash: string;
  /** True if the attempt has ended. */
  readonly hasEnded: boolean;
  /**
   * True if only a start that records nothing has ended the attempt (see `EndLine`). The recording has the attempt's
   * first part.
   */
  readonly isUnrecorded: boolean;
}

/** The positions of the lines of a rollout's latest attempt. */
export interface RecordedAttemptPlace {
  readonly attempt: number;
  readonly ranges: LineRange[];
  /** True if one of the lines has a sample of the policy. */
  isSampled: boolean;
}

/**
 * Repairs the end of a folder's recording before it is indexed, because later lines will overwrite a torn one.
 *
 * @throws UsageError if the disk fails.
 */
export async function endRecording(dir: string, files: Files): Promise<void> {
  const file = path.join(dir, recordingFile);
  try {
    if ((await files.facts(file)) === undefined) return;
    const open = await files.open(file, "append");
    try {
      await endLastLine(open);
    } finally {
      await open.close();
    }
  } catch (error) {
    throw storageError("write", file, error);
  }
}

/** The positions of a folder's recordings by rollout. */
export type RecordingIndex = ReadonlyMap<string, Readonly<RecordedAttemptPlace>>;

/**
 * Scans a folder for its recordings, and keeps those that `wants` selects. Skips unreadable lines: their turns are
 * sampled again.
 *
 * @param options - `onLine` is called with each line, in order.
 * @throws UsageError if the disk fails.
 */
export async function indexRecordings(
  dir: string,
  {
    files,
    wants,
    onLine,
  }: {
    readonly files: Files;
    readonly wants: (rolloutId: string) => boolean;
    readonly onLine?: (head: RecordedHead) => void;
  },
): Promise<RecordingIndex> {
  const file = path.join(dir, recordingFile);
  const index = new Map<string, RecordedAttemptPlace>();
  try {
    await scanLines(files, file, ({ bytes, start, end }) => {
      const head = headOf(bytes);
      if (head === undefined) return;
      onLine?.(head);
      if (!wants(head.rolloutId)) return;
      const known = index.get(head.rolloutId);
      if (known === undefined || head.attempt > known.attempt) {
        const isSampled = holdsGeneration(bytes);
        index.set(head.rolloutId, { attempt: head.attempt, ranges: [{ start, end }], isSampled });
      } else if (head.attempt === known.attempt) {
        known.ranges.push({ start, end });
        known.isSampled ||= holdsGeneration(bytes);
      }
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  return index;
}

const headPattern =
  /^\{"recording":1,"type":"(?:begin|inputs|end)","rolloutId":("[^"\\]*(?:\\.[^"\\]*)*"),"attempt":(\d+)(,"isUnrecorded":true)?[,}]/;

/** Most line heads are shorter than this number of bytes. */
const headLength = 4096;

/** The first members of a line, which name its attempt. */
interface RecordedHead {
  readonly rolloutId: string;
  readonly attempt: number;
  /** True if the rest of the attempt was not recorded (see `EndLine`). */
  readonly isUnrecorded: boolean;
}

/** Reads the first members of a line without parsing the rest; returns `undefined` if they are missing. */
export function headOf(line: Buffer): RecordedHead | undefined {
  const match =
    headPattern.exec(line.toString("utf8", 0, headLength)) ??
    (line.length > headLength ? headPattern.exec(line.toString("utf8")) : null);
  if (match === null) return undefined;
  const rolloutId = parseJson(Buffer.from(match[1]!));
  if (typeof rolloutId !== "string") return undefined;
  return { rolloutId, attempt: Number(match[2]), isUnrecorded: match[3] !== undefined };
}

/**
 * Reads the first lines of a folder's latest attempts. Skips attempts of other runs, unreadable lines, and attempts
 * without a sample. Reads one line at a time, because there may be many, and each may contain a task.
 *
 * @param about - `wants` selects rollouts.
 * @throws UsageError if the disk fails.
 */
export async function readFirstLines(
  dir: string,
  {
    files,
    index,
    runId,
    wants,
  }: {
    readonly files: Files;
    readonly index: RecordingIndex;
    /** The folder's run id. */
    readonly runId: string | undefined;
    readonly wants: (rolloutId: string) => boolean;
  },
): Promise<readonly StartedAttempt[]> {
  const ranges = [...index]
    .filter(([rolloutId, place]) => place.isSampled && wants(rolloutId))
    .flatMap(([, place]) => place.ranges.slice(0, 1));
  const begins: StartedAttempt[] = [];
  if (ranges.length === 0) return begins;
  await readEachLine(dir, { files, ranges }, (bytes) => {
    const line = readRecordingLine(bytes, "");
    if (line?.type !== "begin" || isOfOtherRun(line, runId)) return;
    const { rolloutId, groupId, groupIndex, sampleIndex } = line;
    begins.push({ rolloutId, groupId, groupIndex, sampleIndex });
  });
  return begins;
}

/** Reads a rollout's recording (see `joinLines()`). */
export async function readRecording(
  dir: string,
  {
    rolloutId,
    runId,
    ...place
  }: {
    readonly files: Files;
    readonly rolloutId: string;
    readonly ranges: readonly LineRange[];
    /** The folder's run id. */
    readonly runId: string | undefined;
  },
): Promise<RecordedAttempt | undefined> {
  const lines = await readRecordingLines(dir, place);
  // Another program may have changed the file since it was indexed.
  return joinLines(
    lines.filter((line) => headOf(line)?.rolloutId === rolloutId),
    runId,
  );
}

/** Reads the lines in these ranges. */
export async function readRecordingLines(
  dir: string,
  { files, ranges }: { readonly files: Files; readonly ranges: readonly LineRange[] },
): Promise<readonly Buffer[]> {
  const lines: Buffer[] = [];
  await readEachLine(dir, { files, ranges }, (bytes) => void lines.push(bytes));
  return lines;
}

/** Calls back with each line in these ranges, in order. */
async function readEachLine(
  dir: string,
  { files, ranges }: { readonly files: Files; readonly ranges: readonly LineRange[] },
  onLine: (bytes: Buffer) => void,
): Promise<void> {
  const file = path.join(dir, recordingFile);
  try {
    await withFile(files, file, async (open) => {
      for (const range of ranges) onLine(await readBytes(open, range));
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
}

/**
 * Joins the lines of an attempt. Skips a damaged line and the lines that continue it, but not those of a later start,
 * which resumed the attempt without them.
 *
 * @param runId - The folder's run id. Lines of another run are skipped unless there are no others.
 * @returns `undefined` if there is no usable first line.
 */
export function joinLines(lines: readonly Buffer[], runId?: string): RecordedAttempt | undefined {
  const attempt = new AttemptLines(runId);
  let begin: BeginLine | undefined;
  const inputs: Input[] = [];
  const times: number[] = [];
  for (const bytes of lines) {
    const line = attempt.take(bytes);
    if (line?.type === "begin") {
      begin = line;
      if (line.start !== 1) continue;
      inputs.length = 0;
      times.length = 0;
    } else if (line?.type === "inputs") {
      for (const input of line.inputs) inputs.push(input);
      for (const time of line.times) times.push(time);
    }
  }
  const { partCount, lastHash, hasEnded, isUnrecorded } = attempt;
  if (begin === undefined && attempt.isForeignAtAll) return joinLines(lines);
  if (begin === undefined) return undefined;
  return { begin, inputs: { inputs, times }, partCount, lastHash, hasEnded, isUnrecorded };
}

/** Removes the recordings of some rollouts from a folder. */
export async function pruneRecordings(
  dir: string,
  options: {
    readonly files: Files;
    readonly drops: (rolloutId: string) => boolean;
  },
): Promise<void> {
  const { files, drops } = options;
  const file = path.join(dir, recordingFile);
  const kept: LineRange[] = [];
  let size: number;
  try {
    size = await scanLines(files, file, ({ bytes, start, end }) => {
      const head = headOf(bytes);
      if (head !== undefined && !drops(head.rolloutId)) kept.push({ start, end });
    });
  } catch (error) {
    throw storageError("read", file, error);
  }
  await keepLines(file, { files, ranges: kept, size });
}
