import {
  isOfOtherRun,
  readRecordingLine,
  type RecordingLine,
} from "../recording/recording-line.ts";

/** Follows the recorded lines of one rollout's attempt in their order, and tells which of them count. */
export class AttemptLines {
  readonly #runId: string | undefined;
  #isForeign = false;
  #isForeignAtAll = false;
  #partCount = 0;
  #lastHash = "";
  #hasEnded = false;
  #isUnrecorded = false;
  #saidPartCount: number | undefined;

  /** @param runId - Of the folder: what was recorded in another run does not count. */
  constructor(runId: string | undefined) {
    this.#runId = runId;
  }

  /** Whether the lines that come now were recorded in another run. */
  get isForeign(): boolean {
    return this.#isForeign;
  }

  /** Whether any was. */
  get isForeignAtAll(): boolean {
    return this.#isForeignAtAll;
  }

  /** Lines of inputs that count. */
  get partCount(): number {
    return this.#partCount;
  }

  /** The hash of the last of them. */
  get lastHash(): string {
    return this.#lastHash;
  }

  /** Whether the attempt came to its end. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** Whether it did in a start that records nothing, if at all (see `EndLine`). */
  get isUnrecorded(): boolean {
    return this.#isUnrecorded;
  }

  /** How many lines of inputs there are by what ended it; absent where that does not say. */
  get saidPartCount(): number | undefined {
    return this.#saidPartCount;
  }

  /**
   * Takes the next line.
   *
   * @returns the line, where it counts: one that is damaged or builds on such a one does not, nor does another run's.
   */
  take(bytes: Buffer): RecordingLine | undefined {
    const line = readRecordingLine(bytes, this.#lastHash);
    if (line?.type === "begin") {
      this.#isForeign = isOfOtherRun(line, this.#runId);
      this.#isForeignAtAll ||= this.#isForeign;
    }
    if (line === undefined || this.#isForeign) return undefined;
    if (line.type === "begin") {
      // Whatever ended it before was lost.
      this.#hasEnded = false;
      this.#isUnrecorded = false;
      this.#saidPartCount = undefined;
      // Inputs before it are of a play whose own beginning was lost, and which was not gone on with.
      if (line.start === 1) [this.#lastHash, this.#partCount] = ["", 0];
    } else if (line.type === "end") {
      if (line.isUnrecorded === true) this.#isUnrecorded = !this.#hasEnded;
      else this.#hasEnded = true;
      this.#saidPartCount = line.partCount;
    } else {
      if (line.part !== this.#partCount) return undefined;
      this.#partCount += 1;
      this.#lastHash = line.hash;
    }
    return line;
  }
}
