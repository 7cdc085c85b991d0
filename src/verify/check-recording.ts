import path from "node:path";
import { AttemptLines } from "../run/folder/attempt-lines.ts";
import type { Files } from "../run/disk/files.ts";
import { type ScannedLine, scanLines } from "../run/disk/line-ranges.ts";
import { headOf } from "../run/recording/read-recording.ts";
import { type BeginLine, recordingFile } from "../run/recording/recording-line.ts";
import { storageError } from "../run/disk/storage-error.ts";
import { quote } from "../trajectory/violation.ts";
import type { EpisodeFacts } from "./episode-file.ts";
import { findingsIn, type Finding } from "./finding.ts";

/** Fields that an attempt's first recorded line shares with its episode. */
const shared = ["split", "taskIndex", "groupId", "groupIndex", "sampleIndex", "seed"] as const;

interface Fault {
  readonly line: number;
  readonly detail: string;
}

/** The latest attempt of a rollout, as read so far. */
interface Attempt {
  readonly attempt: number;
  readonly lines: AttemptLines;
  isBegun: boolean;
  /** Differences between the lines that started or continued the attempt and its episode. */
  readonly differences: Fault[];
  /** The first line that does not count. A later start resumes before it. */
  lostAt?: number;
  lastAt: number;
}

/**
 * Checks a run's recording. Each line must be readable and follow the line before it. An ended
 * attempt must have all of its lines. An attempt must have started with the fields of its episode.
 * An attempt whose row is not written yet, or that was not recorded to its end, is not a finding.
 * The line that ends an attempt is written after its episode, so a killed start may lack it. The
 * check cannot see that an attempt's last lines are missing if the line that ended it is missing
 * too.
 * @returns `recorded`: the number of finished episodes that have a recording, or `undefined`
 *   without a recording file.
 * @throws UsageError if the disk fails.
 */
export async function checkRecording(
  { files, dir }: { readonly files: Files; readonly dir: string },
  episodes: ReadonlyMap<string, EpisodeFacts>,
  /** The id of the folder's run. */
  runId: string | undefined,
): Promise<{ readonly recorded: number; readonly findings: readonly Finding[] } | undefined> {
  const file = path.join(dir, recordingFile);
  if ((await files.facts(file)) === undefined) return undefined;
  const found: { line: number; detail: string }[] = [];
  const attempts = new Map<string, Attempt>();
  const onLine = ({ bytes, line }: ScannedLine): void => {
    const head = headOf(bytes);
    if (head === undefined) {
      found.push({ line, detail: "the line does not belong to a recording (a torn line?)" });
      return;
    }
    const { rolloutId, attempt } = head;
    let known = attempts.get(rolloutId);
    if (known === undefined || known.attempt < attempt) {
      const lines = new AttemptLines(runId);
      known = { attempt, lines, isBegun: false, differences: [], lastAt: line };
      attempts.set(rolloutId, known);
    }
    if (known.attempt === attempt) follow(known, { bytes, line }, episodes.get(rolloutId));
  };
  try {
    await scanLines(files, file, onLine);
  } catch (error) {
    throw storageError("read", file, error);
  }
  let recorded = 0;
  for (const [rolloutId, attempt] of attempts) {
    const episode = episodes.get(rolloutId);
    const faults = faultsOf(attempt);
    found.push(
      ...faults.map(({ line, detail }) => ({ line, detail: `of ${rolloutId} ${detail}` })),
    );
    if (faults.length === 0 && isWhole(attempt, episode)) recorded += 1;
  }
  const violations = found
    .toSorted((one, other) => one.line - other.line)
    .map((each) => ({ rule: "recording", ...each }));
  return { recorded, findings: findingsIn(recordingFile, violations) };
}

function follow(
  known: Attempt,
  { bytes, line: at }: Pick<ScannedLine, "bytes" | "line">,
  episode: EpisodeFacts | undefined,
): void {
  known.lastAt = at;
  const line = known.lines.take(bytes);
  if (line?.type === "begin") {
    known.isBegun = true;
    delete known.lostAt;
    known.differences.push(...differencesOf(line, episode).map((detail) => ({ line: at, detail })));
  } else if (line === undefined && !known.lines.isForeign) known.lostAt ??= at;
}

function differencesOf(begin: BeginLine, episode: EpisodeFacts | undefined): readonly string[] {
  const { fields } = episode ?? {};
  // Another attempt was not recorded.
  if (fields === undefined || fields.attempt !== begin.attempt) return [];
  return shared
    .filter((name) => fields[name] !== undefined && fields[name] !== begin[name])
    .map(
      (name) => `${name} is ${quote(begin[name])}, and ${quote(fields[name])} among the episodes`,
    );
}

function faultsOf({ lines, isBegun, differences, lostAt, lastAt }: Attempt): readonly Fault[] {
  const faults = [...differences];
  const { partCount, namedPartCount = partCount } = lines;
  if (lostAt !== undefined) {
    const detail = "the line is damaged, or one before it is missing: its content is ignored";
    faults.push({ line: lostAt, detail });
  } else if (!isBegun) {
    // The lines of another run cannot be compared with this one's.
    if (lines.isForeignAtAll) return [];
    const detail = "the line is missing with which the attempt was begun";
    faults.push({ line: lastAt, detail });
  } else if (partCount !== namedPartCount) {
    const detail = `${partCount} lines of inputs are there, and there were ${namedPartCount}`;
    faults.push({ line: lastAt, detail });
  }
  return faults;
}

/** Returns true if the episode of this attempt is recorded to its end. */
function isWhole({ attempt, lines, isBegun }: Attempt, episode: EpisodeFacts | undefined): boolean {
  // All inputs are on the disk before the episode. The line that ends the attempt comes after the
  // episode.
  if (!isBegun || lines.isUnrecorded || episode === undefined) return false;
  return episode.fields.attempt === attempt;
}
