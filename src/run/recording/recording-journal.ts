import type { Inputs } from "../../episode/inputs/input.ts";
import type { Clock } from "../../async/clock.ts";
import type { Redactor } from "../../secrets/redactor.ts";
import { GatheredLines } from "../disk/gathered-lines.ts";
import type { JsonlJournal } from "../disk/jsonl-journal.ts";
import {
  type BeginLine,
  type EndLine,
  recordingFormat,
  writeInputsLine,
} from "./recording-line.ts";

/** How a recording is written. */
export interface RecordingOptions {
  readonly journal: JsonlJournal;
  readonly clock: Pick<Clock, "after">;
  /**
   * The machine's own clock: what lands where many are under way may wait for others by it (see `land()`), for how long
   * a disk takes is nobody's simulated time. Default: it waits for nobody.
   */
  readonly diskClock?: Pick<Clock, "sleep" | "now">;
  /** Takes secrets out of what is written; ids and logprobs are numbers and stay. */
  readonly redactor?: Redactor;
  /** Told once where the disk refuses it. */
  readonly onFailure: (error: unknown) => void;
}

/** How long lines wait for others before they are written together, in milliseconds. */
const gatherMs = 50;

/**
 * Where many are under way, what is left of one that ends waits for that of others until so many times as long has
 * passed as the last write took, and no longer than `gatherMs`: a slow disk, or a busy process, writes in larger parts.
 */
const restFactor = 3;

/** Of fewer attempts hardly two end within a rest. */
const manyAttempts = 8;

/** The recording of one attempt: takes its inputs as they come. */
export interface AttemptRecording {
  readonly add: (inputs: Inputs) => void;
  /** The attempt came to its end: it is not gone on with. */
  readonly end: () => void;
}

/** What is known of an attempt when its recording begins or goes on. */
export interface RecordingStart extends Omit<BeginLine, "recording" | "type"> {
  /** Lines of inputs that are there. Default 0. */
  readonly partCount?: number;
  /** The hash of the last of them. Default `""`. */
  readonly lastHash?: string;
}

/**
 * Writes the inputs of many attempts into one file: what comes within a moment is written and synced
 * together, and no episode waits for it.
 */
export class RecordingJournal {
  readonly #options: RecordingOptions;
  readonly #gathered = new GatheredLines();
  #isScheduled = false;
  #failure: { readonly error: unknown } | undefined;
  #writing: Promise<void> = Promise.resolve();
  /** Until then, by the machine's clock, what lands waits for others. */
  #restsUntilMs = -Infinity;
  /** The write that all wait for which land meanwhile. */
  #landing: Promise<void> | undefined;

  constructor(options: RecordingOptions) {
    this.#options = options;
  }

  /** Begins the recording of an attempt, or goes on with it. */
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
    if (this.#isScheduled) return;
    this.#isScheduled = true;
    this.#options.clock.after(gatherMs, () => {
      this.#isScheduled = false;
      void this.flush();
    });
  }

  /** Resolves once all that was recorded so far is on the disk, or the disk has refused it. */
  async flush(): Promise<void> {
    // What was taken by an earlier call may still be under way.
    this.#writing = this.#writing.then(async () => await this.#writeGathered());
    await this.#writing;
  }

  /**
   * Resolves once all that was recorded so far is on the disk: at once or, where many attempts are under way, with what
   * others land within a moment.
   *
   * @param underWay - Attempts under way, this one included.
   * @throws what the disk said where it has refused anything of this or of what came before.
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
    // What is recorded from here on may come too late for this write.
    this.#landing = undefined;
    await this.flush();
  }

  async #writeGathered(): Promise<void> {
    const { diskClock } = this.#options;
    const startedAtMs = diskClock?.now() ?? 0;
    const blocks = this.#gathered.take();
    if (blocks.length === 0 || this.#failure !== undefined) return;
    try {
      // Nobody asks for their hash.
      await this.#options.journal.appendLines([{ blocks, hash: "" }]);
    } catch (error) {
      this.#failure = { error };
      this.#options.onFailure(error);
    }
    const endedAtMs = diskClock?.now() ?? 0;
    this.#restsUntilMs = endedAtMs + (endedAtMs - startedAtMs) * restFactor;
  }
}
