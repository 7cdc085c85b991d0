import { isChecked, markChecked } from "./check-columns.ts";
import type { ColumnPart, ColumnParts } from "./column-part.ts";
import { isOfAllTokens, namesOf, rowBytesOf, type ColumnSpecs } from "./column-specs.ts";
import type { ColumnName } from "./column-specs.ts";
import { hashInTurns } from "./hash-in-turns.ts";
import { decodeRagged, encodeRagged } from "./ragged-rows.ts";

/** Consecutive sampled ids of one version of the weights. */
interface VersionRun {
  readonly tokenCount: number;
  readonly policyVersion: string;
}

/**
 * Assigns the rows of one reply to the versions of the weights that computed them. Splits parts where the version
 * changed.
 *
 * The row of a token was computed by the weights that sampled the next token. The prompt's rows belong to the first
 * version.
 *
 * @param columns - One part for each column, or none.
 */
export async function splitByVersion(
  columns: ColumnParts,
  {
    runs,
    promptLength,
    specs,
  }: {
    readonly runs: readonly VersionRun[];
    readonly promptLength: number;
    readonly specs: ColumnSpecs;
  },
): Promise<ColumnParts> {
  const versioned: Partial<Record<ColumnName, readonly ColumnPart[]>> = {};
  for (const name of namesOf(specs)) {
    const parts: ColumnPart[] = [];
    for (const part of columns[name] ?? []) {
      let end = promptLength - (isOfAllTokens(name) ? 1 : 0);
      let from = part.from;
      for (const { tokenCount, policyVersion } of runs) {
        end += tokenCount;
        const to = Math.min(end, part.from + part.rows);
        if (to > from)
          parts.push({ ...(await cut(part, { name, from, to, specs })), policyVersion });
        from = Math.max(from, to);
      }
    }
    versioned[name] = parts;
  }
  return versioned;
}

async function cut(
  part: ColumnPart,
  { name, from, to, specs }: { name: ColumnName; from: number; to: number; specs: ColumnSpecs },
): Promise<ColumnPart> {
  const rows = to - from;
  if (rows === part.rows) return part;
  const bytes = cutBytes(part, { name, first: from - part.from, rows, specs });
  if (isChecked(part.bytes!)) markChecked(bytes);
  const hash = await hashInTurns(bytes);
  return { from, rows, policyVersion: "", size: bytes.length, hash, bytes };
}

function cutBytes(
  part: ColumnPart,
  {
    name,
    first,
    rows,
    specs,
  }: { name: ColumnName; first: number; rows: number; specs: ColumnSpecs },
): Uint8Array {
  const bytes = part.bytes!;
  const rowBytes = rowBytesOf(name, specs);
  if (rowBytes !== undefined) return bytes.subarray(first * rowBytes, (first + rows) * rowBytes);
  const hasLogprobs = name === "topLogprobs";
  const { counts, ids, logprobs } = decodeRagged(bytes, { rows: part.rows, hasLogprobs });
  const sum = (list: Uint32Array): number => list.reduce((total, count) => total + count, 0);
  const start = sum(counts.subarray(0, first));
  const kept = counts.subarray(first, first + rows);
  const end = start + sum(kept);
  return encodeRagged({
    counts: kept,
    ids: ids.subarray(start, end),
    ...(logprobs && { logprobs: logprobs.subarray(start, end) }),
  });
}
