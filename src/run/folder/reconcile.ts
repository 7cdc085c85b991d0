import path from "node:path";
import type { FinishedEpisode } from "./episode-row.ts";
import type { Files } from "../disk/files.ts";
import { groupIdOf } from "../schedule/group-id.ts";
import { keepLines } from "../disk/keep-lines.ts";
import type { LineRange } from "../disk/line-ranges.ts";
import { setAside, setAsideName } from "../disk/set-aside.ts";
import {
  readEpisodeEvents,
  type EpisodeEvents,
  type RecordedGrouping,
  type EpisodeWithoutEvent,
} from "./episode-events.ts";
import {
  chooseClaim,
  episodesFile,
  samplesFile,
  scanClaims,
  scanRows,
  type Choice,
  type Claim,
  type RowPlace,
  type Scanned,
} from "./scan-claims.ts";
import { attemptCountsOf } from "../schedule/attempt-counts.ts";

/** The finished episodes of a folder, and the differences between its files. */
export interface Reconciliation {
  /** Finished episodes: their line and all their training rows exist. */
  readonly finished: readonly FinishedEpisode[];
  /** Rollouts that ended according to `events.jsonl`, and are played again from now on. */
  readonly dropped: readonly string[];
  /** Rollouts that lost their line or rows, in this start or an earlier one. Their recordings restore these. */
  readonly toRestore: ReadonlySet<string>;
  /** The attempt number of finished episodes that were played again after a failure. */
  readonly laterAttempts: ReadonlyMap<string, number>;
  /** Failed rollouts that are played again because the start requests it. */
  readonly retried: ReadonlySet<string>;
  /** Finished episodes without an event that has the hash of their line. */
  readonly withoutEvent: readonly EpisodeWithoutEvent[];
  /** The grouping that the last start recorded. */
  readonly grouping: RecordedGrouping;
  /** Problems that were found, in words for the user. */
  readonly notes: readonly string[];
}

/** Options of `reconcile()`. */
interface ReconcileOptions {
  readonly files: Files;
  /** True to drop failed episodes, so that they are played again. They stay in groups that are complete without them. */
  readonly retryFailed: boolean;
  /**
   * True if this start does not play damaged episodes again. All removed lines are then kept in files such as
   * `episodes.set-aside.jsonl`, and the notes say so.
   */
  readonly setsAside: boolean;
}

/**
 * Compares the files of a run with each other, and keeps the lines of finished episodes. An episode is finished if a
 * complete line claims it and each of its training rows exists. Rows are found by the hash of their line, or by the
 * hash of their values if another program has rewritten them. A line with another hash than in `events.jsonl`
 * does not count. All other lines are removed: their episodes are played again, or the lines are set aside.
 *
 * The files are not replaced together. After a crash in between, the next call reaches the same result. Readers see
 * rows without an episode in the meantime, which do not count.
 *
 * @throws UsageError if the disk fails.
 */
export async function reconcile(dir: string, options: ReconcileOptions): Promise<Reconciliation> {
  const { files, setsAside } = options;
  const events = await readEpisodeEvents(files, dir);
  const claims = await scanClaims(dir, { files, ended: events.episodes });
  const rows = await scanRows(dir, { files, claims });
  const { kept, retried, incompleteCount, isComplete } = await chooseClaims(
    { claims, rows },
    { ...options, grouping: events.grouping },
  );
  const finished = kept.map(({ claim }) => claim.finished);
  const missing = findMissing({ ...options, events, finished, isComplete, retriedClaims: retried });
  // An unreadable line counts as damaged, not as lost. The lines of failed episodes may have been removed on purpose.
  const isLost = (id: string): boolean => setsAside || events.episodes.get(id)?.isFailed === false;
  const lost = missing.ids.filter((id) => !claims.lines.has(id) && isLost(id));
  const lostCount = Math.max(lost.length - claims.damagedCount, 0);
  const notes = noteAll(claims, rows, { incompleteCount, lostCount, isPlayedAgain: !setsAside });
  const keptLines = {
    claims: kept.map(({ claim }) => claim),
    rows: kept.flatMap((choice) => choice.rows),
  };
  if (setsAside && notes.length > 0) {
    notes.push(...(await setAsideOthers(dir, { files, claims, rows, kept: keptLines })));
  }
  // Rows are removed after their episodes, so that no line names missing rows.
  const claimRanges = inOrder(keptLines.claims);
  await keepLines(claims.path, { files, ranges: claimRanges, size: claims.size });
  await keepLines(rows.path, { files, ranges: inOrder(keptLines.rows), size: rows.size });
  return {
    finished,
    dropped: missing.dropped,
    laterAttempts: laterAttempts(keptLines.claims),
    retried: missing.retried,
    toRestore: missing.toRestore,
    withoutEvent: keptLines.claims.flatMap(({ finished: episode, missingHash: hash }) =>
      hash === undefined ? [] : [{ ...episode, hash }],
    ),
    grouping: events.grouping,
    notes,
  };
}

type IsComplete = (groupIndex: number | undefined) => boolean;

/** The episodes that stay in the files, and those that do not. */
interface Choices {
  readonly kept: readonly Choice[];
  readonly retried: ReadonlySet<string>;
  /** The number of episodes that lack training rows. */
  readonly incompleteCount: number;
  /** True for groups that are complete without their failed attempts. */
  readonly isComplete: IsComplete;
}

/**
 * Chooses a claim for each rollout. With `retryFailed`, failed episodes are kept only in groups that are complete
 * without them.
 */
async function chooseClaims(
  { claims, rows }: { readonly claims: Scanned<Claim>; readonly rows: Scanned<RowPlace> },
  { files, retryFailed, grouping }: ReconcileOptions & { readonly grouping: RecordedGrouping },
): Promise<Choices> {
  const kept: Choice[] = [];
  const failed: Choice[] = [];
  const retried = new Set<string>();
  let incompleteCount = 0;
  for (const [rolloutId, candidates] of claims.lines) {
    const places = rows.lines.get(rolloutId) ?? [];
    const choice = await chooseClaim(candidates, { files, path: rows.path, rolloutId, places });
    if (choice === undefined) incompleteCount++;
    else if (!retryFailed || choice.claim.finished.outcome !== "failed") kept.push(choice);
    else failed.push(choice);
  }
  const isComplete = completeGroups(
    kept.map(({ claim }) => claim),
    grouping,
  );
  for (const choice of failed) {
    const { groupIndex, rolloutId } = choice.claim.finished;
    if (isComplete(groupIndex)) kept.push(choice);
    else retried.add(rolloutId);
  }
  return { kept, retried, incompleteCount, isComplete };
}

/** Finds the episodes that ended according to events of this start or an earlier one, but are not finished. */
function findMissing({
  events,
  finished,
  isComplete,
  retriedClaims,
  retryFailed,
}: {
  readonly events: EpisodeEvents;
  readonly finished: readonly FinishedEpisode[];
  readonly isComplete: IsComplete;
  /** Failed episodes with a claim that are played again. */
  readonly retriedClaims: ReadonlySet<string>;
  readonly retryFailed: boolean;
}) {
  const keptIds = new Set(finished.map(({ rolloutId }) => rolloutId));
  const ids = [...events.episodes.keys()].filter((id) => !keptIds.has(id));
  const stillLost = [...events.lost.keys()].filter((id) => !keptIds.has(id));
  const unfinished = [...ids, ...stillLost];
  const groupIndexOf = new Map(
    unfinished.length === 0
      ? []
      : finished.map((one) => [groupIdOf(one.rolloutId), one.groupIndex]),
  );
  // An earlier start may have removed their lines before it crashed. It removes none of complete groups.
  const isRetried = (id: string): boolean =>
    retryFailed &&
    (events.episodes.get(id) ?? events.lost.get(id))?.isFailed === true &&
    !isComplete(groupIndexOf.get(groupIdOf(id)));
  const retried = new Set([...retriedClaims, ...unfinished.filter(isRetried)]);
  return {
    ids,
    retried,
    toRestore: new Set(unfinished.filter((id) => !retried.has(id))),
    dropped: [...ids, ...stillLost.filter((id) => retried.has(id))],
  };
}

/** Returns the attempt numbers of episodes that were played more than once. */
function laterAttempts(claims: readonly Claim[]): ReadonlyMap<string, number> {
  return new Map(
    claims.flatMap(({ finished: { rolloutId }, attempt }) =>
      attempt === 1 ? [] : [[rolloutId, attempt] as const],
    ),
  );
}

/** Copies the lines that are removed to set-aside files. Returns a note that names these files, if there are any. */
async function setAsideOthers(
  dir: string,
  {
    files,
    claims,
    rows,
    kept,
  }: {
    readonly files: Files;
    readonly claims: Scanned<Claim>;
    readonly rows: Scanned<RowPlace>;
    readonly kept: { readonly claims: readonly Claim[]; readonly rows: readonly RowPlace[] };
  },
): Promise<readonly string[]> {
  const toEpisodes = path.join(dir, setAsideName(episodesFile));
  const toSamples = path.join(dir, setAsideName(samplesFile));
  const places = [
    await setAside(files, claims.path, { to: toEpisodes, kept: kept.claims }),
    await setAside(files, rows.path, { to: toSamples, kept: kept.rows }),
  ].filter((place) => place !== undefined);
  return places.length === 0 ? [] : [`what is left of these is set aside in ${places.join(", ")}`];
}

/**
 * Returns a function that finds groups which are complete without their failed attempts, because more attempts were
 * started than needed. The failed attempts of such groups are not played again, and stay in the counts.
 */
function completeGroups(
  kept: readonly Claim[],
  grouping: RecordedGrouping,
): (groupIndex: number | undefined) => boolean {
  const { size, started } = attemptCountsOf(grouping, { sampleCount: 0 });
  const scoredCounts = new Map<number | undefined, number>();
  for (const { finished } of kept) {
    if (finished.reward === undefined) continue;
    const { groupIndex } = finished;
    scoredCounts.set(groupIndex, (scoredCounts.get(groupIndex) ?? 0) + 1);
  }
  return (groupIndex) =>
    started > size && groupIndex !== undefined && (scoredCounts.get(groupIndex) ?? 0) >= size;
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
  const lacking = `${claims.path} lacks episodes that events.jsonl names`;
  const lost = isPlayedAgain
    ? `${lacking}: they ${fate} (${lostCount})`
    : `${lacking} (${lostCount})`;
  return [
    ...(claims.damagedCount > 0 ? [damaged] : []),
    ...(lostCount > 0 ? [lost] : []),
    ...(incompleteCount > 0 ? [incomplete] : []),
  ];
}
