import { isObject, type JsonObject } from "../../values/is-object.ts";
import type { Finish } from "../engine.ts";
import type { PieceReply, SampledPiece } from "../http/piece-reply.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { findStop } from "../find-end.ts";
import {
  ReplyProblem,
  parseObject,
  readCount,
  readList,
  readLogprob,
  readPromptCount,
  readObject,
  readTokenIds,
  show,
} from "../http/reply-reading.ts";
import { readVersionSpans } from "../version-spans.ts";
import type { VllmApi } from "./vllm-options.ts";

/** vLLM's replacement for minus infinity and for a missing logprob. */
export const LOGPROB_FLOOR = -9_999;

const PLACE = "choices[0].";

/**
 * Reads the body of an HTTP 200 of either API. Fields that repeat ids, logprobs or counts must
 * agree. The policy version is `""` if the reply names none.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/serving.py and
 * vllm/entrypoints/openai/completion/serving.py; vllm/v1/engine/__init__.py (finish reasons).
 *
 * @throws ReplyProblem
 */
export function readVllmReply(
  text: string,
  { request, api }: { request: PieceRequest; api: VllmApi },
): PieceReply {
  return readVllmReplyObject(parseObject(text), { request, api });
}

/** Reads a reply that was assembled from a stream. */
export function readVllmReplyObject(
  reply: JsonObject,
  { request, api }: { request: PieceRequest; api: VllmApi },
): PieceReply {
  const choices = readList(reply, "choices");
  const [choice] = choices;
  if (choices.length !== 1 || !isObject(choice)) {
    throw new ReplyProblem(`choices is ${show(choices)}`, "a list of one object");
  }
  const reason = choice["finish_reason"];
  const ids = readIds(choice, reason);
  if (reason === "error") {
    const problem = 'choices[0].finish_reason is "error"';
    const failure = {
      code: "engine/server-error",
      problem,
      expected: "a complete turn",
      retry: true,
      maySample: true,
    } as const;
    return { type: "failed", failure, tokenCount: ids.length };
  }
  const logprobs = readLogprobs(choice, ids, api);
  const piece = checkPiece({ ids, logprobs, reply, choice, request });
  if (reason === "abort") return { type: "interrupted", piece, message: "the server aborted it" };
  if (ids.length === 0) throw new ReplyProblem("no ids were sampled", "at least one");
  return { type: "finished", piece, finish: readFinish(choice, { ids, request, api }) };
}

/**
 * Reads the logprobs of a choice, or of a chunk: one for each of the ids.
 *
 * @throws ReplyProblem
 */
export function readLogprobs(
  choice: JsonObject,
  ids: readonly number[],
  api: VllmApi,
): readonly number[] {
  return api === "generate" ? readContent(choice, ids) : readColumns(choice, ids);
}

/** Reads the sampled ids. A request that was aborted before it ran has none. */
function readIds(choice: JsonObject, reason: unknown): readonly number[] {
  if (reason === "abort" && choice["token_ids"] === null) return [];
  if (choice["token_ids"] === undefined) {
    throw new ReplyProblem(
      "choices[0].token_ids is absent",
      "a list of ids; return_token_ids needs vLLM 0.10.2 or newer",
    );
  }
  return readTokenIds(choice, "token_ids", PLACE);
}

function readFinish(
  choice: JsonObject,
  { ids, request, api }: { ids: readonly number[]; request: PieceRequest; api: VllmApi },
): Finish {
  const { finish_reason: reason, stop_reason: stopReason } = choice;
  const last = ids.at(-1) ?? 0;
  switch (reason) {
    case "stop":
      if (typeof stopReason === "string") return { type: "stop", matched: stopReason };
      if (typeof stopReason === "number" && stopReason !== last) {
        throw new ReplyProblem(
          `sampling stopped on id ${stopReason} but the last id is ${last}`,
          "the stop id to be the last one",
        );
      }
      // The ids-only API does not name the stop. Without stop texts, it must be the last id.
      return api === "generate" && hasStopStrings(request)
        ? (findStop(ids, request.turn) ?? { type: "stop" })
        : { type: "stop", matched: last };
    case "length":
      // At the budget's end, a stop id has the reason `length`.
      return findStop(ids, request.turn) ?? { type: "length" };
    case "repetition":
      return { type: "stop", matched: "repetition" };
    default:
      throw new ReplyProblem(
        `choices[0].finish_reason is ${show(reason)}`,
        "`stop`, `length`, `abort`, `error` or `repetition`",
      );
  }
}

function hasStopStrings({ turn }: PieceRequest): boolean {
  const stop = turn.sampling.extra?.["stop"];
  return typeof stop === "string" || (Array.isArray(stop) && stop.length > 0);
}

/**
 * Reads the logprobs of the ids-only API: one object per token with its id. Releases before 0.32
 * write the id as `token_id:7`.
 */
function readContent(choice: JsonObject, ids: readonly number[]): readonly number[] {
  if (ids.length === 0 && !isObject(choice["logprobs"])) return [];
  const place = `${PLACE}logprobs.content`;
  const content = readList(readObject(choice, "logprobs", PLACE), "content", `${PLACE}logprobs.`);
  checkLength(content.length, { ids, place });
  return ids.map((id, index) => {
    const entry = content[index];
    if (!isObject(entry)) {
      throw new ReplyProblem(`${place}[${index}] is ${show(entry)}`, "an object");
    }
    const { token_id: named, logprob } = entry;
    if (named === undefined) checkToken(entry["token"], { id, place: `${place}[${index}].token` });
    else checkId(named, { id, place: `${place}[${index}].token_id` });
    return readLogprob(logprob, { place: `${place}[${index}].logprob`, id, floor: LOGPROB_FLOOR });
  });
}

/** Reads the logprobs of the OpenAI API: a list of tokens and a list of numbers. */
function readColumns(choice: JsonObject, ids: readonly number[]): readonly number[] {
  if (ids.length === 0 && !isObject(choice["logprobs"])) return [];
  const columns = readObject(choice, "logprobs", PLACE);
  const place = `${PLACE}logprobs.`;
  const tokens = readList(columns, "tokens", place);
  const logprobs = readList(columns, "token_logprobs", place);
  checkLength(tokens.length, { ids, place: `${place}tokens` });
  checkLength(logprobs.length, { ids, place: `${place}token_logprobs` });
  return ids.map((id, index) => {
    checkToken(tokens[index], { id, place: `${place}tokens[${index}]` });
    return readLogprob(logprobs[index], {
      place: `${place}token_logprobs[${index}]`,
      id,
      floor: LOGPROB_FLOOR,
    });
  });
}

function checkLength(
  length: number,
  { ids, place }: { ids: readonly number[]; place: string },
): void {
  if (length === ids.length) return;
  throw new ReplyProblem(
    `${place} has ${length} entries and choices[0].token_ids ${ids.length}`,
    "one logprob for each id",
  );
}

function checkToken(token: unknown, { id, place }: { id: number; place: string }): void {
  if (token === `token_id:${id}`) return;
  throw new ReplyProblem(
    `${place} is ${show(token)}`,
    `"token_id:${id}", as in choices[0].token_ids`,
  );
}

function checkId(named: unknown, { id, place }: { id: number; place: string }): void {
  if (named === id) return;
  throw new ReplyProblem(`${place} is ${show(named)}`, `${id}, as in choices[0].token_ids`);
}

function checkPiece({
  ids,
  logprobs,
  reply,
  choice,
  request,
}: {
  ids: readonly number[];
  logprobs: readonly number[];
  reply: JsonObject;
  choice: JsonObject;
  request: PieceRequest;
}): SampledPiece {
  if (ids.length > request.maxNewTokens) {
    throw new ReplyProblem(`${ids.length} ids were sampled`, `at most ${request.maxNewTokens}`);
  }
  const usage = isObject(reply["usage"]) ? reply["usage"] : {};
  const promptTokenCount = readPromptCount(usage, "prompt_tokens", {
    place: "usage.",
    sent: request.inputIds,
    listed: choice["prompt_token_ids"] ?? reply["prompt_token_ids"],
  });
  const completionCount = readCount(usage, "completion_tokens", "usage.");
  if (completionCount !== undefined && completionCount !== ids.length) {
    throw new ReplyProblem(`usage.completion_tokens is ${completionCount}`, `${ids.length}`);
  }
  const details = usage["prompt_tokens_details"];
  const cachedTokenCount = isObject(details)
    ? readCount(details, "cached_tokens", "usage.prompt_tokens_details.")
    : undefined;
  return {
    ids,
    logprobs,
    versions: readVersionSpans(choice, { tokenCount: ids.length, place: PLACE }) ?? [
      { tokenCount: ids.length, policyVersion: "" },
    ],
    ...(promptTokenCount !== undefined && { promptTokenCount }),
    ...(cachedTokenCount !== undefined && { cachedTokenCount }),
  };
}
