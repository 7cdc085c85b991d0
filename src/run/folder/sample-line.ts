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

/** Matches a line's first members up to `rolloutId`, if their values are strings, numbers or literals. */
const headPattern = new RegExp(
  String.raw`^\s*\{(?:\s*TEXT\s*:\s*(?:TEXT|[-+.\w]+)\s*,)*?\s*"rolloutId"\s*:\s*(TEXT)`.replaceAll(
    "TEXT",
    String.raw`"[^"\\]*(?:\\.[^"\\]*)*"`,
  ),
);

/** The number of first bytes in which a line's rollout id is searched. Other lines are parsed completely. */
const headLength = 4096;

/**
 * Reads the rollout id of a line of `samples.jsonl` or `episodes.jsonl`; returns `undefined` if it has no id. Parses
 * only the first members of most lines.
 */
export function rolloutIdOfLine(line: Buffer): string | undefined {
  const head = headPattern.exec(line.toString("utf8", 0, headLength))?.[1];
  const value =
    head === undefined
      ? (parseJson(line) as { readonly rolloutId?: unknown } | null | undefined)?.rolloutId
      : parseJson(Buffer.from(head));
  return typeof value === "string" ? value : undefined;
}
