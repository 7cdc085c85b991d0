import path from "node:path";
import { hashRow } from "../../trajectory/hash-row.ts";
import { hashLine } from "../disk/encode-line.ts";
import { type FinishedEpisode, parseEpisodeRow, toFinishedEpisode } from "./episode-row.ts";
import { type Files, readBytes, withFile } from "../disk/files.ts";
import { groupIdOf } from "../schedule/group-id.ts";
import { keepLines } from "../disk/keep-lines.ts";
import { type LineRange, type ScannedLine, scanLines } from "../disk/line-ranges.ts";
import { inspectSampleLine, rolloutIdOfLine } from "./sample-line.ts";
import { setAside, setAsideName } from "../disk/set-aside.ts";
import { storageError } from "../disk/storage-error.ts";
import {
  readEpisodeEvents,
  type RecordedGrouping,
  type EpisodeWithoutEvent,
} from "./episode-events.ts";

/** The file of finished episodes. An episode's line is written after its rows. */
export const episodesFile = "episodes.jsonl";

/** The file of training rows. */
export const samplesFile = "samples.jsonl";

/** The finished episodes of a folder, and the differences between its files. */
export interface Reconciliation {
  /** Finished episodes: their line and all their training rows exist. */
  readonly finished: readonly FinishedEpisode[];
  /** Rollouts that ended according to `events.jsonl`, and are played again from now on. */
  readonly dropped: readonly string[];
  /** Rollouts that lack their line or rows, in this start or an earlier one. Their recordings restore them. */
  readonly toBringBack: ReadonlySet<string>;
  /** The attempt number of finished episodes that were played again after a failure. */
  readonly laterAttempts: ReadonlyMap<string, number>;
  /** Failed rollouts that are played again because the start requests it. */
  readonly retried: ReadonlySet<string>;
  /** Finished episodes without an event that has the hash of their line. */
  readonly untold: readonly EpisodeWithoutEvent[];
  /** The grouping that the last start recorded. */
  readonly grouping: RecordedGrouping;
  /** Problems that were found, in words for the user. */
  readonly notes: readonly string[];
}

/** Options of `reconcile()`. */
interface ReconcileOptions {
  readonly files: Files;
  /** Drops failed episodes, so that they are played again. */
  readonly retryFailed: boolean;
  /**
   * True if this start does not play damaged episodes again. All removed lines are then kept in files such as
   * `episodes.set-aside.jsonl`, and the notes say so.
   */
  readonly setsAside: boolean;
}

/** A line of `episodes.jsonl`, which claims that its episode is finished. */
interface Claim extends LineRange {
  readonly finished: FinishedEpisode;
  readonly sampleHashes: readonly string[];
  readonly attempt: number;
  /** The hash of the line if no event names it; `undefined` otherwise. */
  readonly untoldHash: string | undefined;
}

/** A line of `samples.jsonl`. */
interface RowPlace extends LineRange {
  readonly hash: string;
}

/** A claim with the rows that it names. */
interface Choice {
  readonly claim: Claim;
  readonly rows: readonly RowPlace[];
}

/** The lines of a file. */
interface Scanned<Line> {
  readonly path: string;
  readonly size: number;
  readonly lines: ReadonlyMap<string, readonly Line[]>;
  /** The number of unreadable lines, without a torn last line. */
  readonly damagedCount: number;
}

/**
 * Compares the files of a run with each other, and keeps the lines of finished episodes. An episode is finished if a
 * complete line claims it and each of its training rows exists. Rows are found by the hash of their line, or by the
 * hash of their values if another program has rewritten them. A line whose hash differs from the one in `events.jsonl`
 * does not count. All other lines are removed: their episodes are played again, or the lines are set aside.
 *
 * The files are not replaced together. After a crash in between, the next call reaches the same result. Readers see
 * rows without an episode in the meantime, which do not count.
 *
 * @throws UsageError if the disk fails.
 */
export async function reconcile(
  dir: string,
  { files, retryFailed, setsAside }: ReconcileOptions,
): Promise<Reconciliation> {
  const { episodes: told, lost: lostBefore, grouping } = await readEpisodeEvents(files, dir);
  const claims = await scan<Claim>(files, path.join(dir, episodesFile), ({ bytes, start, end }) => {
    const row = parseEpisodeRow(bytes);
    if (row === undefined) return undefined;
    const { sampleHashes, attempt } = row;
    // Ids are shared with strings that are in memory already: there may be 100,000 of them.
    const { rolloutId: id, hash } = told.get(row.rolloutId) ?? { rolloutId: row.rolloutId };
    if (hash !== undefined && hash !== hashLine(bytes) && hash !== hashRow(row)) return undefined;
    const untoldHash = hash === undefined ? hashRow(row) : undefined;
    const finished = toFinishedEpisode(row, id);
    return { id, line: { finished, sampleHashes, attempt, untoldHash, start, end } };
  });
  const rows = await scan<RowPlace>(files, path.join(dir, samplesFile), ({ bytes, start, end }) => {
    const id = rolloutIdOfLine(bytes);
    if (id === undefined) return undefined;
    const claim = claims.lines.get(id)?.[0];
    const hash = hashLine(bytes);
    const claimed = claim?.sampleHashes.find((other) => other === hash);
    return { id: claim?.finished.rolloutId ?? id, line: { hash: claimed ?? hash, start, end } };
  });
  const kept: Claim[] = [];
  const keptRows: RowPlace[] = [];
  const retried = new Set<string>();
  const failed: Choice[] = [];
  let incompleteCount = 0;
  for (const [rolloutId, candidates] of claims.lines) {
    const places = rows.lines.get(rolloutId) ?? [];
    const choice = await choose(candidates, { files, path: rows.path, rolloutId, places });
    if (choice === undefined) {
      incompleteCount++;
    } else if (!retryFailed || choice.claim.finished.outcome !== "failed") {
      kept.push(choice.claim);
      keptRows.push(...choice.rows);
    } else {
      failed.push(choice);
    }
  }
  const isWhole = wholeGroups(kept, grouping);
  for (const { claim, rows: own } of failed) {
    const { groupIndex, rolloutId } = claim.finished;
    if (!isWhole(groupIndex)) retried.add(rolloutId);
    else {
      kept.push(claim);
      keptRows.push(...own);
    }
  }
  const finished = kept.map((claim) => claim.finished);
  const untold = kept.flatMap(({ finished: episode, untoldHash: hash }) =>
    hash === undefined ? [] : [{ ...episode, hash }],
  );
  const laterAttempts = new Map(
    kept.flatMap(({ finished: { rolloutId }, attempt }) =>
      attempt === 1 ? [] : [[rolloutId, attempt] as const],
    ),
  );
  const keptIds = new Set(finished.map(({ rolloutId }) => rolloutId));
  const missing = [...told.keys()].filter((id) => !keptIds.has(id));
  const stillLost = [...lostBefore.keys()].filter((id) => !keptIds.has(id));
  const unfinished = [...missing, ...stillLost];
  const placeOf = new Map(
    unfinished.length === 0
      ? []
      : finished.map((one) => [groupIdOf(one.rolloutId), one.groupIndex]),
  );
  // An earlier start may have removed their lines before it crashed. It removes none of complete groups.
  const isRetried = (id: string): boolean =>
    retryFailed &&
    (told.get(id) ?? lostBefore.get(id))?.isFailed === true &&
    !isWhole(placeOf.get(groupIdOf(id)));
  for (const id of unfinished) if (isRetried(id)) retried.add(id);
  const toBringBack = new Set(unfinished.filter((id) => !retried.has(id)));
  const dropped = [...missing, ...stillLost.filter((id) => retried.has(id))];
  // An unreadable line counts as damaged, not as lost. The lines of failed episodes may have been removed on purpose.
  const isLost = (id: string): boolean => setsAside || told.get(id)?.isFailed === false;
  const lost = missing.filter((id) => !claims.lines.has(id) && isLost(id));
  const lostCount = Math.max(lost.length - claims.damagedCount, 0);
  const notes = noteAll(claims, rows, { incompleteCount, lostCount, isPlayedAgain: !setsAside });
  if (setsAside && notes.length > 0) {
    const places = [
      await setAside(files, claims.path, { to: path.join(dir, setAsideName(episodesFile)), kept }),
      await setAside(files, rows.path, {
        to: path.join(dir, setAsideName(samplesFile)),
        kept: keptRows,
      }),
    ].filter((place) => place !== undefined);
    if (places.length > 0) notes.push(`what is left of these is set aside in ${places.join(", ")}`);
  }
  // Rows are removed after their episodes, so that no line names missing rows.
  await keepLines(claims.path, { files, ranges: inOrder(kept), size: claims.size });
  await keepLines(rows.path, { files, ranges: inOrder(keptRows), size: rows.size });
  return { finished, dropped, laterAttempts, retried, toBringBack, untold, grouping, notes };
}

/**
 * Returns a function that finds groups which are complete without their failed attempts, because more attempts were
 * started than needed. Their failures are not played again, and have to stay in the counts.
 */
function wholeGroups(
  kept: readonly Claim[],
  { size = 0, begun = size }: RecordedGrouping,
): (groupIndex: number | undefined) => boolean {
  const scoredCounts = new Map<number | undefined, number>();
  for (const { finished } of kept) {
    if (finished.reward === undefined) continue;
    const { groupIndex } = finished;
    scoredCounts.set(groupIndex, (scoredCounts.get(groupIndex) ?? 0) + 1);
  }
  return (groupIndex) =>
    begun > size && groupIndex !== undefined && (scoredCounts.get(groupIndex) ?? 0) >= size;
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
      const others = lines.get(found.id);
      if (others === undefined) lines.set(found.id, [found.line]);
      else others.push(found.line);
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
async function choose(candidates: readonly Claim[], found: FoundRows): Promise<Choice | undefined> {
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

function inOrder(ranges: readonly LineRange[]): readonly LineRange[] {
  return ranges.toSorted((left, right) => left.start - right.start);
}

function noteAll(
  claims: Scanned<Claim>,
  rows: Scanned<RowPlace>,
  {
    incompleteCount,
    lostCount,
    isPlayedAgain,
  }: { incompleteCount: number; lostCount: number; isPlayedAgain: boolean },
): string[] {
  const fate = isPlayedAgain ? "are played again" : "are taken out";
  const damaged = `${claims.path} has damaged lines (${claims.damagedCount}): their episodes ${fate}`;
  const incomplete =
    `${rows.path} lacks rows of finished episodes, or has damaged ones: ` +
    `these episodes ${fate} (${incompleteCount})`;
  const lacking = `${claims.path} lacks episodes that events.jsonl tells of`;
  const lost = isPlayedAgain
    ? `${lacking}: they ${fate} (${lostCount})`
    : `${lacking} (${lostCount})`;
  return [
    ...(claims.damagedCount > 0 ? [damaged] : []),
    ...(lostCount > 0 ? [lost] : []),
    ...(incompleteCount > 0 ? [incomplete] : []),
  ];
}
