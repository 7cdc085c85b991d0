import { isObject } from "../values/is-object.ts";
import { createReadStream } from "node:fs";
import { UsageError } from "../errors.ts";
import { maxRowDepth, nestsDeeper } from "../json/nesting.ts";
import { splitLines } from "../text/split-lines.ts";
import { RolloutCheck } from "./rollout-check.ts";
import { verifySample, type SampleFacts, type Violation } from "./verify-sample.ts";
import { type RawRow } from "./violation.ts";

/** A violation with its 1-based line. */
export type LineViolation = Violation & { readonly line: number };

/** The result of checking a samples file. JSON-able. */
export interface FileVerification {
  readonly file: string;
  /** Number of rows read. */
  readonly samples: number;
  readonly violations: readonly LineViolation[];
}

/** Opens a file's bytes. */
export type ReadBytes = (file: string) => AsyncIterable<Uint8Array>;

/** Options of `verifyFile()`. */
export interface VerifyFileOptions {
  readonly facts?: SampleFacts;
  /** Reads the file. Default: as it is on the disk. */
  readonly read?: ReadBytes;
  /** Called with each row that is a JSON object, and its violations. Returns more violations of the row's line. */
  readonly checkRow?: (row: RawRow, found: readonly Violation[]) => Promise<readonly Violation[]>;
}

/**
 * Checks a `samples.jsonl` file: each row (`verifySample()`), and the rows of each rollout together. Segments are
 * numbered without gaps or repeats, turns continue, all rows have one identity and one end, and no turn is trained
 * twice.
 *
 * @throws UsageError if the file cannot be read.
 */
export async function verifyFile(
  file: string,
  { read = createReadStream, ...options }: VerifyFileOptions = {},
): Promise<FileVerification> {
  return await verifyLines(file, numberLines(splitLines(read(file), file)), options);
}

/** Checks lines of `file` that the caller reads. `line` is 1-based. */
export async function verifyLines(
  file: string,
  lines: AsyncIterable<{ readonly line: number; readonly text: string }>,
  { facts = {}, checkRow = () => Promise.resolve([]) }: Omit<VerifyFileOptions, "read"> = {},
): Promise<FileVerification> {
  const violations: LineViolation[] = [];
  const rollouts = new RolloutCheck(facts);
  let samples = 0;
  for await (const { line, text } of requireReadable(file, lines)) {
    if (text.trim() === "") continue;
    samples++;
    const row = parseLine(text);
    if (row === undefined) {
      violations.push({ line, rule: "json", detail: whyNoLine });
      continue;
    }
    const own = verifySample(row, facts);
    const others = isObject(row)
      ? [...rollouts.check(row, line), ...(await checkRow(row, own))]
      : [];
    for (const violation of [...own, ...others]) violations.push({ line, ...violation });
  }
  violations.push(...rollouts.finish());
  return { file, samples, violations: violations.toSorted((a, b) => a.line - b.line) };
}

async function* numberLines(lines: AsyncIterable<string>) {
  let line = 0;
  for await (const text of lines) yield { line: ++line, text };
}

async function* requireReadable<Line>(
  file: string,
  lines: AsyncIterable<Line>,
): AsyncGenerator<Line> {
  try {
    yield* lines;
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: expected a readable file of samples`, {
      cause: error,
    });
  }
}

/** The violation for a line that `parseLine()` cannot read. */
export const whyNoLine = "the line is not valid JSON, or nests too deeply (a torn line?)";

/** Parses a line of JSON. Returns `undefined` if it is invalid or nests too deeply. */
export function parseLine(text: string): unknown {
  try {
    const value: unknown = JSON.parse(text);
    return nestsDeeper(text, maxRowDepth, () => value) ? undefined : value;
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}
