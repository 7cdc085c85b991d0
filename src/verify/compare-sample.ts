import { isObject } from "../values/is-object.ts";
import { isDeepStrictEqual } from "node:util";
import { compareTree } from "../episode/check/check-tree.ts";
import { compareTurns, isTurnSpan } from "../episode/check/compare-turns.ts";
import type { EpisodeRow } from "../run/folder/episode-row.ts";
import { sampleMetadata } from "../run/folder/episode-samples.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import { isCount, quote, type RawRow, type Violation } from "../trajectory/violation.ts";

const shared = ["groupId", "taskId", "outcome", "stopReason", "reward", "failure"] as const;

/** Compares a training row with the line of its episode. */
export function compareSample(row: RawRow, episode: EpisodeRow): Violation[] {
  return [
    ...compareFields(row, episode),
    ...compareHash(row, episode),
    ...compareTurns(row, episode),
    ...compareMetadata(row, episode),
    ...compareTree(row, episode),
  ];
}

function compareFields(row: RawRow, episode: EpisodeRow): Violation[] {
  return shared
    .filter((field) => !isDeepStrictEqual(row[field], episode[field]))
    .map((field) => ({
      rule: `episode-${field}`,
      detail: `${field} is ${quote(row[field])}, and the episode's is ${quote(episode[field])}`,
    }));
}

function compareHash(row: RawRow, { sampleHashes }: EpisodeRow): Violation[] {
  const { segment } = row;
  // Faults in these two fields are reported elsewhere.
  if (!isCount(segment) || !Array.isArray(sampleHashes)) return [];
  const expected: unknown = sampleHashes[segment];
  if (expected === undefined) {
    const detail = `the episode has ${sampleHashes.length} rows, and this is segment ${segment}`;
    return [{ rule: "segments", detail }];
  }
  if (expected === hashRow(row)) return [];
  const detail = "the row is not the one that was written: the episode keeps another hash of it";
  return [{ rule: "row-changed", detail }];
}

function compareMetadata(row: RawRow, episode: EpisodeRow): Violation[] {
  const { metadata, turns, segment } = row;
  if (!isObject(metadata) || !Array.isArray(turns) || !turns.every(isTurnSpan)) return [];
  const lineage = isCount(segment) ? (episode.lineage?.[segment] ?? undefined) : undefined;
  const expected = plain(sampleMetadata(episode, { turns }, lineage));
  const names = new Set([...Object.keys(metadata), ...Object.keys(expected)]);
  return [...names]
    .filter((name) => !isDeepStrictEqual(metadata[name], expected[name]))
    .map((name) => ({
      rule: "metadata",
      detail: `metadata.${name} is ${quote(metadata[name])}, expected ${quote(expected[name])}`,
    }));
}

function plain(value: object): RawRow {
  return JSON.parse(JSON.stringify(value)) as RawRow;
}
