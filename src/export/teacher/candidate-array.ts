import type { ColumnArray, PlacedArray } from "../columns/column-sink.ts";
import { float32Array } from "../columns/float32-array.ts";
import { int32Array } from "../columns/int32-array.ts";
import type { Candidate } from "./taught-row.ts";
import type { TeacherSurroundings } from "./teacher-export.ts";

/** Two arrays of the shape [rows, candidates of a row]: ids and logprobs. */
export interface CandidateArrays {
  readonly ids: PlacedArray;
  readonly logprobs: PlacedArray;
}

/**
 * Writes the candidates of rows as two arrays: ids (int32) and logprobs (float32).
 *
 * @param width - Number of candidates in a row of the arrays.
 * @param padding - The candidate that fills a row after its last one.
 */
export async function placeCandidates(
  rows: readonly (readonly Candidate[])[],
  { width, padding }: { readonly width: number; readonly padding: Candidate },
  { place }: Pick<TeacherSurroundings, "place">,
): Promise<CandidateArrays> {
  const shape = [rows.length, width];
  const ids = new Int32Array(rows.length * width).fill(padding.id);
  const logprobs = new Float32Array(rows.length * width).fill(padding.logprob);
  for (const [row, candidates] of rows.entries()) {
    for (const [rank, { id, logprob }] of candidates.entries()) {
      ids[row * width + rank] = id;
      logprobs[row * width + rank] = logprob;
    }
  }
  const arrays: readonly ColumnArray[] = [int32Array(shape, [ids]), float32Array(shape, logprobs)];
  return { ids: await place(arrays[0]!), logprobs: await place(arrays[1]!) };
}
