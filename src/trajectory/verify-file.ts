import { createReadStream } from "node:fs";
import { UsageError } from "../errors.ts";
import { splitLines } from "../internal/split-lines.ts";
import { verifySample, type Violation } from "./verify-sample.ts";

/** What checking a file of samples found. JSON-able. */
export interface FileVerification {
  readonly file: string;
  /** Number of rows read. */
  readonly samples: number;
  /** `line` is 1-based. */
  readonly violations: readonly (Violation & { readonly line: number })[];
}

interface RolloutSeen {
  readonly line: number;
  segmentCount: number;
  readonly end: string;
  readonly turnIndexes: Set<number>;
}

/**
 * Checks a `samples.jsonl` file: each row for itself (`verifySample()`), and the rows of one rollout
 * together: segments numbered without gaps or repeats, one outcome and reward, and no turn that is
 * trained in two segments.
 *
 * @throws UsageError where the file cannot be read.
 */
export async function verifyFile(file: string): Promise<FileVerification> {
  const violations: (Violation & { line: number })[] = [];
  const rollouts = new Map<string, RolloutSeen>();
  let line = 0;
  let samples = 0;
  try {
    for await (const text of splitLines(createReadStream(file))) {
      line++;
      if (text.trim() === "") continue;
      samples++;
      const row = parseRow(text);
      const found =
        row === undefined
          ? [{ rule: "json", detail: "the line is no valid JSON (a torn line?)" }]
          : [...verifySample(row), ...checkRollout(row, line, rollouts)];
      for (const violation of found) violations.push({ line, ...violation });
    }
  } catch (error) {
    throw new UsageError(`Cannot read ${file}: expected a readable file of samples`, {
      cause: error,
    });
  }
  return { file, samples, violations };
}

function parseRow(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch (error) {
    if (error instanceof SyntaxError) return undefined;
    throw error;
  }
}

function checkRollout(row: unknown, line: number, rollouts: Map<string, RolloutSeen>): Violation[] {
  if (typeof row !== "object" || row === null) return [];
  const { rolloutId, segment, outcome, reward, turns } = row as Record<string, unknown>;
  if (typeof rolloutId !== "string" || typeof segment !== "number") return [];
  const end = JSON.stringify([outcome, reward]);
  const seen = rollouts.get(rolloutId) ?? { line, segmentCount: 0, end, turnIndexes: new Set() };
  rollouts.set(rolloutId, seen);
  const found: Violation[] = [];
  if (segment !== seen.segmentCount) {
    found.push({
      rule: "segments",
      detail: `segment ${segment} of ${rolloutId}, expected ${seen.segmentCount}`,
    });
  }
  seen.segmentCount = Math.max(seen.segmentCount, segment + 1);
  if (end !== seen.end) {
    found.push({
      rule: "segments",
      detail: `segments of ${rolloutId} differ in outcome or reward (see line ${seen.line})`,
    });
  }
  for (const turnIndex of turnIndexes(turns)) {
    if (seen.turnIndexes.has(turnIndex)) {
      found.push({
        rule: "trained-once",
        detail: `turn ${turnIndex} of ${rolloutId} is trained twice`,
      });
    }
    seen.turnIndexes.add(turnIndex);
  }
  return found;
}

function turnIndexes(turns: unknown): number[] {
  if (!Array.isArray(turns)) return [];
  return turns.flatMap((turn: unknown) => {
    const index = (turn as { turnIndex?: unknown } | null)?.turnIndex;
    return typeof index === "number" ? [index] : [];
  });
}
