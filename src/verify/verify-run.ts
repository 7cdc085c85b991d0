import { stat } from "node:fs/promises";
import path from "node:path";
import { UsageError } from "../errors.ts";
import { diskFiles, type Files } from "../run/disk/files.ts";
import { readPlacedLines } from "../run/disk/placed-lines.ts";
import { recordingFile } from "../run/recording/recording-line.ts";
import { verifyLines } from "../trajectory/verify-file.ts";
import { nameOf } from "../trajectory/violation.ts";
import type { RecordedGrouping } from "../run/folder/episode-events.ts";
import { attemptCountsOf } from "../run/schedule/attempt-counts.ts";
import { attemptsByPlace } from "./attempts-by-place.ts";
import { checkEvents, checkSummary, isFinishedBy, readSummary } from "./check-records.ts";
import { checkEpochs } from "./check-epochs.ts";
import { checkPlan, type PlannedAttempt } from "./check-plan.ts";
import { checkRecording } from "./check-recording.ts";
import { checkSlime } from "./check-slime.ts";
import { EpisodeFile } from "./episode-file.ts";
import { findingsIn, type Finding } from "./finding.ts";
import { holdFiles } from "./held-files.ts";
import { readRunFacts, type RunFacts } from "./run-facts.ts";

/** What checking a run's folder found. JSON-able. */
export interface RunVerification {
  /** The folder. */
  readonly run: string;
  /** Rows of samples that were read. */
  readonly samples: number;
  readonly episodes: number;
  /**
   * Episodes that the run will have; absent where `run.json` does not say, and where more attempts are started
   * than are needed.
   */
  readonly planned?: number;
  /** Whether the run says that it came to its end. */
  readonly isFinished: boolean;
  /** How many planned episodes are not there; absent where there are none. */
  readonly missingCount?: number;
  /** The first ten of these. */
  readonly missing?: readonly string[];
  /** Rows for slime; absent where there is no such file. */
  readonly slimeRows?: number;
  /** Finished episodes of which `recording.jsonl` holds a recording; absent where there is no such file. */
  readonly recorded?: number;
  readonly violations: readonly Finding[];
}

/**
 * Checks all files of a run's folder, each for itself and against the others: the rows of samples
 * against their episodes, the episodes against the plan of `run.json` and against the events that told
 * of them, slime's rows against the samples, the recording's lines against each other and against the episodes, and
 * the sums of `summary.json`. One row of each file at a time is in memory.
 *
 * A run that is not finished is no violation: it is said to be so. One that is being played is checked as far as
 * it had come when its files were opened: a row whose episode is still to come, and a last line that is torn, are
 * of what was under way, as where it was killed.
 *
 * @throws UsageError where the folder has no samples or no episodes.
 */
export async function verifyRun(dir: string): Promise<RunVerification> {
  await checkFolder(dir);
  return await auditFolder(diskFiles, dir);
}

/** What grows as a run is played, in the order in which it is written of an episode, and what is made of it at last. */
const writtenFiles = [
  "samples.jsonl",
  EpisodeFile.fileName,
  "events.jsonl",
  recordingFile,
  "samples.slime.jsonl",
];

/**
 * The same for a folder on any disk.
 *
 * @throws the disk's own error where the folder has no episodes.
 */
export async function auditFolder(files: Files, dir: string): Promise<RunVerification> {
  // It is written last: what it says holds of the others, as they are from then on.
  const summary = await readSummary(files, dir);
  const finished = isFinishedBy(summary) ? summary : undefined;
  const isFinished = finished !== undefined;
  const paths = writtenFiles.map((name) => path.join(dir, name)).toReversed();
  await using held = await holdFiles(files, paths, { isGrowing: !isFinished });
  const { facts, manifest, found } = await readRunFacts(held, dir);
  const findings: Finding[] = [...findingsIn("run.json", found)];
  await using episodes = await EpisodeFile.open(held, dir);
  const samplesFile = path.join(dir, "samples.jsonl");
  const samples = await verifyLines(samplesFile, readRows(held, samplesFile), {
    facts: facts.sampleFacts,
    checkRow: async (row, found) => {
      const isKnown = episodes.episodes.has(nameOf(row["rolloutId"]));
      return isFinished || isKnown ? await episodes.check(row, found) : [];
    },
  });
  findings.push(...findingsIn("samples.jsonl", samples.violations));
  findings.push(...episodes.findings, ...episodes.finish());
  const events = await checkEvents({ files: held, dir }, episodes.episodes, { manifest, summary });
  const { there, planned } = checkPlaces(facts, events.grouping, episodes.episodes);
  findings.push(...(there?.findings ?? []));
  const missing = (there?.attempts ?? []).filter(({ isMissing }) => isMissing);
  if (finished !== undefined) findings.push(...sayMissing(missing));
  findings.push(...events.findings);
  const slime =
    there &&
    (await checkSlime({ files: held, dir }, there.attempts, {
      isAsked: facts.hasSlime,
      isFinished,
      size: there.size,
      isSound: (rolloutId) => episodes.episodes.get(rolloutId)?.isSound ?? true,
    }));
  findings.push(...(slime?.findings ?? []));
  const { runId } = manifest;
  const recording = await checkRecording(
    { files: held, dir },
    episodes.episodes,
    typeof runId === "string" ? runId : undefined,
  );
  findings.push(...(recording?.findings ?? []));
  if (finished !== undefined) {
    const known = { planned, ...(slime && { slimeRows: slime.rows }) };
    findings.push(...checkSummary(finished, episodes.tally, known));
  }
  return {
    run: dir,
    samples: samples.samples,
    episodes: episodes.count,
    ...(planned !== undefined && { planned }),
    isFinished,
    ...(missing.length > 0 && {
      missingCount: missing.length,
      missing: missing.slice(0, 10).map(({ label }) => label),
    }),
    ...(slime?.rows !== undefined && { slimeRows: slime.rows }),
    ...(recording && { recorded: recording.recorded }),
    violations: findings,
  };
}

async function* readRows(files: Files, file: string) {
  for await (const { text, place } of readPlacedLines(files, file))
    yield { line: place.line, text };
}

/** Holds the episodes against what the run is to have, where `run.json` says that. */
function checkPlaces(
  { plan, epochs, hasSlime }: RunFacts,
  grouping: RecordedGrouping,
  episodes: EpisodeFile["episodes"],
) {
  if (plan !== undefined) {
    const counts = attemptCountsOf(grouping, plan);
    const there = checkPlan(plan, counts, episodes);
    // Of those that are started beyond what is needed, nobody knows how many come to their end.
    const isKnown = counts.started === counts.size;
    const { size } = counts;
    return { there: { ...there, size }, planned: isKnown ? there.attempts.length : undefined };
  }
  if (epochs !== undefined) {
    const { size, started } = attemptCountsOf(grouping, epochs);
    return { there: { ...checkEpochs(epochs, started, episodes), size } };
  }
  const { size } = grouping;
  // Nothing else is held against them.
  if (!hasSlime || size === undefined) return {};
  const attempts = attemptsByPlace(attemptCountsOf(grouping, { sampleCount: size }), episodes);
  return attempts ? { there: { attempts, findings: [], size } } : {};
}

function sayMissing(missing: readonly PlannedAttempt[]): readonly Finding[] {
  return findingsIn(
    EpisodeFile.fileName,
    missing.map(({ label }) => ({
      rule: "missing",
      detail: `${label} is not there, and the run says that it is finished`,
    })),
  );
}

async function checkFolder(dir: string): Promise<void> {
  for (const name of ["episodes.jsonl", "samples.jsonl"]) {
    const file = path.join(dir, name);
    const isFile = await stat(file).then(
      (found) => found.isFile(),
      () => false,
    );
    if (isFile) continue;
    throw new UsageError(`Cannot read ${file}: no such file, expected a run's folder`);
  }
}
