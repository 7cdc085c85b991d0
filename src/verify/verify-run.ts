import path from "node:path";
import { UsageError } from "../errors.ts";
import type { Files } from "../run/disk/files.ts";
import { storedFiles } from "../run/gzip/stored-files.ts";
import { readPlacedLines } from "../run/disk/placed-lines.ts";
import { sessionsFile } from "../run/folder/folder-journals.ts";
import { recordingFile } from "../run/recording/recording-line.ts";
import { verifyLines } from "../trajectory/verify-file.ts";
import { nameOf } from "../trajectory/violation.ts";
import type { RecordedGrouping } from "../run/folder/episode-events.ts";
import { attemptCountsOf } from "../run/schedule/attempt-counts.ts";
import { attemptsByPlace } from "./attempts-by-place.ts";
import { checkEvents, checkSummary, isFinishedBy, readSummary } from "./check-records.ts";
import { openColumnFolder } from "../run/columns/column-folder.ts";
import { ColumnBytes } from "./check-column-bytes.ts";
import { checkEpochs } from "./check-epochs.ts";
import { checkPlan, type PlannedAttempt } from "./check-plan.ts";
import { checkRecording } from "./check-recording.ts";
import { checkSessions } from "./check-sessions.ts";
import { checkSlime } from "./check-slime.ts";
import { checkTeachers } from "./check-teachers.ts";
import { EpisodeFile } from "./episode-file.ts";
import { findingsIn, type Finding } from "./finding.ts";
import { isFile } from "./is-file.ts";
import { holdFiles } from "./held-files.ts";
import { readRunFacts, type RunFacts } from "./run-facts.ts";

/** The result of checking a run's folder. JSON-able. */
export interface RunVerification {
  /** The path of the run's folder. */
  readonly run: string;
  /** The number of sample rows. */
  readonly samples: number;
  readonly episodes: number;
  /**
   * The planned number of episodes. Absent if `run.json` has none, or if the run starts more
   * attempts than it needs.
   */
  readonly planned?: number;
  /** True if `summary.json` reports that the run has finished. */
  readonly isFinished: boolean;
  /** The number of planned episodes that do not exist. Absent if none is missing. */
  readonly missingCount?: number;
  /** The first ten missing episodes. */
  readonly missing?: readonly string[];
  /** The number of slime rows. Absent if there is no slime file. */
  readonly slimeRows?: number;
  /** The number of finished episodes with a recording. Absent if there is no recording file. */
  readonly recorded?: number;
  /** Number of the rows that each teacher has scored, by the teacher's name. Absent without teachers. */
  readonly teachers?: Readonly<Record<string, number>>;
  readonly violations: readonly Finding[];
}

/**
 * Checks the files of a run's folder, each by itself and against the others:
 * sample rows against episodes, episodes against the plan and the events, slime rows against
 * samples, the recording's lines against each other and the episodes, and the sums of
 * `summary.json`. Keeps one row of each file in memory.
 * An unfinished run is not a violation. A run that is still being played is checked as of the
 * moment when its files were opened. A row without its episode and an incomplete last line count as
 * work in progress.
 * @throws UsageError if the folder has no samples or no episodes.
 */
export async function verifyRun(dir: string): Promise<RunVerification> {
  await checkFolder(dir);
  return await auditFolder(storedFiles, dir);
}

/**
 * Files that grow while a run is played, in the order in which an episode is written to them, and
 * the files made at the end.
 */
const writtenFiles = [
  sessionsFile,
  "samples.jsonl",
  EpisodeFile.fileName,
  "events.jsonl",
  recordingFile,
  "samples.slime.jsonl",
];

/**
 * Checks a run's folder on any disk. See `verifyRun()`.
 * @throws the disk's own error if the folder has no episodes.
 */
export async function auditFolder(files: Files, dir: string): Promise<RunVerification> {
  // `summary.json` is written last. If it reports a finished run, the other files are complete.
  const summary = await readSummary(files, dir);
  const finished = isFinishedBy(summary) ? summary : undefined;
  const isFinished = finished !== undefined;
  const paths = writtenFiles.map((name) => path.join(dir, name)).toReversed();
  await using held = await holdFiles(files, paths, { isGrowing: !isFinished });
  const { facts, manifest, found } = await readRunFacts(held, dir);
  const findings: Finding[] = [...findingsIn("run.json", found)];
  await using episodes = await EpisodeFile.open(held, dir);
  const samplesFile = path.join(dir, "samples.jsonl");
  await using source = openColumnFolder(dir, files);
  const columnBytes = new ColumnBytes(source, facts.sampleFacts);
  const samples = await verifyLines(samplesFile, readRows(held, samplesFile), {
    facts: facts.sampleFacts,
    checkRow: async (row, found) => {
      const isKnown = episodes.episodes.has(nameOf(row["rolloutId"]));
      if (!isFinished && !isKnown) return [];
      const columnFaults = found.length === 0 ? await columnBytes.check(row) : [];
      return [...(await episodes.check(row, found)), ...columnFaults];
    },
  });
  findings.push(...findingsIn("samples.jsonl", samples.violations));
  findings.push(...episodes.findings, ...episodes.finish(facts));
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
  findings.push(...(await checkSessions({ files: held, dir }, episodes.episodes, manifest)));
  const { vocabularySize } = facts.sampleFacts;
  const teachers = await checkTeachers({ files, dir, source }, { vocabularySize, isFinished });
  findings.push(...(teachers?.findings ?? []));
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
    ...(teachers && { teachers: teachers.scored }),
    violations: findings,
  };
}

async function* readRows(files: Files, file: string) {
  for await (const { text, place } of readPlacedLines(files, file))
    yield { line: place.line, text };
}

/** Checks the episodes against the plan of `run.json`, if it has one. */
function checkPlaces(
  { plan, epochs, hasSlime }: RunFacts,
  grouping: RecordedGrouping,
  episodes: EpisodeFile["episodes"],
) {
  if (plan !== undefined) {
    const counts = attemptCountsOf(grouping, plan);
    const there = checkPlan(plan, counts, episodes);
    // The run starts more attempts than it needs, and the number of those that end is unknown.
    const isKnown = counts.started === counts.size;
    const { size } = counts;
    return { there: { ...there, size }, planned: isKnown ? there.attempts.length : undefined };
  }
  if (epochs !== undefined) {
    const { size, started } = attemptCountsOf(grouping, epochs);
    return { there: { ...checkEpochs(epochs, started, episodes), size } };
  }
  const { size } = grouping;
  // No other file depends on these places.
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
    if (await isFile(file)) continue;
    throw new UsageError(`Cannot read ${file}: no such file, expected a run's folder`);
  }
}
