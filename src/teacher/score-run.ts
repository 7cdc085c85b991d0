import path from "node:path";
import { forEachLimited } from "../async/for-each-limited.ts";
import { isTokenId } from "../engine/token-id.ts";
import { RolloutError, UsageError } from "../errors.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { readPlacedLines } from "../run/disk/placed-lines.ts";
import { codeOf, type Files } from "../run/disk/files.ts";
import { storageError } from "../run/disk/storage-error.ts";
import { samplesFile } from "../run/folder/scan-claims.ts";
import { parseJsonText } from "../json/parse-json.ts";
import { isObject } from "../values/is-object.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import { scoreRow, type ScoredRow, type ScoringTerms } from "./score-row.ts";
import type { TeacherRow } from "./teacher-record.ts";
import type { TeacherWriter } from "./teacher-writer.ts";

/** A row of a run that a teacher can score. */
export type RunRow = ScoredRow & Omit<TeacherRow, "columns">;

/** A row without columns, with the reason. JSON-able. */
export interface LeftOutRow {
  readonly rolloutId: string;
  readonly segment: number;
  /** The code of the engine's failure, such as `engine/prompt-too-long`. */
  readonly code: string;
  readonly message: string;
}

/** The counts of a scoring. JSON-able. */
export interface ScoringCounts {
  /** Number of rows that were read. */
  readonly rowCount: number;
  /** Number of rows that were scored by this call. */
  readonly scoredCount: number;
  /** Number of rows that earlier calls had scored. */
  readonly knownCount: number;
  /** Number of tokens that were scored by this call. */
  readonly tokenCount: number;
  /** Number of damaged lines, and of lines without ids. */
  readonly unreadableCount: number;
  readonly leftOutCount: number;
}

/** The result of scoring a run. JSON-able. */
export interface ScoringResult extends ScoringCounts {
  /** The first hundred rows that could not be scored. */
  readonly leftOut: readonly LeftOutRow[];
}

/** Settings of `scoreRun()`. */
export interface ScoreRunOptions {
  readonly writer: TeacherWriter;
  readonly terms: ScoringTerms;
  /** Number of rows that are scored at the same time. Default 32. */
  readonly concurrency?: number;
  /** Maximum number of ids of a row. Longer rows are left out. */
  readonly contextLength?: number;
  readonly signal?: AbortSignal;
  readonly onProgress?: (counts: ScoringCounts) => void;
  readonly files?: Files;
}

/** Failures that concern one row. All others concern the teacher, and end the scoring. */
const rowFailures = new Set(["engine/prompt-too-long", "engine/nan", "engine/bad-reply"]);

/** Number of rows that are named. */
const mostNamed = 100;

/**
 * Scores the rows of a run's folder that the teacher has not scored yet, also while the run is played. Rows that could
 * not be scored are named and left out; a later call tries them again.
 *
 * @throws UsageError if the rows cannot be read, the teacher has another vocabulary, or the disk fails.
 * @throws RolloutError as `Engine.score()` does, if the teacher does not answer. What was scored is kept.
 */
export async function scoreRun(runDir: string, options: ScoreRunOptions): Promise<ScoringResult> {
  const { files = storedFiles } = options;
  const file = path.resolve(runDir, samplesFile);
  const scoring = new Scoring(options);
  await scoring.scoreLines(linesOf(files, file));
  return scoring.result();
}

async function* linesOf(files: Files, file: string): AsyncGenerator<string> {
  try {
    for await (const { text } of readPlacedLines(files, file)) yield text;
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw storageError("read", file, error);
    throw new UsageError(`Cannot read ${file}: no such file, expected a run's folder`);
  }
}

/** Scores rows, and counts them. */
export class Scoring {
  readonly #options: ScoreRunOptions;
  readonly #leftOut: LeftOutRow[] = [];
  readonly #counts = {
    rowCount: 0,
    scoredCount: 0,
    knownCount: 0,
    tokenCount: 0,
    unreadableCount: 0,
    leftOutCount: 0,
  };

  constructor(options: ScoreRunOptions) {
    this.#options = options;
  }

  result(): ScoringResult {
    return { ...this.#counts, leftOut: [...this.#leftOut] };
  }

  /**
   * Scores the rows of lines of `samples.jsonl`.
   *
   * @throws as `scoreRun()`.
   */
  async scoreLines(lines: AsyncGenerator<string>): Promise<void> {
    const { concurrency = 32, signal } = this.#options;
    await forEachLimited(this.#newRows(lines), concurrency, {
      work: async (row, stop) => await this.#score(row, stop),
      ...(signal && { signal }),
    });
  }

  async *#newRows(lines: AsyncGenerator<string>): AsyncGenerator<RunRow> {
    for await (const line of lines) {
      this.#counts.rowCount++;
      const row = parseRow(line);
      if (row === undefined) this.#counts.unreadableCount++;
      else if (this.#options.writer.has(row)) this.#counts.knownCount++;
      else yield row;
      this.#options.onProgress?.(this.#counts);
    }
  }

  async #score(row: RunRow, stop: AbortSignal): Promise<void> {
    const { terms, writer, contextLength = Infinity } = this.#options;
    const { rolloutId, segment, sampleHash, tokenIds, promptLength } = row;
    if (tokenIds.length > contextLength) {
      const message = `${tokenIds.length} tokens exceed the teacher's context of ${contextLength}`;
      this.#leaveOut({ rolloutId, segment, code: "engine/prompt-too-long", message });
      return;
    }
    try {
      const columns = await scoreRow(row, terms, stop);
      await writer.write({ rolloutId, segment, sampleHash, columns });
    } catch (error) {
      if (!(error instanceof RolloutError)) throw error;
      if (!rowFailures.has(error.code)) throw withAdvice(error, row);
      this.#leaveOut({ rolloutId, segment, code: error.code, message: error.message });
      return;
    }
    this.#counts.scoredCount++;
    this.#counts.tokenCount += tokenIds.length - promptLength;
    this.#options.onProgress?.(this.#counts);
  }

  #leaveOut(row: LeftOutRow): void {
    this.#counts.leftOutCount++;
    if (this.#leftOut.length < mostNamed) this.#leftOut.push(row);
    this.#options.onProgress?.(this.#counts);
  }
}

/** Names the row of a request that the teacher refused. */
function withAdvice(error: RolloutError, { rolloutId }: RunRow): Error {
  if (error.code !== "engine/bad-request") return error;
  return new UsageError(
    `Cannot score ${rolloutId}: ${error.message}; the teacher must have the policy's vocabulary, and list so many ids`,
    { cause: error },
  );
}

/** Reads a line. Returns `undefined` if it is damaged: the last line of a run that is played may be incomplete. */
function parseRow(line: string): RunRow | undefined {
  const value = parseJsonText(line);
  if (!isObject(value)) return undefined;
  const { rolloutId, segment, tokenIds, promptLength } = value;
  const isSound =
    typeof rolloutId === "string" &&
    Number.isSafeInteger(segment) &&
    Array.isArray(tokenIds) &&
    tokenIds.every((id) => isTokenId(id)) &&
    Number.isSafeInteger(promptLength) &&
    (promptLength as number) >= 1 &&
    (promptLength as number) <= tokenIds.length;
  if (!isSound) return undefined;
  return {
    rolloutId,
    segment: segment as number,
    tokenIds,
    promptLength: promptLength as number,
    sampleHash: hashRow(value),
  };
}
