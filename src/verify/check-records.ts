import { isObject } from "../values/is-object.ts";
import path from "node:path";
import { isDeepStrictEqual } from "node:util";
import { codeOf, readText, type Files } from "../run/disk/files.ts";
import { readPlacedLines } from "../run/disk/placed-lines.ts";
import type { RunTally } from "../run/run-progress.ts";
import { EpisodeEvents, type RecordedGrouping } from "../run/folder/episode-events.ts";
import { parseLine } from "../trajectory/verify-file.ts";
import { spendingCounts } from "../user/chat/add-spending.ts";
import { nameOf, quote, type RawRow, type Violation } from "../trajectory/violation.ts";
import type { EpisodeFacts } from "./episode-file.ts";
import { checkFound } from "./check-found.ts";
import { findingsIn, type Finding } from "./finding.ts";

type Summary = RawRow | "damaged" | undefined;

/** True if the summary says that the run has finished. */
export function isFinishedBy(summary: Summary): summary is RawRow {
  return isObject(summary) && summary["end"] === "finished";
}

/** Reads `summary.json`. Returns `undefined` if the file does not exist. */
export async function readSummary(files: Files, dir: string): Promise<Summary> {
  const text = await readText(files, path.join(dir, "summary.json"));
  if (text === undefined) return undefined;
  const summary = parseLine(text);
  return isObject(summary) ? summary : "damaged";
}

const sums = [
  "outcomes",
  "stopReasons",
  "failures",
  "scored",
  "unscored",
  "turnCount",
  "toolCallCount",
] as const;
const moreSums = ["finished", "formatErrorCount", "sampledTokenCount", "tokenCount"] as const;

/** Compares the sums of a finished run with the sums over its episodes. */
export function checkSummary(
  summary: RawRow,
  tally: RunTally,
  known: {
    readonly planned: number | undefined;
    /** The expected number of slime rows. Absent if it is unknown. */
    readonly slimeRows?: number | undefined;
  },
): readonly Finding[] {
  const expected = tally.progress();
  const found: Violation[] = [];
  const compare = (name: string, stated: unknown, wanted: unknown): void => {
    if (stated === wanted) return;
    const detail = `${name} is ${quote(stated)}, expected ${quote(wanted)}`;
    found.push({ rule: "summary", detail });
  };
  const { userUsage, slime, planned } = summary;
  for (const name of spendingCounts) {
    const stated = isObject(userUsage) ? userUsage[name] : undefined;
    compare(`userUsage.${name}`, stated, expected.userUsage[name]);
  }
  if (known.planned !== undefined) compare("planned", planned, known.planned);
  const slimeRows = isObject(slime) ? slime["rows"] : undefined;
  if ("slimeRows" in known) compare("slime.rows", slimeRows, known.slimeRows);
  // The episodes of a gateway with a folder of its own do not have the counts.
  const isOfSessions = isObject(summary["gateway"]) && "openSessionCount" in summary["gateway"];
  for (const name of [...sums, ...moreSums, ...(isOfSessions ? [] : (["gateway"] as const))]) {
    if (isDeepStrictEqual(summary[name], expected[name])) continue;
    const detail = `${name} is ${quote(summary[name])}, expected ${quote(expected[name])}`;
    found.push({ rule: "summary", detail });
  }
  const { rewardMean } = summary;
  const cost = isObject(userUsage) ? userUsage["costUsd"] : undefined;
  // Fractions are added in the order in which the episodes ended, which may differ from the file's
  // order.
  for (const [name, stated, wanted] of [
    ["rewardMean", rewardMean, expected.rewardMean],
    ["userUsage.costUsd", cost, expected.userUsage.costUsd],
  ] as const) {
    if (!isClose(stated, wanted)) compare(name, stated, wanted);
  }
  return findingsIn("summary.json", found);
}

function isClose(stated: unknown, wanted: number | undefined): boolean {
  if (typeof stated !== "number" || wanted === undefined) return stated === wanted;
  return Math.abs(stated - wanted) <= 1e-9 * Math.max(1, Math.abs(wanted));
}

/**
 * Compares the end of the run in `summary.json` with the last event, which is written right before
 * it.
 */
function compareEnd(summary: Summary, ended: unknown): readonly Finding[] {
  // A crash prevented the summary.
  if (summary === undefined) return [];
  if (summary !== "damaged" && (ended === undefined || summary["end"] === ended)) return [];
  const detail =
    summary === "damaged"
      ? "the file is not a JSON object"
      : `end is ${quote(summary["end"])}, expected ${quote(ended)}`;
  return findingsIn("summary.json", [{ rule: "summary", detail }]);
}

const shared = ["outcome", "stopReason", "reward"] as const;

/**
 * Compares each episode's end event with its line, and the last start event with `run.json`. An episode that was
 * dropped and played again is not a finding. An event that a crash prevented is not a finding either, because the next
 * start writes it. A finished run has an event for each episode.
 * @returns the grouping of the last start, and the findings.
 */
export async function checkEvents(
  { files, dir }: { readonly files: Files; readonly dir: string },
  episodes: ReadonlyMap<string, EpisodeFacts>,
  { manifest, summary }: { readonly manifest: RawRow; readonly summary: Summary },
): Promise<{ readonly grouping: RecordedGrouping; readonly findings: readonly Finding[] }> {
  const found: (Violation & { line?: number })[] = [];
  const finishedEvents = new Map<string, { readonly line: number; readonly event: RawRow }>();
  const standing = new EpisodeEvents();
  const isFinished = isFinishedBy(summary);
  let started: RawRow | undefined;
  /** The outcome of the last start, if an event has it. */
  let ended: unknown;
  let isStarted = false;
  let hasEnded = false;
  let isThere = true;
  let isEnded = isFinished;
  const file = path.join(dir, "events.jsonl");
  try {
    for await (const { text, place } of readPlacedLines(files, file)) {
      const event = parseLine(text);
      const { line } = place;
      if (!isObject(event) || typeof event["type"] !== "string") {
        found.push({ line, rule: "json", detail: "the line is not an event (a torn line?)" });
        continue;
      }
      standing.add(event);
      isStarted ||= event["type"] === "run-started";
      if (event["type"] === "run-started") {
        isEnded = isFinished;
        ended = undefined;
      }
      if (event["type"] === "run-ended") {
        hasEnded = true;
        if (!isStarted) {
          const detail = "the run ended before it was started: the lines are not in their order";
          found.push({ line, rule: "events", detail });
        }
        isEnded = isFinished || event["end"] === "finished";
        ended = event["end"];
      }
      if (event["type"] === "episode-finished") {
        finishedEvents.set(nameOf(event["rolloutId"]), { line, event });
      } else if (event["type"] === "run-started" && isObject(event["manifest"])) {
        started = event["manifest"];
      }
    }
    if (!isStarted) found.push({ rule: "events", detail: "no event records the run's start" });
    // The event is written before the summary. A later start with nothing to play writes no new
    // summary.
    if (isFinished && !hasEnded)
      found.push({ rule: "events", detail: "no event records the run's end" });
  } catch (error) {
    if (codeOf(error) !== "ENOENT") throw error;
    isThere = false;
    found.push({ rule: "events", detail: "there is no such file" });
  }
  for (const [rolloutId, { line, event }] of finishedEvents) {
    if (typeof event["episodeHash"] === "string" && !standing.episodes.has(rolloutId)) continue;
    const details = compareEvent(event, rolloutId, episodes.get(rolloutId));
    found.push(...details.map((detail) => ({ line, rule: "events", detail })));
  }
  for (const rolloutId of isEnded && isThere ? episodes.keys() : []) {
    // Another finding already names an event without the hash.
    const isNamed =
      finishedEvents.has(rolloutId) &&
      typeof finishedEvents.get(rolloutId)?.event["episodeHash"] !== "string";
    if (standing.episodes.has(rolloutId) || isNamed) continue;
    const detail = `no event records the end of ${rolloutId}, and the run says that it is finished`;
    found.push({ rule: "events", detail });
  }
  const findings = [
    ...findingsIn("events.jsonl", found),
    ...compareStart(started, manifest),
    ...compareEnd(summary, ended),
    ...checkFound(manifest),
  ];
  return { grouping: standing.grouping, findings };
}

/** Compares the configuration of the last start with that of `run.json`. */
function compareStart(started: RawRow | undefined, manifest: RawRow): readonly Finding[] {
  // An unreadable run.json is reported elsewhere.
  if (!isObject(manifest["configuration"])) return [];
  const found = (["configuration", "identity"] as const).flatMap((part): Violation[] => {
    const [recorded, stated] = [started?.[part], manifest[part]];
    // A run that a program started may have no identity.
    if (!isObject(recorded)) return [];
    const now = isObject(stated) ? stated : {};
    const names = [...new Set([...Object.keys(recorded), ...Object.keys(now)])];
    return names
      .filter((name) => !isDeepStrictEqual(recorded[name], now[name]))
      .map((name) => {
        const values = `${quote(now[name])}, and the run was started with ${quote(recorded[name])}`;
        return { rule: "run", detail: `${part}.${name} is ${values}` };
      });
  });
  for (const name of ["runId", "promptTime"] as const) {
    const [recorded, stated] = [started?.[name], manifest[name]];
    if (recorded === undefined || recorded === stated) continue;
    const values = `${quote(stated)}, and the run was started with ${quote(recorded)}`;
    found.push({ rule: "run", detail: `${name} is ${values}` });
  }
  return findingsIn("run.json", found);
}

function compareEvent(event: RawRow, rolloutId: string, facts: EpisodeFacts | undefined): string[] {
  if (facts === undefined) {
    return event["outcome"] === "failed"
      ? []
      : [`${rolloutId} ended and is not among the episodes`];
  }
  const details = shared
    .filter((field) => event[field] !== facts.fields[field])
    .map((field) => {
      const values = `${quote(event[field])}, and ${quote(facts.fields[field])}`;
      return `${field} of ${rolloutId} was ${values} among the episodes`;
    });
  if (event["episodeHash"] !== facts.hash) {
    details.push(`the line of ${rolloutId} among the episodes is not the one that was written`);
  }
  return details;
}
