import { hashRow } from "../trajectory/hash-row.ts";
import type { Sample } from "../trajectory/sample.ts";
import { parseJson } from "./episode-row.ts";

/** What a whole row of `samples.jsonl` says of its place. */
export interface InspectedRow {
  readonly rolloutId: string;
  readonly segment: number;
  readonly tokenCount: number;
  /** What `hashRow()` says of it, however it is spelled. */
  readonly hash: string;
}

/** Reads a line of `samples.jsonl`; `undefined` where it is damaged. */
export function inspectSampleLine(line: Uint8Array): InspectedRow | undefined {
  const row = parseJson(line) as Partial<Sample> | null | undefined;
  const { rolloutId, segment, tokenIds, lossMask, logprobs, policyVersions } = row ?? {};
  if (typeof rolloutId !== "string" || typeof segment !== "number") return undefined;
  const lengths = [tokenIds, lossMask, logprobs, policyVersions].map((list: unknown) =>
    Array.isArray(list) ? list.length : undefined,
  );
  const tokenCount = lengths[0];
  if (tokenCount === undefined || lengths.some((length) => length !== tokenCount)) return undefined;
  return { rolloutId, segment, tokenCount, hash: hashRow(row) };
}

const idKey = '"rolloutId":';

/** Ids are shorter than this, in bytes. */
const maxIdLength = 4096;

/**
 * Whose row a line of `samples.jsonl` is; `undefined` where that cannot be told. Rows begin with their
 * ids, so that a large row need not be parsed.
 */
export function rolloutIdOfLine(line: Buffer): string | undefined {
  const at = line.subarray(0, maxIdLength).indexOf(idKey);
  const start = at + idKey.length;
  const rest = at < 0 ? "" : line.toString("utf8", start, start + maxIdLength);
  const match = /^"(?:[^"\\]|\\.)*"/.exec(rest);
  const value = match === null ? undefined : parseJson(Buffer.from(match[0]));
  return typeof value === "string" ? value : inspectSampleLine(line)?.rolloutId;
}
