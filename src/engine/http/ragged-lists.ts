import { isShareOver, takeTurn } from "../../async/take-turn.ts";
import { encodeRagged } from "../../columns/ragged-rows.ts";
import { isTokenId } from "../token-id.ts";
import { ReplyProblem, show } from "./reply-reading.ts";

/** The number of rows that are encoded before other work may run. */
const rowsAtOnce = 512;

/** A token with its logprob. */
export interface TopEntry {
  readonly id: number;
  readonly logprob: number;
}

/**
 * Encodes the kept ids of each sampled token.
 *
 * @param place - Names the list in messages.
 * @throws ReplyProblem if the value is not a list of lists of ids.
 */
export async function encodeKept(lists: readonly unknown[], place: string): Promise<Uint8Array> {
  const counts = new Uint32Array(lists.length);
  const ids: number[] = [];
  for (const [row, list] of lists.entries()) {
    if (row % rowsAtOnce === 0 && isShareOver()) await takeTurn();
    if (!Array.isArray(list)) throw new ReplyProblem(`${place}[${row}] is ${show(list)}`, "ids");
    counts[row] = list.length;
    for (const id of list as unknown[]) {
      if (!isTokenId(id)) throw new ReplyProblem(`${place}[${row}] has ${show(id)}`, "ids");
      ids.push(id);
    }
  }
  return encodeRagged({ counts, ids: Int32Array.from(ids) });
}

/**
 * Encodes the most probable tokens of each sampled token.
 *
 * @param read - Reads a row.
 * @throws errors of `read`.
 */
export async function encodeTops(
  lists: readonly unknown[],
  read: (list: unknown, row: number) => readonly TopEntry[],
): Promise<Uint8Array> {
  const counts = new Uint32Array(lists.length);
  const ids: number[] = [];
  const logprobs: number[] = [];
  for (const [row, list] of lists.entries()) {
    if (row % rowsAtOnce === 0 && isShareOver()) await takeTurn();
    const entries = read(list, row);
    counts[row] = entries.length;
    for (const { id, logprob } of entries) {
      ids.push(id);
      logprobs.push(logprob);
    }
  }
  return encodeRagged({
    counts,
    ids: Int32Array.from(ids),
    logprobs: Float32Array.from(logprobs),
  });
}
