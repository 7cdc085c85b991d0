import type { Inputs } from "../../episode/inputs/input.ts";
import type { Clock } from "../../async/clock.ts";
import { baseOf, recordedAtOf, type AttemptJob } from "../job/attempt-job.ts";
import { readLines, type ReadLines } from "../job/job-recording.ts";
import type { SharedPlace } from "../place/shared-place.ts";

/** The time for which lines are gathered before they are written together, in milliseconds. */
const gatherMs = 50;

/** The recording of a play in the shared place, from which another worker can resume. */
export interface SharedRecording {
  /** The number of times the play was taken, from 1, as far as the shared place shows. */
  readonly number: number;
  /** The recording of an earlier worker. `undefined` if there is none. */
  readonly earlier: ReadLines | undefined;
  /** Writes a line in the background. */
  readonly add: (line: string) => void;
  /** Marks the earlier lines as invalid, because this play starts from the first turn. */
  readonly restart: () => void;
  /** Writes the gathered lines. Resolves when all writes have ended. */
  readonly close: () => Promise<void>;
  /** Removes the recording of the play. Call it when the result is in the store. */
  readonly remove: () => Promise<void>;
}

/**
 * Opens the recording of a play.
 * @param about - `id` is the job's id. `mayRecord` is called before each write; once it returns
 *   false, nothing more is written.
 * @returns `undefined` if files in the place cannot grow.
 */
export async function openSharedRecording(
  { recordings }: SharedPlace,
  {
    id,
    job,
    clock,
    mayRecord,
    syncColumns,
  }: {
    readonly id: string;
    readonly job: AttemptJob;
    readonly clock: Pick<Clock, "after">;
    readonly mayRecord: () => Promise<boolean>;
    /** Syncs the side columns that the lines so far name. Default: nothing to sync. */
    readonly syncColumns?: () => Promise<void>;
  },
): Promise<SharedRecording | undefined> {
  if (recordings === undefined) return undefined;
  const folder = `recordings/${job.run}/${id}`;
  const { number, earlier, append } = await recordings.begin(folder);
  const head = JSON.stringify({ recording: 1, base: baseOf(job) });
  const found = earlier
    .map((bytes) => linesOf(bytes, head, job))
    .reduce<ReadLines | undefined>(longer, undefined);
  let gathered = [head, ...(found?.lines ?? [])].map((line) => `${line}\n`).join("");
  let isScheduled = false;
  let isForbidden = false;
  let writing: Promise<void> = Promise.resolve();
  const write = async (): Promise<void> => {
    const text = gathered;
    if (text === "" || isForbidden) return;
    isForbidden = !(await mayRecord());
    if (isForbidden) return;
    // Another worker finds the bytes of every part that a line names.
    await syncColumns?.();
    gathered = gathered.slice(text.length);
    await append(text);
  };
  const flush = (): Promise<void> => {
    isScheduled = false;
    // If the check fails now, the next write includes these lines.
    writing = writing.then(write).catch(() => {});
    return writing;
  };
  const add = (line: string): void => {
    gathered += `${line}\n`;
    if (isScheduled) return;
    isScheduled = true;
    clock.after(gatherMs, () => void flush());
  };
  return {
    number,
    earlier: found,
    add,
    // Readers start after the last head, so a second head makes the earlier lines invalid.
    restart: () => add(head),
    close: flush,
    remove: async () => {
      await flush();
      await recordings.remove(folder);
    },
  };
}

function linesOf(bytes: Buffer, head: string, job: AttemptJob): ReadLines | undefined {
  // The text after the last line feed is not a complete line.
  const texts = bytes.toString("utf8").split("\n").slice(0, -1);
  const start = texts.lastIndexOf(head);
  if (start < 0) return undefined;
  const read = readLines(texts.slice(start + 1), job, recordedAtOf(job));
  return read.lines.length === 0 ? undefined : read;
}

function longer(one: ReadLines | undefined, other: ReadLines | undefined): ReadLines | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return other.lines.length > one.lines.length ? other : one;
}

/**
 * Reads the recording that the hand-out sent for resuming. Returns `undefined` if it is damaged.
 */
export function readPast(text: string, job: AttemptJob): readonly Inputs[] | undefined {
  const { parts } = readLines([text], job);
  return parts.length === 1 ? parts : undefined;
}
