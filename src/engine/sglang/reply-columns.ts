import type { ColumnName, ExpertShape } from "../../columns/column-specs.ts";
import { expertBytes } from "../../columns/column-specs.ts";
import type { JsonObject } from "../../values/is-object.ts";
import { Base64Reader } from "../http/base64-reader.ts";
import { BlobCutter } from "../http/blob-cutter.ts";
import type { PieceReply } from "../http/piece-reply.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { encodeKept, encodeTops } from "../http/ragged-lists.ts";
import { joinChunks, mostRows, withColumns, type FoundColumns } from "../http/reply-columns.ts";
import { ReplyProblem, show } from "../http/reply-reading.ts";
import { readReplyObject } from "./generate-reply.ts";
import { readTop } from "./read-top.ts";

/** Cuts the columns in base64 out of a reply. */
export type ColumnCutter = BlobCutter<Base64Reader>;

/** Bytes of an id on the wire. */
const wireBytes = 4;

/**
 * Opens a cutter for the columns of a request that come in base64: rows of 32-bit numbers without shape or type. Ids of
 * experts are narrowed as they arrive.
 *
 * **Source:** recorded from SGLang 0.5.23; the indexer's field is from sgl-project/sglang
 * python/sglang/srt/managers/tokenizer_manager.py.
 */
export function openCutter(request: PieceRequest): ColumnCutter | undefined {
  const { columns } = request.turn;
  if (columns === undefined) return undefined;
  const { routedExperts: experts, indexerTopK: indexer } = columns.specs;
  const rows = mostRows(request);
  const allRows = rows + columns.knownRows;
  return new BlobCutter<Base64Reader>({
    ...(experts && {
      routed_experts: () =>
        new Base64Reader({
          name: "meta_info.routed_experts",
          limitBytes: rows * experts.layerCount * experts.perToken * wireBytes,
          convert: (bytes, to) => narrow(bytes, to, experts),
        }),
    }),
    ...(indexer && {
      indexer_topk: () =>
        new Base64Reader({
          name: "meta_info.indexer_topk",
          limitBytes: allRows * indexer.layerCount * indexer.perToken * wireBytes,
        }),
    }),
  });
}

/**
 * Reads a parsed reply with the columns that were requested. An interrupted reply may lack them.
 *
 * @throws ReplyProblem
 */
export async function readReply(
  reply: JsonObject,
  request: PieceRequest,
  cutter: ColumnCutter | undefined,
): Promise<PieceReply> {
  const read = readReplyObject(reply, request);
  if (cutter === undefined) return read;
  return await withColumns(read, request, async ({ length: tokenCount }) => {
    const meta = reply["meta_info"] as JsonObject;
    return await findColumns(meta, { request, cutter, tokenCount });
  });
}

async function findColumns(
  meta: JsonObject,
  {
    request,
    cutter,
    tokenCount,
  }: { request: PieceRequest; cutter: ColumnCutter; tokenCount: number },
): Promise<FoundColumns> {
  const { specs, knownRows } = request.turn.columns!;
  const found: Partial<Record<ColumnName, Uint8Array>> = {};
  if (specs.routedExperts) {
    const chunks = readBlob(meta, "routed_experts", cutter);
    if (chunks !== undefined) found.routedExperts = await joinChunks(chunks);
  }
  if (specs.indexerTopK) {
    const chunks = readBlob(meta, "indexer_topk", cutter);
    const { layerCount, perToken } = specs.indexerTopK;
    const known = knownRows * layerCount * perToken * wireBytes;
    if (chunks !== undefined) found.indexerTopK = await joinChunks(chunks, known);
  }
  if (specs.keptTokens) {
    const lists = readLists(meta, "output_token_sampling_mask", tokenCount);
    const place = "meta_info.output_token_sampling_mask";
    if (lists !== undefined) found.keptTokens = await encodeKept(lists, place);
  }
  if (specs.topLogprobs) {
    const lists = readLists(meta, "output_top_logprobs", tokenCount);
    if (lists !== undefined)
      found.topLogprobs = await encodeTops(lists, (list, row) =>
        readTop(list, `meta_info.output_top_logprobs[${row}]`),
      );
  }
  return found;
}

/** Returns the decoded bytes of a column. Returns `undefined` if the reply lacks the column. */
function readBlob(
  meta: JsonObject,
  name: string,
  cutter: ColumnCutter,
): readonly Uint8Array[] | undefined {
  const value = meta[name];
  if (value === undefined || value === null) return undefined;
  const reader = cutter.readerOf(value);
  if (reader !== undefined) return reader.takeChunks();
  throw new ReplyProblem(`meta_info.${name} is ${show(value)}`, "base64");
}

/** Returns a list with an entry for each sampled token. Returns `undefined` if the reply lacks the list. */
function readLists(
  meta: JsonObject,
  name: string,
  tokenCount: number,
): readonly unknown[] | undefined {
  const lists = meta[name];
  if (lists === undefined || lists === null) return undefined;
  // A stream without the list is assembled with an empty one.
  if (Array.isArray(lists) && lists.length === 0) return undefined;
  if (Array.isArray(lists) && lists.length === tokenCount) return lists;
  const problem = Array.isArray(lists) ? `has ${lists.length} entries` : `is ${show(lists)}`;
  throw new ReplyProblem(`meta_info.${name} ${problem}`, `${tokenCount}, one for each token`);
}

/**
 * Narrows 32-bit ids to the bytes of an expert's id.
 *
 * @throws ReplyProblem for an id that does not fit. The ids are compared with the number of experts later.
 */
function narrow(bytes: Uint8Array, to: Uint8Array, shape: ExpertShape): number {
  if (bytes.length % wireBytes !== 0) {
    throw new ReplyProblem("meta_info.routed_experts ends within a number", "32-bit numbers");
  }
  const wide = new Int32Array(bytes.buffer, bytes.byteOffset, bytes.length / wireBytes);
  const width = expertBytes(shape);
  const bits = width === 1 ? writeBytes(wide, to) : writePairs(wide, to);
  if (bits >>> (8 * width) !== 0) {
    const wrong = wide.find((id) => id < 0 || id >= shape.expertCount);
    throw new ReplyProblem(
      `meta_info.routed_experts has the id ${wrong}`,
      `ids of experts, 0 to ${shape.expertCount - 1}`,
    );
  }
  return wide.length * width;
}

/** Writes numbers as bytes, four at a time, which halves the time. Returns the bitwise OR of all numbers. */
function writeBytes(wide: Int32Array, to: Uint8Array): number {
  const fours = wide.length >> 2;
  const packed = new Uint32Array(to.buffer, to.byteOffset, fours);
  let bits = 0;
  for (let four = 0; four < fours; four++) {
    const a = wide[4 * four]!;
    const b = wide[4 * four + 1]!;
    const c = wide[4 * four + 2]!;
    const d = wide[4 * four + 3]!;
    bits |= a | b | c | d;
    packed[four] = a | (b << 8) | (c << 16) | (d << 24);
  }
  for (let place = 4 * fours; place < wide.length; place++) {
    bits |= wide[place]!;
    to[place] = wide[place]!;
  }
  return bits;
}

/** Writes numbers as pairs of bytes, the low one first. Returns the bitwise OR of all numbers. */
function writePairs(wide: Int32Array, to: Uint8Array): number {
  let bits = 0;
  for (let place = 0; place < wide.length; place++) {
    const id = wide[place]!;
    bits |= id;
    to[2 * place] = id;
    to[2 * place + 1] = id >> 8;
  }
  return bits;
}
