import { isObject } from "../values/is-object.ts";
import path from "node:path";
import { restoreStory } from "../episode/stored-story.ts";
import { compareTotals } from "../episode/check/compare-totals.ts";
import type { Files } from "../run/disk/files.ts";
import type { EpisodeRow } from "../run/folder/run-folder.ts";
import { LineReader, readPlacedLines, type LinePlace } from "../run/disk/placed-lines.ts";
import { RunTally } from "../run/run-progress.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import { parseLine } from "../trajectory/verify-file.ts";
import { isCount, nameOf, type RawRow, type Violation } from "../trajectory/violation.ts";
import { checkEpisode } from "./check-episode.ts";
import { compareSample } from "./compare-sample.ts";
import { findingsIn, type Finding } from "./finding.ts";

const factNames = [
  ...(["groupId", "taskId", "taskIndex", "groupIndex", "sampleIndex", "seed"] as const),
  ...(["environment", "split", "forkedFrom", "outcome", "stopReason", "reward"] as const),
  "attempt" as const,
];
type FactName = (typeof factNames)[number];

/** The facts about an episode that stay in memory. */
export interface EpisodeFacts {
  readonly place: LinePlace;
  /** True if the line is an episode. */
  readonly isReadable: boolean;
  /** True if the line and its sample rows are each sound. */
  isSound: boolean;
  readonly hash: string;
  /** The line's values, unchecked. */
  readonly fields: Readonly<Partial<Record<FactName, unknown>>>;
  /** The number of turns from the episode's fork or branch point. 0 if it is not a fork. */
  readonly turnCountBefore: number;
  /** The number of sample rows that the episode claims. `undefined` if it claims none. */
  readonly rowCount: number | undefined;
  readonly turnCount: number;
  readonly tokenCount: unknown;
  seen: { rows: number; turns: number; tokens: number };
}

/** The episodes of a run's folder. Checks each episode at first, and again with its sample rows. */
export class EpisodeFile implements AsyncDisposable {
  static readonly fileName = "episodes.jsonl";
  readonly episodes: ReadonlyMap<string, EpisodeFacts>;
  readonly findings: readonly Finding[];
  /** The number of lines. */
  readonly count: number;
  /** Sums over the readable episodes. */
  readonly tally: RunTally;
  readonly #reader: LineReader;
  #last: { readonly rolloutId: string; readonly episode: EpisodeRow } | undefined;

  private constructor(
    reader: LineReader,
    read: Pick<EpisodeFile, "episodes" | "findings" | "count" | "tally">,
  ) {
    this.#reader = reader;
    this.episodes = read.episodes;
    this.findings = read.findings;
    this.count = read.count;
    this.tally = read.tally;
  }

  static async open(files: Files, dir: string): Promise<EpisodeFile> {
    const file = path.join(dir, EpisodeFile.fileName);
    const episodes = new Map<string, EpisodeFacts>();
    const violations: (Violation & { line: number })[] = [];
    const tally = new RunTally({ planned: 0, now: () => 0 });
    let count = 0;
    for await (const { text, place } of readPlacedLines(files, file)) {
      const { line } = place;
      count += 1;
      const row = parseLine(text);
      if (!isObject(row)) {
        violations.push({
          line,
          rule: "json",
          detail: "the line is not a JSON object (a torn line?)",
        });
        continue;
      }
      const { found, episode } = checkEpisode(restoreStory(row) as RawRow);
      for (const violation of found) violations.push({ line, ...violation });
      const rolloutId = nameOf(row["rolloutId"]);
      if (episodes.has(rolloutId)) {
        violations.push({ line, rule: "episodes", detail: `${rolloutId} is there twice` });
      }
      const isSound = episode !== undefined && found.length === 0;
      if (isSound) tally.episodeResumed(episode);
      episodes.set(rolloutId, { ...toFacts(row, place, episode), isSound });
    }
    const findings = findingsIn(EpisodeFile.fileName, violations);
    return new EpisodeFile(await LineReader.open(files, file), {
      episodes,
      findings,
      count,
      tally,
    });
  }

  /** Compares a row of samples with its episode. */
  async check(row: RawRow, found: readonly Violation[]): Promise<readonly Violation[]> {
    const rolloutId = nameOf(row["rolloutId"]);
    const facts = this.episodes.get(rolloutId);
    if (facts === undefined) {
      const detail = `no episode ${rolloutId} is finished; a run that is resumed drops the row`;
      return [{ rule: "no-episode", detail }];
    }
    const { turns, tokenIds } = row;
    if (found.length > 0) facts.isSound = false;
    facts.seen.rows += 1;
    facts.seen.turns += Array.isArray(turns) ? turns.length : 0;
    facts.seen.tokens += Array.isArray(tokenIds) ? tokenIds.length : 0;
    return facts.isReadable ? compareSample(row, await this.#read(rolloutId, facts)) : [];
  }

  /** Returns the findings that need all sample rows. */
  finish({ hasNoRows }: { readonly hasNoRows: boolean }): readonly Finding[] {
    const violations: (Violation & { line: number })[] = [];
    for (const [rolloutId, facts] of this.episodes) {
      const { rowCount = facts.seen.rows, fields, seen, place } = facts;
      const rows = { name: "rows", stated: rowCount, actual: seen.rows };
      // Without rows, nothing was counted that the turns could be compared with.
      const totals =
        facts.isReadable && !hasNoRows
          ? compareTotals({ ...facts, outcome: fields.outcome }, seen)
          : [];
      for (const { name, stated, actual } of [rows, ...totals]) {
        if (stated === actual) continue;
        facts.isSound = false;
        const detail = `${rolloutId} has ${nameOf(stated)} ${name}, and samples.jsonl has ${actual} of it`;
        violations.push({ line: place.line, rule: "episode-samples", detail });
      }
    }
    return findingsIn(EpisodeFile.fileName, violations);
  }

  /** Reads an episode. Keeps the last one, because the rows of a rollout are mostly adjacent. */
  async #read(rolloutId: string, { place }: EpisodeFacts): Promise<EpisodeRow> {
    if (this.#last?.rolloutId !== rolloutId) {
      const episode = restoreStory(JSON.parse(await this.#reader.read(place))) as EpisodeRow;
      this.#last = { rolloutId, episode };
    }
    return this.#last.episode;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    await this.#reader[Symbol.asyncDispose]();
  }
}

function toFacts(
  row: RawRow,
  place: LinePlace,
  episode: EpisodeRow | undefined,
): Omit<EpisodeFacts, "isSound"> {
  const { sampleHashes, forkedFrom } = row;
  const turnIndex = isObject(forkedFrom) ? forkedFrom["turnIndex"] : undefined;
  return {
    place,
    isReadable: episode !== undefined,
    hash: hashRow(row),
    fields: Object.fromEntries(
      factNames.filter((name) => row[name] !== undefined).map((name) => [name, row[name]]),
    ),
    turnCountBefore: isCount(turnIndex) ? turnIndex : 0,
    rowCount: Array.isArray(sampleHashes) ? sampleHashes.length : undefined,
    turnCount: episode?.turns.length ?? 0,
    tokenCount: episode?.counts.tokenCount,
    seen: { rows: 0, turns: 0, tokens: 0 },
  };
}
