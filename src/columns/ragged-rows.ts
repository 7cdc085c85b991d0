/**
 * Rows of different lengths as bytes, little-endian: the number of entries of each row (uint32), then the ids of all
 * rows (int32), then their logprobs (float32) if the column has logprobs.
 */
export interface RaggedRows {
  /** Number of entries of each row. */
  readonly counts: Uint32Array;
  /** The ids of all rows, row after row. */
  readonly ids: Int32Array;
  /** `logprobs[i]` is that of `ids[i]`. Absent in columns without logprobs. */
  readonly logprobs?: Float32Array;
}

/** Encodes rows. */
export function encodeRagged({ counts, ids, logprobs }: RaggedRows): Uint8Array {
  const bytes = new Uint8Array((counts.length + ids.length + (logprobs?.length ?? 0)) * 4);
  let at = 0;
  for (const list of [counts, ids, logprobs]) {
    if (list === undefined) continue;
    bytes.set(new Uint8Array(list.buffer, list.byteOffset, list.byteLength), at);
    at += list.byteLength;
  }
  return bytes;
}

/**
 * Decodes the rows of a part.
 *
 * @param rows - Number of rows.
 * @throws RangeError if the bytes are not those of so many rows.
 */
export function decodeRagged(
  bytes: Uint8Array,
  { rows, hasLogprobs }: { readonly rows: number; readonly hasLogprobs: boolean },
): RaggedRows {
  // A copy, because lists of 32-bit numbers begin at a multiple of four.
  const { buffer } = new Uint8Array(bytes);
  const wordCount = bytes.length / 4;
  if (!Number.isInteger(wordCount) || wordCount < rows)
    throw new RangeError(wrongSize(bytes, rows));
  const counts = new Uint32Array(buffer, 0, rows);
  let total = 0;
  for (const count of counts) total += count;
  if (rows + total * (hasLogprobs ? 2 : 1) !== wordCount) {
    throw new RangeError(wrongSize(bytes, rows));
  }
  const ids = new Int32Array(buffer, rows * 4, total);
  return hasLogprobs
    ? { counts, ids, logprobs: new Float32Array(buffer, (rows + total) * 4, total) }
    : { counts, ids };
}

function wrongSize(bytes: Uint8Array, rows: number): string {
  return `${bytes.length} bytes are not ${rows} rows with their counts`;
}
