import type { Inputs } from "../../episode/inputs/input.ts";
import type { Clock } from "../../async/clock.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { GatheredLines } from "../disk/gathered-lines.ts";
import type { PackedRecording } from "../packed/packed-episode.ts";
import type { JsonlJournal } from "../disk/jsonl-journal.ts";
import {
  type BeginLine,
  type EndLine,
  type RecordingPoint,
  recordingFormat,
  writeInputsLine,
} from "./recording-line.ts";

/** Options of a recording. */
export interface RecordingOptions {
  readonly journal: JsonlJournal;
  readonly clock: Pick<Clock, "after">;
  /**
   * The machine's clock, by which `land()` may wait for other attempts. It differs from `clock` in simulated time,
   * because the disk takes real time. Default: `land()` does not wait.
   */
  readonly diskClock?: Pick<Clock, "sleep" | "now">;
  /** Removes secrets from the written texts. Ids and logprobs are numbers and are not changed. */
  readonly redactor?: Redactor;
  /** Syncs the columns of the turns so far. Called before each write. Default: nothing to sync. */
  readonly syncColumns?: () => Promise<void>;
  /** Called once, with the error of the disk. */
  readonly onFailure: (error: unknown) => void;
}

/** The time for which lines are collected before they are written together, in milliseconds. */
const gatherMs = 50;

/**
 * The time for which `land()` waits for other attempts if many are running, as a multiple of the
 * last write's duration. It starts at the end of that write and is at most `gatherMs`. A slow disk
 * or a busy process thus writes larger parts.
 */
const restFactor = 3;

/**
 * The number of attempts from which `land()` waits for others. With fewer, two rarely finish within
 * one wait.
 */
const manyAttempts = 8;

/** Records the inputs of one attempt. */
export interface AttemptRecording {
  readonly add: (inputs: Inputs) => void;
  /** Adds lines that another process wrote. They follow the lines so far (see `point()`). */
  readonly addPacked: (packed: PackedRecording) => void;
  /** The point after the lines so far. */
  readonly point: () => RecordingPoint;
  /** Records that the attempt has ended, so that it is not resumed. */
  readonly end: () => void;
}

/** The facts about an attempt that are recorded when it starts or is resumed. */
export interface RecordingStart extends Omit<BeginLine, "recording" | "type"> {
  /** The number of lines with inputs that are already recorded. Default 0. */
  readonly partCount?: number;
  /** The hash of the last of these lines. Default `""`. */
  readonly lastHash?: string;
}

/**
 * Writes the inputs of many attempts into one file. Inputs that arrive within a moment are written and synced together,
 * and no episode waits for that.
 */
export class RecordingJournal {
  readonly #options: RecordingOptions;
  readonly #gathered = new GatheredLines();
  #isScheduled = false;
  #failure: { readonly error: unknown } | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** The time by the machine's clock until which `land()` waits for others. */
  #restsUntilMs = -Infinity;
  /** The write for which all current calls of `land()` wait. */
  #landing: Promise<void> | undefined;

  constructor(options: RecordingOptions) {
    this.#options = options;
  }

  /** Starts or continues the recording of an attempt. */
  begin({ partCount = 0, lastHash = "", ...start }: RecordingStart): AttemptRecording {
    const { rolloutId, attempt, ...about } = start;
    const place = { rolloutId, attempt };
    const line: BeginLine = { recording: recordingFormat, type: "begin", ...place, ...about };
    this.#write(JSON.stringify(line));
    let part = partCount;
    let hash = lastHash;
    return {
      add: (inputs) => {
        const { redactor } = this.#options;
        const written = writeInputsLine({ ...place, part, hash }, inputs, (json) =>
          redactor === undefined ? json : redactor.jsonText(json),
        );
        part += 1;
        hash = written.hash;
        this.#write(written.text);
      },
      addPacked: (packed) => {
        this.#gathered.addBytes(packed.bytes);
        part = packed.partCount;
        hash = packed.lastHash;
        this.#schedule();
      },
      point: () => ({ part, hash }),
      end: () => {
        const line: EndLine = {
          recording: recordingFormat,
          type: "end",
          ...place,
          partCount: part,
        };
        this.#write(JSON.stringify(line));
      },
    };
  }

  #write(text: string): void {
    this.#gathered.add(text);
    this.#schedule();
  }

  #schedule(): void {
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#options.clock.after(gatherMs, () => {
      this.#isScheduled = false;
      void this.flush();
    });
  }

  /** Resolves when everything recorded so far is synced, or the disk has failed. */
  async flush(): Promise<void> {
    // An earlier call may still be writing.
    this.#writing = this.#writing.then(async () => await this.#writeGathered());
    await this.#writing;
  }

  /**
   * Resolves when everything recorded so far is synced: immediately or, with many running attempts, together with
   * others that land within a moment.
   *
   * @param underWay - The number of running attempts, with this one.
   * @throws the error of the disk, if a write of the recording has failed.
   */
  async land(underWay = 1): Promise<void> {
    const { diskClock } = this.#options;
    if (diskClock !== undefined && underWay >= manyAttempts && this.#landing === undefined) {
      const restMs = Math.min(this.#restsUntilMs - diskClock.now(), gatherMs);
      if (restMs > 0) this.#landing = this.#landLater(restMs, diskClock);
    }
    await (this.#landing ?? this.flush());
    if (this.#failure !== undefined) throw this.#failure.error;
  }

  async #landLater(restMs: number, diskClock: Pick<Clock, "sleep">): Promise<void> {
    await diskClock.sleep(restMs);
    // Later records may miss this write.
    this.#landing = undefined;
    await this.flush();
  }

  async #writeGathered(): Promise<void> {
    const { diskClock } = this.#options;
    const startedAtMs = diskClock?.now() ?? 0;
    const blocks = this.#gathered.take();
    if (blocks.length === 0 || this.#failure !== undefined) return;
    try {
      // A line names columns by hash, so their bytes come first.
      await this.#options.syncColumns?.();
      // The hash of these lines is not used.
      await this.#options.journal.appendLines([{ blocks, hash: "" }]);
    } catch (error) {
      this.#failure = { error };
      this.#options.onFailure(error);
    }
    const endedAtMs = diskClock?.now() ?? 0;
    this.#restsUntilMs = endedAtMs + (endedAtMs - startedAtMs) * restFactor;
  }
}
