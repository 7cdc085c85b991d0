import type { ColumnParts } from "../../columns/column-part.ts";
import type { ForkPlace, Outcome, StopReason } from "../../trajectory/sample.ts";
import type { TurnSpan } from "../../trajectory/segment.ts";

/** Consecutive ids that one version of the policy sampled. JSON-able. */
export interface VersionBand {
  readonly start: number;
  readonly end: number;
  readonly version: string;
}

/**
 * The text of an id. JSON-able. `text`: ordinary characters. `special`: a token with a name, such
 * as `<|im_end|>`. `bytes`: a part of a character, as hexadecimal digits.
 */
export type TokenPiece = readonly [id: number, text: string, form: "text" | "special" | "bytes"];

/** The members of a row, except for its long lists. JSON-able. */
export interface RowHeader {
  readonly rolloutId: string;
  readonly groupId: string;
  readonly segment: number;
  readonly tokenCount: number;
  readonly promptLength: number;
  readonly turns: readonly TurnSpan[];
  readonly versions: readonly VersionBand[];
  readonly outcome: Outcome;
  readonly stopReason: StopReason;
  readonly reward?: number;
  /** The fork point. Absent if the rollout is not a fork. */
  readonly forkedFrom?: ForkPlace;
  readonly metadata: Readonly<Record<string, unknown>>;
  /** The parts of the row's side columns, without bytes. Absent if the row has none. */
  readonly sideColumns?: ColumnParts;
  /** The text of each distinct id. Absent if the tokenizer is not available. */
  readonly pieces?: readonly TokenPiece[];
  /**
   * Present while the episode is being played. The row then has the ids sampled so far, and no
   * mask.
   */
  readonly isLive?: true;
  /** The reason why there are no pieces. */
  readonly piecesNote?: string;
}

/** A training row as columns. The i-th value of each column is that of the i-th id. */
export interface RowColumns {
  readonly header: RowHeader;
  readonly ids: Int32Array;
  /** The row's logprobs, unchanged. */
  readonly logprobs: Float64Array;
  /** The kind of each id, as an index into `tokenKinds`. */
  readonly kinds: Uint8Array;
  /** The row's own loss mask. 2 for a value that is neither 0 nor 1. */
  readonly mask: Uint8Array;
}

const alignment = 8;
const bytesPerToken = 8 + 4 + 1 + 1;

/**
 * Encodes a row as one block of bytes: the header's length, the header as JSON, and the columns in
 * little-endian order.
 */
export function encodeRow({ header, ids, logprobs, kinds, mask }: RowColumns): Uint8Array {
  const json = new TextEncoder().encode(JSON.stringify(header));
  const start = alignUp(4 + json.length);
  const bytes = new Uint8Array(start + ids.length * bytesPerToken);
  new DataView(bytes.buffer).setUint32(0, json.length, true);
  bytes.set(json, 4);
  let place = start;
  for (const column of [logprobs, ids, kinds, mask]) {
    bytes.set(new Uint8Array(column.buffer, column.byteOffset, column.byteLength), place);
    place += column.byteLength;
  }
  return bytes;
}

/**
 * Reads the bytes of `encodeRow()` without copying the columns.
 * @throws RangeError if the bytes are incomplete.
 */
export function decodeRow(bytes: ArrayBuffer): RowColumns {
  const length = new DataView(bytes).getUint32(0, true);
  const header = JSON.parse(
    new TextDecoder().decode(new Uint8Array(bytes, 4, length)),
  ) as RowHeader;
  const count = header.tokenCount;
  let place = alignUp(4 + length);
  const take = (size: number): number => {
    const start = place;
    place += size * count;
    return start;
  };
  return {
    header,
    logprobs: new Float64Array(bytes, take(8), count),
    ids: new Int32Array(bytes, take(4), count),
    kinds: new Uint8Array(bytes, take(1), count),
    mask: new Uint8Array(bytes, take(1), count),
  };
}

function alignUp(place: number): number {
  return Math.ceil(place / alignment) * alignment;
}
