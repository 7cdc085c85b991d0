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

/** Which episodes' inputs a run keeps: all, those that failed or did not end, or none at all. */
export type RecordPolicy = "all" | "failed" | "none";

/** The recording of one attempt: the latest of its rollout. */
export interface RecordedAttempt {
  readonly begin: BeginLine;
  readonly inputs: Inputs;
  readonly partCount: number;
  /** Of the last line of inputs. */
  readonly lastHash: string;
  /** Whether it came to its end. */
  readonly hasEnded: boolean;
  /** Whether it did in a start that records nothing, if at all (see `EndLine`): this is its beginning. */
  readonly isUnrecorded: boolean;
}

/** Where the lines of a rollout's latest attempt are. */
interface AttemptPlace {
  readonly attempt: number;
  readonly ranges: LineRange[];
  /** Whether one of them holds what the policy sampled. */
  isSampled: boolean;
}

/**
 * Puts the end of a folder's recording in order before it is indexed: where a torn line was, others will stand.
 *
 * @throws UsageError where the disk refuses.
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

/** Where a folder's recordings are, by rollout. */
export type RecordingIndex = ReadonlyMap<string, Readonly<AttemptPlace>>;

/**
 * Finds the recordings of a folder; only those that `wants` says are kept in mind. Lines that cannot be
 * read are passed over: what they held is sampled again.
 *
 * @param options - `onLine` is told of each line, in order.
 * @throws UsageError where the disk refuses.
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
  const index = new Map<string, AttemptPlace>();
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

/** Most heads are shorter than this, in bytes. */
const headLength = 4096;

/** Whose line it is. */
interface RecordedHead {
  readonly rolloutId: string;
  readonly attempt: number;
  /** Whether it says that the rest of the attempt is not recorded (see `EndLine`). */
  readonly isUnrecorded: boolean;
}

/** Whose line it is, without parsing all of it; `undefined` where it does not begin as one does. */
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
 * Reads with which lines a folder's latest attempts were begun, those of another run and those that cannot be read
 * left out. So are attempts of which nothing was sampled, whatever their worlds called as they opened. One line is held
 * at a time: there may be many, with a task in each.
 *
 * @param about - `wants` says which rollouts' are read.
 * @throws UsageError where the disk refuses.
 */
export async function readBegins(
  dir: string,
  {
    files,
    index,
    runId,
    wants,
  }: {
    readonly files: Files;
    readonly index: RecordingIndex;
    /** The folder's own. */
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
    /** The folder's own. */
    readonly runId: string | undefined;
  },
): Promise<RecordedAttempt | undefined> {
  const lines = await readRecordingLines(dir, place);
  // The file may have been changed since its lines were found.
  return joinLines(
    lines.filter((line) => headOf(line)?.rolloutId === rolloutId),
    runId,
  );
}

/** The lines that stand in these places. */
export async function readRecordingLines(
  dir: string,
  { files, ranges }: { readonly files: Files; readonly ranges: readonly LineRange[] },
): Promise<readonly Buffer[]> {
  const lines: Buffer[] = [];
  await readEachLine(dir, { files, ranges }, (bytes) => void lines.push(bytes));
  return lines;
}

/** Calls back with the lines that stand in these places, one after the other. */
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
 * Puts the lines of an attempt together. One that is damaged, and those that build on it, are passed over;
 * those of a later start, which went on without them, are not.
 *
 * @param runId - Of the folder: what was recorded in another run is passed over, unless there is nothing
 *   else.
 * @returns nothing where there is none that can be used.
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

/** Takes the recordings of some rollouts out of a folder. */
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
