import { isDeepStrictEqual } from "node:util";
import type { EpisodeRow } from "../run/episode-row.ts";
import { sampleMetadata } from "../run/episode-samples.ts";
import { hashRow } from "../trajectory/hash-row.ts";
import type { TurnSpan } from "../trajectory/trajectory-recorder.ts";
import { compareTree } from "./check-tree.ts";
import { isCount, isRow, quote, type RawRow, type Violation } from "../trajectory/violation.ts";

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
  // What is wrong with these two is found elsewhere.
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

function compareTurns({ turns }: RawRow, episode: EpisodeRow): Violation[] {
  if (!Array.isArray(turns)) return [];
  return turns.flatMap((turn: unknown, index): Violation[] => {
    // What is no turn's span is found elsewhere.
    if (!isSpan(turn)) return [];
    const { turnIndex, start, end, finish, droppedStopId } = turn;
    const record = episode.turns[turnIndex];
    const place = `turns[${index}]`;
    if (record === undefined) {
      const detail = `${place} is turn ${turnIndex}, and the episode has ${episode.turns.length}`;
      return [{ rule: "episode-turns", detail }];
    }
    const dropped = droppedStopId === undefined ? 0 : 1;
    const facts: readonly (readonly [string, unknown, unknown])[] = [
      ["finish", finish, record.finish],
      ["number of sampled ids", end - start + dropped, record.sampledTokenCount],
      ["number of ids before it", start, record.promptTokenCount],
    ];
    return facts
      .filter(([, own, other]) => own !== other)
      .map(([name, own, other]) => ({
        rule: "episode-turns",
        detail: `${place}: the ${name} is ${quote(own)}, and ${quote(other)} in the episode`,
      }));
  });
}

function compareMetadata(row: RawRow, episode: EpisodeRow): Violation[] {
  const { metadata, turns } = row;
  if (!isRow(metadata) || !Array.isArray(turns) || !turns.every(isSpan)) return [];
  const expected = plain(sampleMetadata(episode, { turns }));
  const names = new Set([...Object.keys(metadata), ...Object.keys(expected)]);
  return [...names]
    .filter((name) => !isDeepStrictEqual(metadata[name], expected[name]))
    .map((name) => ({
      rule: "metadata",
      detail: `metadata.${name} is ${quote(metadata[name])}, expected ${quote(expected[name])}`,
    }));
}

function isSpan(turn: unknown): turn is TurnSpan & RawRow {
  return isRow(turn) && ["turnIndex", "start", "end"].every((name) => isCount(turn[name]));
}

function plain(value: object): RawRow {
  return JSON.parse(JSON.stringify(value)) as RawRow;
}
