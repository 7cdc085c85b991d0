import { rowBytesOf, type ColumnName } from "../../columns/column-specs.ts";
import { isObject, type JsonObject } from "../../values/is-object.ts";
import { Base64Reader } from "../http/base64-reader.ts";
import { BlobCutter } from "../http/blob-cutter.ts";
import type { PieceReply } from "../http/piece-reply.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { encodeKept, encodeTops, type TopEntry } from "../http/ragged-lists.ts";
import { joinChunks, mostRows, withColumns, type FoundColumns } from "../http/reply-columns.ts";
import { ReplyProblem, readObject, readTokenId, show } from "../http/reply-reading.ts";
import { npyHeaderBytes, readNpyRows } from "./npy-rows.ts";
import { LOGPROB_FLOOR, readVllmReplyObject } from "./piece-reading.ts";
import type { VllmApi } from "./vllm-options.ts";

/** Cuts the columns in base64 out of a reply. */
export type ColumnCutter = BlobCutter<Base64Reader>;

/** Opens a cutter for routed experts, which come as a `.npy` file in base64. */
export function openCutter(request: PieceRequest): ColumnCutter | undefined {
  const specs = request.turn.columns?.specs;
  if (specs === undefined) return undefined;
  const rowBytes = rowBytesOf("routedExperts", specs);
  if (rowBytes === undefined) return new BlobCutter({});
  const limitBytes = mostRows(request) * rowBytes + npyHeaderBytes;
  const name = "choices[0].routed_experts";
  return new BlobCutter({ routed_experts: () => new Base64Reader({ name, limitBytes }) });
}

/**
 * Reads a parsed reply with the columns that were requested. An interrupted reply may lack them.
 *
 * @throws ReplyProblem
 */
export async function readReply(
  reply: JsonObject,
  {
    request,
    api,
    cutter,
  }: { request: PieceRequest; api: VllmApi; cutter: ColumnCutter | undefined },
): Promise<PieceReply> {
  const read = readVllmReplyObject(reply, { request, api });
  if (cutter === undefined) return read;
  return await withColumns(read, request, async (ids) => {
    const [choice] = reply["choices"] as readonly [JsonObject];
    return await findColumns(choice, { request, cutter, ids });
  });
}

async function findColumns(
  choice: JsonObject,
  { request, cutter, ids }: { request: PieceRequest; cutter: ColumnCutter; ids: readonly number[] },
): Promise<FoundColumns> {
  const { routedExperts, keptTokens, topLogprobs } = request.turn.columns!.specs;
  const found: Partial<Record<ColumnName, Uint8Array>> = {};
  const { routed_experts: routes, sampling_mask: masks } = choice;
  if (routedExperts && routes !== undefined && routes !== null) {
    const reader = cutter.readerOf(routes);
    if (reader === undefined) {
      // Servers of trainers put objects in the same place.
      throw new ReplyProblem(`choices[0].routed_experts is ${show(routes)}`, "a .npy file");
    }
    found.routedExperts = readNpyRows(await joinChunks(reader.takeChunks()), routedExperts);
  }
  if (keptTokens && Array.isArray(masks) && masks.length > 0) {
    if (masks.length !== ids.length) {
      const problem = `choices[0].sampling_mask has ${masks.length} entries`;
      throw new ReplyProblem(problem, `${ids.length}, one for each token`);
    }
    found.keptTokens = await encodeKept(masks, "choices[0].sampling_mask");
  }
  if (topLogprobs) {
    const { content } = readObject(choice, "logprobs", "choices[0].");
    const lists = Array.isArray(content) ? (content as unknown[]) : [];
    found.topLogprobs = await encodeTops(lists, (entry, row) =>
      readTop(entry, { row, count: topLogprobs.count, sampledId: ids[row] }),
    );
  }
  return found;
}

/**
 * Reads the most probable tokens of a sampled token.
 *
 * The server puts the sampled token first, and 0.33 lists one entry more if the token is not among the most probable
 * ones. Keeps the sampled token and the other most probable ones: `count` entries together, best first. Entries that
 * fill up a small set of kept tokens are left out.
 */
function readTop(
  entry: unknown,
  { row, count, sampledId }: { row: number; count: number; sampledId: number | undefined },
): readonly TopEntry[] {
  const place = `choices[0].logprobs.content[${row}].top_logprobs`;
  const list = isObject(entry) ? entry["top_logprobs"] : undefined;
  if (!Array.isArray(list)) throw new ReplyProblem(`${place} is ${show(list)}`, "a list");
  if (list.length > count + 1) {
    throw new ReplyProblem(`${place} has ${list.length} entries`, `at most ${count + 1}`);
  }
  const entries: TopEntry[] = [];
  for (const [rank, top] of (list as unknown[]).entries()) {
    const { token_id: id, token, logprob } = isObject(top) ? top : {};
    if (typeof logprob !== "number") {
      throw new ReplyProblem(`${place}[${rank}] is ${show(top)}`, "a token and its logprob");
    }
    if (logprob <= LOGPROB_FLOOR) continue;
    entries.push({ id: readTokenId(id ?? toId(token), `${place}[${rank}]`), logprob });
  }
  entries.sort((a, b) => b.logprob - a.logprob);
  if (entries.length <= count) return entries;
  const dropped = entries.findLastIndex(({ id }) => id !== sampledId);
  return entries.toSpliced(dropped, 1);
}

/** Returns the id of a token that releases before 0.32 name `token_id:7`. */
function toId(token: unknown): number | undefined {
  const [, digits] = typeof token === "string" ? (/^token_id:(\d+)$/.exec(token) ?? []) : [];
  return digits === undefined ? undefined : Number(digits);
}
