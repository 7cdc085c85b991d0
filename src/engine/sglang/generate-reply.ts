import type { JsonObject } from "../../values/is-object.ts";
import type { Finish } from "../engine.ts";
import { failureOfStatus } from "../http/http-failure.ts";
import type { FailedReply, PieceReply, SampledPiece } from "../http/piece-reply.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { findStop } from "../find-end.ts";
import {
  ReplyProblem,
  readCount,
  readPromptCount,
  readLogprob,
  readObject,
  readTokenId,
  show,
} from "../http/reply-reading.ts";
import { readVersionRuns } from "./version-runs.ts";

/** Returns the failure if the engine aborted the request with an error status. */
export function readEngineFailure(
  reply: JsonObject,
  meta: JsonObject,
  { type, message, status_code: status }: JsonObject,
): FailedReply | undefined {
  if (type !== "abort" || typeof status !== "number" || status < 400) return undefined;
  const failure = failureOfStatus(status, typeof message === "string" ? message : "");
  return { type: "failed", failure, tokenCount: countReported(reply, meta) };
}

/**
 * Reads the body of an HTTP 200 of `/generate`, or a reply that was assembled from a stream, without its columns. Ids
 * and logprobs come from `meta_info.output_token_logprobs`. All other fields of the reply that repeat them must agree.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/tokenizer_manager.py (`meta_info`) and
 * schedule_batch.py (`finish_reason`).
 *
 * @throws ReplyProblem
 */
export function readReplyObject(reply: JsonObject, request: PieceRequest): PieceReply {
  const meta = readObject(reply, "meta_info");
  const reason = readObject(meta, "finish_reason", "meta_info.");
  const { type, matched, message } = reason;
  const failed = readEngineFailure(reply, meta, reason);
  if (failed !== undefined) return failed;
  if (type === "stop" && matched === "NaN happened") {
    return { type: "nan-happened", tokenCount: countReported(reply, meta) };
  }
  const piece = readPiece(reply, meta, request);
  if (type === "abort") {
    return { type: "interrupted", piece, message: typeof message === "string" ? message : "" };
  }
  if (piece.ids.length === 0) throw new ReplyProblem("no ids were sampled", "at least one");
  if (type === "length") {
    // The engine checks the budget first, so a stop id at the budget's end has the reason `length`.
    const finish = findStop(piece.ids, request.turn) ?? { type };
    return { type: "finished", piece, finish };
  }
  if (type === "stop") {
    return { type: "finished", piece, finish: readStop(matched, piece.ids) };
  }
  throw new ReplyProblem(
    `meta_info.finish_reason.type is ${show(type)}`,
    "`stop`, `length` or `abort`",
  );
}

function readStop(matched: unknown, ids: readonly number[]): Finish {
  if (typeof matched === "string") return { type: "stop", matched };
  if (typeof matched !== "number") return { type: "stop" };
  if (ids.at(-1) !== matched) {
    throw new ReplyProblem(
      `sampling stopped on id ${matched} but the last id is ${show(ids.at(-1))}`,
      "the matched id to be the last one",
    );
  }
  return { type: "stop", matched };
}

function readPiece(reply: JsonObject, meta: JsonObject, request: PieceRequest): SampledPiece {
  const { ids, logprobs } = readTokens(entriesOf(meta, request) ?? emptyIfNone(reply, meta));
  if (ids.length > request.maxNewTokens) {
    throw new ReplyProblem(`${ids.length} ids were sampled`, `at most ${request.maxNewTokens}`);
  }
  checkCount(ids.length, meta["completion_tokens"], "meta_info.completion_tokens");
  checkCount(
    ids.length,
    meta["output_token_logprobs_length"],
    "meta_info.output_token_logprobs_length",
  );
  checkSameIds(ids, reply["output_ids"]);
  const promptTokenCount = readSeenCount(reply, meta, request);
  const cachedTokenCount = readCount(meta, "cached_tokens", "meta_info.");
  const queueMs = readQueueMs(meta);
  return {
    ids,
    logprobs,
    versions: readVersionRuns(meta, ids.length),
    ...(queueMs !== undefined && { queueMs }),
    ...(promptTokenCount !== undefined && { promptTokenCount }),
    ...(cachedTokenCount !== undefined && { cachedTokenCount }),
  };
}

/**
 * Reads the number of prompt tokens from a reply or a frame.
 *
 * @throws ReplyProblem if the prompt is not the one that was sent.
 */
export function readSeenCount(
  reply: JsonObject,
  meta: JsonObject,
  { inputIds }: PieceRequest,
): number | undefined {
  return readPromptCount(meta, "prompt_tokens", {
    place: "meta_info.",
    sent: inputIds,
    listed: reply["prompt_token_ids"],
  });
}

/**
 * Reads the time in the queue, which SGLang reports in seconds. Ignores invalid values, because the
 * time is only displayed.
 */
function readQueueMs({ queue_time: seconds }: JsonObject): number | undefined {
  const isTime = typeof seconds === "number" && seconds >= 0;
  return isTime ? Math.round(seconds * 1e6) / 1000 : undefined;
}

/**
 * Returns an empty list for the reply to a request that was aborted before it ran; `undefined` for any other reply,
 * which must have logprobs.
 */
function emptyIfNone(reply: JsonObject, meta: JsonObject): unknown {
  const reason = meta["finish_reason"] as JsonObject;
  return reason["type"] === "abort" && countReported(reply, meta) === 0 ? [] : undefined;
}

/**
 * Returns the entries of `meta_info.output_token_logprobs`. With kept tokens, they have the logprobs over the kept
 * tokens instead of those over the complete vocabulary.
 *
 * **Source:** recorded from SGLang 0.5.23.
 *
 * @throws ReplyProblem if the reply lacks the logprobs over the kept tokens.
 */
export function entriesOf(meta: JsonObject, { turn }: PieceRequest): unknown {
  const entries = meta["output_token_logprobs"];
  const isEmpty = !Array.isArray(entries) || entries.length === 0;
  if (turn.columns?.specs.keptTokens === undefined || isEmpty) return entries;
  const kept = meta["output_token_sampling_logprobs"];
  if (!Array.isArray(kept)) {
    throw new ReplyProblem(
      `meta_info.output_token_sampling_logprobs is ${show(kept)}`,
      "the logprobs over the kept tokens, as return_sampling_mask requests",
    );
  }
  checkCount(entries.length, kept.length, "the length of meta_info.output_token_sampling_logprobs");
  return entries.map((entry: unknown, index) =>
    Array.isArray(entry) ? [kept[index], entry[1]] : entry,
  );
}

/** Reads `meta_info.output_token_logprobs`. `logprobs[i]` is that of `ids[i]`. */
export function readTokens(entries: unknown): { ids: number[]; logprobs: number[] } {
  const field = "meta_info.output_token_logprobs";
  if (!Array.isArray(entries)) {
    throw new ReplyProblem(`${field} is ${show(entries)}`, "a list of [logprob, id, text]");
  }
  const ids: number[] = [];
  const logprobs: number[] = [];
  for (const [index, entry] of entries.entries()) {
    if (!Array.isArray(entry)) {
      throw new ReplyProblem(`${field}[${index}] is ${show(entry)}`, "[logprob, id, text]");
    }
    const [logprob, id] = entry as unknown[];
    const tokenId = readTokenId(id, `${field}[${index}][1]`);
    ids.push(tokenId);
    logprobs.push(readLogprob(logprob, { place: `${field}[${index}][0]`, id: tokenId }));
  }
  return { ids, logprobs };
}

function checkSameIds(ids: readonly number[], outputIds: unknown): void {
  if (outputIds === undefined || outputIds === null) return;
  if (!Array.isArray(outputIds)) {
    throw new ReplyProblem(`output_ids is ${show(outputIds)}`, "a list of ids");
  }
  if (outputIds.length !== ids.length) {
    throw new ReplyProblem(
      `output_ids has ${outputIds.length} ids and meta_info.output_token_logprobs ${ids.length}`,
      "one logprob for each id",
    );
  }
  const differing = ids.findIndex((id, index) => id !== outputIds[index]);
  if (differing >= 0) {
    throw new ReplyProblem(
      `output_ids[${differing}] is ${show(outputIds[differing])}`,
      `${ids[differing]}, as in meta_info.output_token_logprobs`,
    );
  }
}

function checkCount(count: number, reported: unknown, field: string): void {
  if (reported === undefined || reported === null || reported === count) return;
  throw new ReplyProblem(`${field} is ${show(reported)}`, `${count}, one for each logprob`);
}

/** Returns the number of sampled tokens of a failed reply. */
function countReported(reply: JsonObject, meta: JsonObject): number {
  const entries = meta["output_token_logprobs"] ?? reply["output_ids"];
  return Array.isArray(entries)
    ? entries.length
    : (readCount(meta, "completion_tokens", "meta_info.") ?? 0);
}
