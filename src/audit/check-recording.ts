import path from "node:path";
import { AttemptLines } from "../run/attempt-lines.ts";
import type { Files } from "../run/files.ts";
import { scanLines } from "../run/line-ranges.ts";
import { headOf } from "../run/read-recording.ts";
import { type BeginLine, recordingFile } from "../run/recording-line.ts";
import type { EpisodeFacts } from "./episode-file.ts";
import { quote } from "../trajectory/violation.ts";
import { findingsIn, type Finding } from "./finding.ts";

/** What the line that begins an attempt says as its episode does. */
const shared = ["split", "taskIndex", "groupId", "groupIndex", "sampleIndex", "seed"] as const;

/** The latest attempt of a rollout, as far as it was read. */
interface Attempt {
  readonly attempt: number;
  readonly lines: AttemptLines;
  /** What the line says with which it was begun or went on last, and where it stands. */
  begin?: Pick<BeginLine, (typeof shared)[number]> & { readonly line: number };
  /** The first line that does not count; a later start goes on without it. */
  lostAt?: number;
  lastAt: number;
}

/**
 * Checks a run's recording: that each line can be read and follows from the one before it, that none is missing by
 * what ended the attempt, and that an attempt was begun as its episode says. One whose row is still to come, and one
 * that was not recorded to its end, are no findings.
 *
 * @returns `recorded` finished episodes that can be played again from it; nothing where there is no recording.
 */
export async function checkRecording(
  { files, dir }: { readonly files: Files; readonly dir: string },
  episodes: ReadonlyMap<string, EpisodeFacts>,
  /** Of the folder. */
  runId: string | undefined,
): Promise<{ readonly recorded: number; readonly findings: readonly Finding[] } | undefined> {
  const file = path.join(dir, recordingFile);
  if ((await files.facts(file)) === undefined) return undefined;
  const found: { line: number; detail: string }[] = [];
  const attempts = new Map<string, Attempt>();
  await scanLines(files, file, ({ bytes, line }) => {
    const head = headOf(bytes);
    if (head === undefined) {
      found.push({ line, detail: "the line is none of a recording (a torn line?)" });
      return;
    }
    const { rolloutId, attempt } = head;
    let known = attempts.get(rolloutId);
    if (known === undefined || known.attempt < attempt) {
      known = { attempt, lines: new AttemptLines(runId), lastAt: line };
      attempts.set(rolloutId, known);
    }
    if (known.attempt === attempt) follow(known, bytes, line);
  });
  let recorded = 0;
  for (const [rolloutId, attempt] of attempts) {
    const episode = episodes.get(rolloutId);
    const faults = faultsOf(attempt, episode);
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

function follow(known: Attempt, bytes: Buffer, at: number): void {
  known.lastAt = at;
  const line = known.lines.take(bytes);
  if (line?.type === "begin") {
    const { split, taskIndex, groupId, groupIndex, sampleIndex, seed } = line;
    known.begin = { split, taskIndex, groupId, groupIndex, sampleIndex, seed, line: at };
    delete known.lostAt;
  } else if (line === undefined && !known.lines.isForeign) known.lostAt ??= at;
}

function faultsOf(
  { attempt, lines, begin, lostAt, lastAt }: Attempt,
  episode: EpisodeFacts | undefined,
): readonly { readonly line: number; readonly detail: string }[] {
  if (lines.isForeign) return [];
  if (lostAt !== undefined) {
    const detail = "the line is damaged, or one before it is missing: what it held is passed over";
    return [{ line: lostAt, detail }];
  }
  if (begin === undefined) {
    return [{ line: lastAt, detail: "the line is missing with which the attempt was begun" }];
  }
  const { partCount, saidPartCount = partCount } = lines;
  if (partCount !== saidPartCount) {
    const detail = `${partCount} lines of inputs are there, and there were ${saidPartCount}`;
    return [{ line: lastAt, detail }];
  }
  // Another attempt was not recorded; episodes of earlier versions do not say which attempt they are of.
  if (episode === undefined || episode.fields.attempt !== attempt) return [];
  const { line } = begin;
  const { fields } = episode;
  return shared
    .filter((name) => fields[name] !== undefined && fields[name] !== begin[name])
    .map((name) => {
      const values = `${quote(begin[name])}, and ${quote(fields[name])} among the episodes`;
      return { line, detail: `${name} is ${values}` };
    });
}

/** Whether its episode, of that attempt as far as it says so, can be played again. */
function isWhole({ attempt, lines, begin }: Attempt, episode: EpisodeFacts | undefined): boolean {
  if (begin === undefined || !lines.hasEnded || episode === undefined) return false;
  return (episode.fields.attempt ?? attempt) === attempt;
}
