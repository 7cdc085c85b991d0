import path from "node:path";
import { withResolvers, type Resolvers } from "../async/with-resolvers.ts";
import { describeError, RolloutError } from "../errors.ts";
import { parseJsonText } from "../json/parse-json.ts";
import { codeOf } from "../run/disk/files.ts";
import { readPlacedLines } from "../run/disk/placed-lines.ts";
import { samplesFile } from "../run/folder/scan-claims.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { Scoring, scoreRun, type ScoreRunOptions, type ScoringResult } from "./score-run.ts";

/** The result of scoring a run's rows while they were written. JSON-able. */
export interface FollowResult extends ScoringResult {
  /** The reason why rows lack the teacher's columns. Absent if none does for another reason than `leftOut`. */
  readonly failure?: string;
}

/**
 * Scores the rows of a run as they are written. Reads new lines of the run's file after each call of `wake()`, so that
 * nothing of an episode is kept in memory. The file is read once more at the end, which finds rows that failed before.
 */
export class RunFollower {
  readonly #runDir: string;
  readonly #options: ScoreRunOptions;
  readonly #scoring: Scoring;
  /** The byte after the last line that was read. */
  #offset = 0;
  #news: Resolvers<void> = withResolvers();
  #isEnding = false;
  /** An error that a later try would meet again. */
  #broken: unknown;
  readonly #following: Promise<void>;

  constructor(runDir: string, options: ScoreRunOptions) {
    this.#runDir = runDir;
    this.#options = options;
    this.#scoring = new Scoring(options);
    this.#following = this.#follow();
  }

  /** Reads the rows that were written since the last call. */
  wake(): void {
    this.#news.resolve();
  }

  /**
   * Scores the remaining rows. Call it after the run's last row was written.
   *
   * Does not throw: a failure of the teacher is no failure of the run.
   */
  async finish(): Promise<FollowResult> {
    this.#isEnding = true;
    this.wake();
    await this.#following;
    const before = this.#scoring.result();
    try {
      if (this.#broken !== undefined) throw this.#broken;
      const rest = await scoreRun(this.#runDir, this.#options);
      const scoredCount = before.scoredCount + rest.scoredCount;
      const knownCount = rest.knownCount - before.scoredCount;
      return {
        ...rest,
        scoredCount,
        knownCount: Math.max(0, knownCount),
        tokenCount: before.tokenCount + rest.tokenCount,
      };
    } catch (error) {
      return { ...before, failure: describeError(error) };
    }
  }

  async #follow(): Promise<void> {
    while (!this.#isEnding && this.#broken === undefined) {
      await this.#news.promise;
      this.#news = withResolvers();
      if (this.#isEnding) return;
      try {
        await this.#scoring.scoreLines(this.#newLines());
      } catch (error) {
        // An outage may end. The last pass scores the rows that failed.
        if (!(error instanceof RolloutError)) this.#broken = error;
      }
    }
  }

  async *#newLines(): AsyncGenerator<string> {
    const file = path.resolve(this.#runDir, samplesFile);
    const { files = storedFiles } = this.#options;
    try {
      for await (const { text, place } of readPlacedLines(files, file, this.#offset)) {
        // A line that is still being written is read again later.
        if (parseJsonText(text) === undefined) return;
        this.#offset = place.offset + place.length + 1;
        yield text;
        if (this.#isEnding) return;
      }
    } catch (error) {
      if (codeOf(error) !== "ENOENT") throw error;
    }
  }
}
