import { appendToList } from "../../../packages/python-values/src/support/append-to-list.ts";
import path from "node:path";
import { hashRow } from "../../trajectory/hash-row.ts";
import { hashLine } from "../disk/encode-line.ts";
import { type Files, readBytes, withFile } from "../disk/files.ts";
import { type LineRange, type ScannedLine, scanLines } from "../disk/line-ranges.ts";
import { storageError } from "../disk/storage-error.ts";
import type { EpisodeEndEvent } from "./episode-events.ts";
import { type FinishedEpisode, parseStoredRow, toFinishedEpisode } from "./episode-row.ts";
import { inspectSampleLine, rolloutIdOfLine } from "./sample-line.ts";

/** The file of finished episodes. An episode's line is written after its rows. */
export const episodesFile = "episodes.jsonl";

/** The file of training rows. */
export const samplesFile = "samples.jsonl";

/** A line of `episodes.jsonl`, which claims that its episode is finished. */
export interface Claim extends LineRange {
  readonly finished: FinishedEpisode;
  readonly sampleHashes: readonly string[];
  readonly attempt: number;
  /** The hash of the line if no event names it; `undefined` otherwise. */
  readonly missingHash: string | undefined;
}

/** A line of `samples.jsonl`. */
export interface RowPlace extends LineRange {
  readonly hash: string;
}

/** A claim with the rows that it names. */
export interface Choice {
  readonly claim: Claim;
  readonly rows: readonly RowPlace[];
}

/** The lines of a file. */
export interface Scanned<Line> {
  readonly path: string;
  readonly size: number;
  readonly lines: ReadonlyMap<string, readonly Line[]>;
  /** The number of unreadable lines, without a torn last line. */
  readonly damagedCount: number;
}

/** Scans `episodes.jsonl` for claims, by rollout. A line that differs from its event does not count. */
export async function scanClaims(
  dir: string,
  { files, ended }: { readonly files: Files; readonly ended: ReadonlyMap<string, EpisodeEndEvent> },
): Promise<Scanned<Claim>> {
  return await scan(files, path.join(dir, episodesFile), ({ bytes, start, end }) => {
    const row = parseStoredRow(bytes);
    if (row === undefined) return undefined;
    const { sampleHashes, attempt } = row;
    // Ids are shared with strings that are in memory already: there may be 100,000 of them.
    const { rolloutId: id, hash } = ended.get(row.rolloutId) ?? { rolloutId: row.rolloutId };
    if (hash !== undefined && hash !== hashLine(bytes) && hash !== hashRow(row)) return undefined;
    const missingHash = hash === undefined ? hashRow(row) : undefined;
    const finished = toFinishedEpisode(row, id);
    return { id, line: { finished, sampleHashes, attempt, missingHash, start, end } };
  });
}

/** Scans `samples.jsonl` for training rows, by rollout. */
export async function scanRows(
  dir: string,
  { files, claims }: { readonly files: Files; readonly claims: Scanned<Claim> },
): Promise<Scanned<RowPlace>> {
  return await scan(files, path.join(dir, samplesFile), ({ bytes, start, end }) => {
    const id = rolloutIdOfLine(bytes);
    if (id === undefined) return undefined;
    const claim = claims.lines.get(id)?.[0];
    const hash = hashLine(bytes);
    const claimed = claim?.sampleHashes.find((other) => other === hash);
    return { id: claim?.finished.rolloutId ?? id, line: { hash: claimed ?? hash, start, end } };
  });
}

async function scan<Line>(
  files: Files,
  file: string,
  read: (scanned: ScannedLine) => { readonly id: string; readonly line: Line } | undefined,
): Promise<Scanned<Line>> {
  const lines = new Map<string, Line[]>();
  const damagedEnds: number[] = [];
  try {
    const size = await scanLines(files, file, (scanned) => {
      const found = read(scanned);
      if (found === undefined) {
        damagedEnds.push(scanned.end);
        return;
      }
      appendToList(lines, found.id, found.line);
    });
    const damagedCount = damagedEnds.filter((end) => end < size).length;
    return { path: file, size, lines, damagedCount };
  } catch (error) {
    throw storageError("read", file, error);
  }
}

/** The lines of `samples.jsonl` of one rollout. */
interface FoundRows {
  readonly files: Files;
  readonly path: string;
  readonly rolloutId: string;
  readonly places: readonly RowPlace[];
}

/** Returns the first claim with all its training rows. Prefers rows that match by the hash of their line. */
export async function chooseClaim(
  candidates: readonly Claim[],
  found: FoundRows,
): Promise<Choice | undefined> {
  for (const claim of candidates) {
    const rows = matchHashes(found.places, claim.sampleHashes);
    if (rows !== undefined) return { claim, rows };
  }
  for (const claim of candidates) {
    const rows = await inspectRows(claim, found);
    if (rows !== undefined) return { claim, rows };
  }
  return undefined;
}

/** Returns the rows with these hashes, in this order; `undefined` if one is missing. */
function matchHashes(
  places: readonly RowPlace[],
  hashes: readonly string[],
): readonly RowPlace[] | undefined {
  const left = [...places];
  const found: RowPlace[] = [];
  for (const wanted of hashes) {
    const index = left.findIndex(({ hash }) => hash === wanted);
    if (index < 0) return undefined;
    found.push(...left.splice(index, 1));
  }
  return found;
}

/** Finds rows by their values, in a file that another program has rewritten. */
async function inspectRows(
  claim: Claim,
  { files, path, rolloutId, places }: FoundRows,
): Promise<readonly RowPlace[] | undefined> {
  const rewritten: RowPlace[] = [];
  try {
    await withFile(files, path, async (file) => {
      for (const place of places) {
        const inspected = inspectSampleLine(await readBytes(file, place));
        if (inspected?.rolloutId === rolloutId) rewritten.push({ ...place, hash: inspected.hash });
      }
    });
  } catch (error) {
    throw storageError("read", path, error);
  }
  return matchHashes(rewritten, claim.sampleHashes);
}
