import { hashRow } from "../../trajectory/hash-row.ts";
import type { Sample } from "../../trajectory/sample.ts";
import { parseJson } from "./episode-row.ts";

/** The identity of a complete row of `samples.jsonl`. */
interface InspectedRow {
  readonly rolloutId: string;
  /** The row's `hashRow()`, which does not depend on how the JSON is written. */
  readonly hash: string;
}

/** Reads a line of `samples.jsonl`. Returns `undefined` if the line is damaged. */
export function inspectSampleLine(line: Uint8Array): InspectedRow | undefined {
  const row = parseJson(line) as Partial<Sample> | null | undefined;
  const { rolloutId, segment, tokenIds, lossMask, logprobs, policyVersions } = row ?? {};
  if (typeof rolloutId !== "string" || typeof segment !== "number") return undefined;
  const lengths = [tokenIds, lossMask, logprobs, policyVersions].map((list: unknown) =>
    Array.isArray(list) ? list.length : undefined,
  );
  const tokenCount = lengths[0];
  if (tokenCount === undefined || lengths.some((length) => length !== tokenCount)) return undefined;
  return { rolloutId, hash: hashRow(row) };
}

/** A line's first members up to its own `rolloutId`, where they are texts, numbers and the like. */
const headPattern = new RegExp(
  String.raw`^\s*\{(?:\s*TEXT\s*:\s*(?:TEXT|[-+.\w]+)\s*,)*?\s*"rolloutId"\s*:\s*(TEXT)`.replaceAll(
    "TEXT",
    String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`,
  ),
);

/** Most ids stand within so many bytes. */
const headLength = 4096;

/**
 * Whose row a line is, of `samples.jsonl` or of `episodes.jsonl`, whoever spelled it; `undefined` where
 * that cannot be told. Most lines say so in front, and need not be parsed whole: any other is.
 */
export function rolloutIdOfLine(line: Buffer): string | undefined {
  const head = headPattern.exec(line.toString("utf8", 0, headLength))?.[1];
  const value =
    head === undefined
      ? (parseJson(line) as { readonly rolloutId?: unknown } | null | undefined)?.rolloutId
      : parseJson(Buffer.from(head));
  return typeof value === "string" ? value : undefined;
}
