import { isShareOver, takeTurn } from "../../async/take-turn.ts";
import { findValueProblem, spanOf } from "../../columns/check-columns.ts";
import type { ColumnPart, ColumnParts } from "../../columns/column-part.ts";
import type { ColumnsWanted } from "../../columns/column-problem.ts";
import { namesOf, type ColumnName } from "../../columns/column-specs.ts";
import { bytesAtOnce, hashInTurns } from "../../columns/hash-in-turns.ts";
import type { PieceReply } from "./piece-reply.ts";
import type { PieceRequest } from "./piece-request.ts";
import { ReplyProblem } from "./reply-reading.ts";

/** The bytes of a reply's columns. A column that the reply lacks is absent. */
export type FoundColumns = Readonly<Partial<Record<ColumnName, Uint8Array>>>;

/**
 * Returns the greatest number of rows that a reply can have in a column with one row for each computed token. The rows
 * that the request knows already (`knownRows`) are not in the reply.
 */
export function mostRows({ inputIds, maxNewTokens, turn }: PieceRequest): number {
  return inputIds.length + maxNewTokens - 1 - (turn.columns?.knownRows ?? 0);
}

/** Joins the parts of a column as they arrived, without the first bytes, and lets other work run in between. */
export async function joinChunks(
  chunks: readonly Uint8Array[],
  skippedBytes = 0,
): Promise<Uint8Array> {
  const total = chunks.reduce((sum, { length }) => sum + length, 0);
  const joined = new Uint8Array(Math.max(0, total - skippedBytes));
  let place = -skippedBytes;
  for (const chunk of chunks) {
    for (let start = 0; start < chunk.length; start += bytesAtOnce) {
      const part = chunk.subarray(start, start + bytesAtOnce);
      const kept = place < 0 ? part.subarray(-place) : part;
      joined.set(kept, Math.max(0, place));
      place += part.length;
      if (isShareOver()) await takeTurn();
    }
  }
  return joined;
}

/**
 * Adds the columns that were requested to a parsed reply. An interrupted reply may lack them.
 *
 * @param find - Finds the columns in the reply.
 * @throws ReplyProblem for a missing column, and for values that no engine returns.
 */
export async function withColumns(
  read: PieceReply,
  request: PieceRequest,
  find: (ids: readonly number[]) => Promise<FoundColumns>,
): Promise<PieceReply> {
  if (read.type !== "finished" && read.type !== "interrupted") return read;
  const { ids } = read.piece;
  if (ids.length === 0) return read;
  const found = await find(ids);
  const isLacking = namesOf(request.turn.columns!.specs).some((name) => found[name] === undefined);
  if (read.type === "interrupted" && isLacking) return read;
  return { ...read, piece: { ...read.piece, columns: await toColumns(found, request, ids) } };
}

/** Checks the columns of a reply, and makes one part of each. Their policy version is `""`. */
async function toColumns(
  found: FoundColumns,
  request: PieceRequest,
  sampledIds: readonly number[],
): Promise<ColumnParts> {
  const { specs, knownRows } = request.turn.columns!;
  const { vocabularySize } = request.turn;
  const promptLength = request.inputIds.length;
  const wanted: ColumnsWanted = { specs, knownRows, promptLength, sampledIds, vocabularySize };
  const columns: Partial<Record<ColumnName, readonly ColumnPart[]>> = {};
  for (const name of namesOf(specs)) {
    columns[name] = await toParts(name, found[name], wanted);
  }
  return columns;
}

async function toParts(
  name: ColumnName,
  bytes: Uint8Array | undefined,
  wanted: ColumnsWanted,
): Promise<readonly ColumnPart[]> {
  const { first, end } = spanOf(name, wanted);
  const rows = end - first;
  if (rows === 0 && (bytes === undefined || bytes.length === 0)) return [];
  if (bytes === undefined) {
    throw new ReplyProblem(
      `the reply has no column ${name}`,
      "it, as it was requested; servers ignore what they were not started with",
    );
  }
  const problem = await findValueProblem(name, { rows, bytes, start: 0 }, wanted);
  if (problem !== undefined) throw new ReplyProblem(problem.problem, problem.expected);
  const hash = await hashInTurns(bytes);
  return [{ from: first, rows, policyVersion: "", size: bytes.length, hash, bytes }];
}
