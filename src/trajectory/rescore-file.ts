import { createReadStream } from "node:fs";
import { forEachLimited } from "../async/for-each-limited.ts";
import type { Engine, LogprobConvention } from "../engine/engine.ts";
import { UsageError } from "../errors.ts";
import { splitLines } from "../text/split-lines.ts";
import type { Sample } from "./sample.ts";
import { parseLine, type ReadBytes, whyNoLine } from "./verify-file.ts";
import { verifySample, type Violation } from "./verify-sample.ts";

/** A sampled token with its logprob computed again. JSON-able. */
export interface RescoredToken {
  /** 1-based. */
  readonly line: number;
  readonly rolloutId: string;
  readonly turnIndex: number;
  /** Index in the row's `tokenIds`. */
  readonly index: number;
  readonly tokenId: number;
  readonly recorded: number;
  readonly rescored: number;
  /** Absolute difference of the logprobs, in nats. */
  readonly difference: number;
}

/** A row that could not be scored. JSON-able. */
export interface SkippedRow extends Violation {
  /** 1-based. */
  readonly line: number;
}

/** The result of computing a file's logprobs again. JSON-able. */
export interface FileRescoring {
  readonly engine: string;
  readonly logprobConvention: LogprobConvention;
  readonly temperature: number;
  /** Sampled tokens that were scored. */
  readonly tokenCount: number;
  /** Number of rows that were scored. */
  readonly rowCount: number;
  /** Number of rows without sampled tokens. */
  readonly emptyCount: number;
  /** Rows that could not be scored, in order, with the reason. `verifyFile()` reports other problems. */
  readonly skipped: readonly SkippedRow[];
  /** Mean absolute difference in nats. Absent if no token was scored. */
  readonly meanDifference?: number;
  /** The token with the largest difference. Absent if no token was scored. */
  readonly largest?: RescoredToken;
  readonly tolerance: number;
  readonly beyondToleranceCount: number;
  /** The token with the largest difference of each row that exceeds the tolerance, in order. */
  readonly beyondTolerance: readonly RescoredToken[];
}

/** Settings of `rescoreFile()`. */
export interface RescoreOptions {
  /** An engine that can score ids. */
  readonly engine: Engine;
  /** The temperature at which the samples were drawn. */
  readonly temperature: number;
  /** Largest difference that passes, in nats. */
  readonly tolerance: number;
  /** Number of rows that are scored at the same time. Default 32. */
  readonly concurrency?: number;
  readonly signal?: AbortSignal;
  /** Reads the file. Default: as it is on the disk. */
  readonly read?: ReadBytes;
}

interface Row {
  readonly line: number;
  readonly sample: Sample;
}

/**
 * Computes the logprob of every sampled token of a `samples.jsonl` file again, after exactly the ids before it in the
 * row, and compares it with the recorded one.
 *
 * @throws UsageError if the file cannot be read or the engine cannot score.
 * @throws RolloutError as `Engine.score()` does.
 */
export async function rescoreFile(file: string, options: RescoreOptions): Promise<FileRescoring> {
  const { engine, temperature, tolerance, concurrency = 32, signal } = options;
  const { read = createReadStream } = options;
  const score = engine.score?.bind(engine);
  if (score === undefined) {
    throw new UsageError(
      `Cannot score samples with ${engine.kind}: expected an engine that can, such as reference or llama`,
    );
  }
  const { logprobConvention } = await engine.describe({ ...(signal && { signal }) });
  if (logprobConvention === undefined) {
    throw new UsageError(
      `Cannot score samples with ${engine.kind}: it does not describe its logprobs`,
    );
  }
  const tally = new RescoreTally(tolerance);
  const rescoreRow = async ({ line, sample }: Row, stop: AbortSignal): Promise<void> => {
    const { turns, tokenIds } = sample;
    const from = turns[0]!.start;
    const ids = tokenIds.slice(0, turns.at(-1)!.end);
    const scores = await score({ ids, from, sampling: { temperature } }, { signal: stop });
    tally.add(line, sample, (index) => scores[index - from]!);
  };
  await forEachLimited(readRows(read(file), { file, tally }), concurrency, {
    work: rescoreRow,
    ...(signal && { signal }),
  });
  return { engine: engine.kind, logprobConvention, temperature, ...tally.result() };
}

/** Yields the rows with sampled tokens. */
async function* readRows(
  bytes: AsyncIterable<Uint8Array>,
  { file, tally }: { readonly file: string; readonly tally: RescoreTally },
): AsyncGenerator<Row> {
  let line = 0;
  try {
    for await (const text of splitLines(bytes, file)) {
      line++;
      if (text.trim() === "") continue;
      const row = parseLine(text);
      const reason = whyNotScored(row);
      if (reason !== undefined) tally.skipped.push({ line, ...reason });
      else if ((row as Sample).turns.every(({ start, end }) => start === end)) tally.emptyCount++;
      else yield { line, sample: row as Sample };
    }
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: expected a readable file of samples`, {
      cause: error,
    });
  }
}

/** Rules that a row must pass to be scored. They concern the ids and the places of the turns. */
const needed = new Set(["json", "shape", "token-ids", "length", "prompt-length", "turns"]);

function whyNotScored(row: unknown): Violation | undefined {
  if (row === undefined) return { rule: "json", detail: whyNoLine };
  return verifySample(row).find(({ rule }) => needed.has(rule));
}

class RescoreTally {
  readonly skipped: SkippedRow[] = [];
  emptyCount = 0;
  #rowCount = 0;
  readonly #tolerance: number;
  #tokenCount = 0;
  #sum = 0;
  #largest: RescoredToken | undefined;
  #beyondCount = 0;
  readonly #beyond: RescoredToken[] = [];

  constructor(tolerance: number) {
    this.#tolerance = tolerance;
  }

  add(line: number, sample: Sample, scoreOf: (index: number) => number): void {
    let worst: RescoredToken | undefined;
    for (const { turnIndex, start, end } of sample.turns) {
      for (let index = start; index < end; index++) {
        const recorded = sample.logprobs[index]!;
        const rescored = scoreOf(index);
        const difference = distance(recorded, rescored);
        this.#tokenCount++;
        this.#sum += difference;
        if (difference > this.#tolerance) this.#beyondCount++;
        if (worst !== undefined && difference <= worst.difference) continue;
        const { rolloutId, tokenIds } = sample;
        const tokenId = tokenIds[index]!;
        worst = { line, rolloutId, turnIndex, index, tokenId, recorded, rescored, difference };
      }
    }
    this.#rowCount++;
    if (worst === undefined) return;
    if (worst.difference > this.#tolerance) this.#beyond.push(worst);
    if (this.#largest === undefined || comparePlaces(worst, this.#largest) < 0) {
      this.#largest = worst;
    }
  }

  result(): Omit<FileRescoring, "engine" | "logprobConvention" | "temperature"> {
    return {
      tokenCount: this.#tokenCount,
      rowCount: this.#rowCount,
      emptyCount: this.emptyCount,
      skipped: this.skipped,
      ...(this.#largest !== undefined && {
        meanDifference: this.#sum / this.#tokenCount,
        largest: this.#largest,
      }),
      tolerance: this.#tolerance,
      beyondToleranceCount: this.#beyondCount,
      beyondTolerance: this.#beyond.toSorted((left, right) => left.line - right.line),
    };
  }
}

/** Returns the difference in nats. Infinite if one value is not a number. */
function distance(left: unknown, right: unknown): number {
  if (typeof left !== "number" || typeof right !== "number") return Infinity;
  const difference = Math.abs(left - right);
  return Number.isNaN(difference) ? Infinity : difference;
}

/** Sorts by difference, largest first, then by line. */
function comparePlaces(left: RescoredToken, right: RescoredToken): number {
  return right.difference - left.difference || left.line - right.line;
}
