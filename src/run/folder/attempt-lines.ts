import {
  isOfOtherRun,
  readRecordingLine,
  type RecordingLine,
} from "../recording/recording-line.ts";

/** Reads the recorded lines of one attempt in order, and decides which of them count. */
export class AttemptLines {
  readonly #runId: string | undefined;
  #isForeign = false;
  #isForeignAtAll = false;
  #partCount = 0;
  #lastHash = "";
  #hasEnded = false;
  #isUnrecorded = false;
  #namedPartCount: number | undefined;

  /** @param runId - The folder's run: lines that were recorded in another run do not count. */
  constructor(runId: string | undefined) {
    this.#runId = runId;
  }

  /** True while the lines were recorded in another run. */
  get isForeign(): boolean {
    return this.#isForeign;
  }

  /** True if any line was recorded in another run. */
  get isForeignAtAll(): boolean {
    return this.#isForeignAtAll;
  }

  /** The number of lines with inputs that count. */
  get partCount(): number {
    return this.#partCount;
  }

  /** The hash of the last line that counts. */
  get lastHash(): string {
    return this.#lastHash;
  }

  /** True if the attempt has ended. */
  get hasEnded(): boolean {
    return this.#hasEnded;
  }

  /** True if only a start that records nothing has ended the attempt (see `EndLine`). */
  get isUnrecorded(): boolean {
    return this.#isUnrecorded;
  }

  /** The number of lines with inputs that the end line names. Absent if the end line names no number. */
  get namedPartCount(): number | undefined {
    return this.#namedPartCount;
  }

  /**
   * Reads the next line.
   *
   * @returns the line; `undefined` if it does not count, because it is damaged, continues a damaged line, or is of
   *   another run.
   */
  take(bytes: Buffer): RecordingLine | undefined {
    const line = readRecordingLine(bytes, this.#lastHash);
    if (line?.type === "begin") {
      this.#isForeign = isOfOtherRun(line, this.#runId);
      this.#isForeignAtAll ||= this.#isForeign;
    }
    if (line === undefined || this.#isForeign) return undefined;
    if (line.type === "begin") {
      // The lines that ended it before were lost.
      this.#hasEnded = false;
      this.#isUnrecorded = false;
      this.#namedPartCount = undefined;
      // Earlier inputs belong to a play whose first line was lost, so it was not resumed.
      if (line.start === 1) [this.#lastHash, this.#partCount] = ["", 0];
    } else if (line.type === "end") {
      if (line.isUnrecorded === true) this.#isUnrecorded = !this.#hasEnded;
      else this.#hasEnded = true;
      this.#namedPartCount = line.partCount;
    } else {
      if (line.part !== this.#partCount) return undefined;
      this.#partCount += 1;
      this.#lastHash = line.hash;
    }
    return line;
  }
}
