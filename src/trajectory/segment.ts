import { toArray } from "../values/to-array.ts";
import type { ColumnParts } from "../columns/column-part.ts";
import type { GenerationPiece } from "../engine/engine.ts";
import { defineLazy } from "../values/define-lazy.ts";
import { listsOf } from "../values/filled-list.ts";
import { lossMask, type Span } from "./span.ts";

/** The place of a turn's sampled ids in its segment. JSON-able. */
export interface TurnSpan {
  /** 0-based index in the episode. */
  readonly turnIndex: number;
  /** Index of the first sampled id. All ids before it were the turn's prompt. */
  readonly start: number;
  readonly end: number;
  readonly finish: "stop" | "length";
  /** Hash of the prompt ids (`hashIds()` of the segment's ids before `start`). */
  readonly promptHash: string;
  /** Hash of the returned ids, taken from the engine's list and not from the ledger. */
  readonly outputHash: string;
  /**
   * The last returned id, if it was a stop id that had to leave the ledger. Its logprob and its policy version follow.
   */
  readonly droppedStopId?: number;
  readonly droppedStopLogprob?: number;
  readonly droppedStopVersion?: string;
}

/**
 * One append-only stretch of an episode: one training row. JSON-able. In an episode that this process played, the four
 * lists with an entry for each id are made when they are first read.
 */
export interface Segment {
  readonly tokenIds: readonly number[];
  readonly promptLength: number;
  readonly spans: readonly Span[];
  /** `lossMask[i]` is that of `tokenIds[i]`. */
  readonly lossMask: readonly (0 | 1)[];
  /** `logprobs[i]` is that of `tokenIds[i]`. 0 if the mask is 0. */
  readonly logprobs: readonly number[];
  /** `policyVersions[i]` is that of `tokenIds[i]`. `""` if the mask is 0. */
  readonly policyVersions: readonly string[];
  readonly turns: readonly TurnSpan[];
  /** The side columns, without their bytes. Absent if the run has none. */
  readonly columns?: ColumnParts;
}

/** The sampled ids of one trained turn. */
export interface SampledStretch {
  /** Index of the first sampled id in the segment. */
  readonly start: number;
  /** `logprobs[i]` is that of the id at `start + i`. */
  readonly logprobs: readonly number[];
  /** Stretches with one policy version each. Their token counts add up to the number of logprobs. */
  readonly pieces: readonly GenerationPiece[];
}

/** The ids of a segment with the facts that its lists are made from: about 5 bytes an id instead of 32. */
export interface SegmentColumns {
  /** Nothing changes these ids. */
  readonly ids: Int32Array;
  /** The trained turns with at least one id, in order. */
  readonly sampled: readonly SampledStretch[];
}

const columns = new WeakMap<object, SegmentColumns>();

/** Returns the columns of a segment that `createSegment()` made, or of its training row. */
export function columnsOf(segment: object): SegmentColumns | undefined {
  return columns.get(segment);
}

/** Returns the number of ids of a segment. */
export function lengthOf(segment: Segment): number {
  return columnsOf(segment)?.ids.length ?? segment.tokenIds.length;
}

/** Creates a segment. Its long lists are made when they are first read. */
export function createSegment({
  ids,
  sampled,
  promptLength,
  spans,
  turns,
  columns: sideColumns,
}: SegmentColumns & Pick<Segment, "promptLength" | "spans" | "turns" | "columns">): Segment {
  const segment = {};
  defineLazy(segment, "tokenIds", () => toArray(ids));
  Object.assign(segment, { promptLength, spans });
  defineLazy(segment, "lossMask", () => lossMask(spans));
  defineLazy(segment, "logprobs", () => logprobList(ids.length, sampled));
  defineLazy(segment, "policyVersions", () => versionList(ids.length, sampled));
  Object.assign(segment, { turns, ...(sideColumns !== undefined && { columns: sideColumns }) });
  columns.set(segment, { ids, sampled });
  return segment as Segment;
}

/** Lets `columnsOf()` find the columns of a segment's training row, too. */
export function shareColumns(segment: Segment, row: object): void {
  const own = columnsOf(segment);
  if (own !== undefined) columns.set(row, own);
}

const noLogprobs = listsOf(0, [0.5]);
const noVersions = listsOf("");

function logprobList(length: number, sampled: readonly SampledStretch[]): number[] {
  const list = noLogprobs(length);
  for (const { start, logprobs } of sampled) {
    for (let index = 0; index < logprobs.length; index++) list[start + index] = logprobs[index]!;
  }
  return list;
}

function versionList(length: number, sampled: readonly SampledStretch[]): string[] {
  const list = noVersions(length);
  for (const { start, pieces } of sampled) {
    let place = start;
    for (const { tokenCount, policyVersion } of pieces) {
      list.fill(policyVersion, place, place + tokenCount);
      place += tokenCount;
    }
  }
  return list;
}
