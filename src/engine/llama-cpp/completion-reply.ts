import { isObject, type JsonObject } from "../../values/is-object.ts";
import type { Finish } from "../engine.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { findStop, ignoresStops } from "../find-end.ts";
import {
  ReplyProblem,
  parseObject,
  readCount,
  readList,
  readLogprob,
  readPromptCount,
  readTokenId,
  readTokenIds,
  show,
} from "../http/reply-reading.ts";
import { alignEntries } from "./align-entries.ts";

/** A reply of `/completion`. */
export interface CompletionReply {
  /** The sampled ids, up to and including the first stop id. */
  readonly ids: readonly number[];
  /** `logprobs[i]` is that of `ids[i]`. `undefined` for an id to which the reply has no logprob. */
  readonly logprobs: readonly (number | undefined)[];
  readonly finish: Finish;
  /** Number of tokens after the first stop id. The server does not know the request's stop ids. */
  readonly surplusCount: number;
  readonly cachedTokenCount?: number;
}

/** A floor of logprobs. The server writes a smaller number for a probability that is 0 in single precision. */
const LOGPROB_FLOOR = -1e30;

/**
 * Reads the body of an HTTP 200 of `/completion`.
 *
 * A token that ends within a character has no entry in `completion_probabilities`. The ids show to which token an entry
 * belongs; an ambiguous entry is not used.
 *
 * **Source:** ggml-org/llama.cpp tools/server/server-task.cpp (`to_json_non_oaicompat`) and
 * tools/server/server-context.cpp (`process_token`).
 *
 * @throws ReplyProblem
 */
export function readCompletionReply(text: string, request: PieceRequest): CompletionReply {
  const reply = parseObject(text);
  if (reply["tokens"] === undefined) {
    throw new ReplyProblem(
      "tokens is absent",
      "a list of ids; return_tokens needs llama.cpp b4365 or newer",
    );
  }
  const sampled = readTokenIds(reply, "tokens");
  if (sampled.length === 0) throw new ReplyProblem("no ids were sampled", "at least one");
  checkCounts(reply, { sampled, request });
  const logprobs = readLogprobs(reply, sampled);
  const stopIndex = ignoresStops(request.turn)
    ? -1
    : sampled.findIndex((id) => request.turn.stopTokenIds.includes(id));
  const length = stopIndex < 0 ? sampled.length : stopIndex + 1;
  const ids = sampled.slice(0, length);
  const timings = isObject(reply["timings"]) ? reply["timings"] : {};
  const cachedTokenCount = readCount(timings, "cache_n", "timings.");
  return {
    ids,
    logprobs: logprobs.slice(0, length),
    finish: findStop(ids, request.turn) ?? readFinish(reply, ids),
    surplusCount: sampled.length - length,
    ...(cachedTokenCount !== undefined && { cachedTokenCount }),
  };
}

function readFinish(reply: JsonObject, ids: readonly number[]): Finish {
  switch (reply["stop_type"]) {
    // The model's own end-of-generation id.
    case "eos":
      return { type: "stop", matched: ids.at(-1) ?? 0 };
    case "word": {
      const word = reply["stopping_word"];
      return typeof word === "string" ? { type: "stop", matched: word } : { type: "stop" };
    }
    case "limit":
      return { type: "length" };
    default:
      throw new ReplyProblem(
        `stop_type is ${show(reply["stop_type"])}`,
        "`eos`, `word` or `limit`",
      );
  }
}

function checkCounts(
  reply: JsonObject,
  { sampled, request }: { sampled: readonly number[]; request: PieceRequest },
): void {
  const { length } = request.inputIds;
  if (sampled.length > request.maxNewTokens) {
    throw new ReplyProblem(`${sampled.length} ids were sampled`, `at most ${request.maxNewTokens}`);
  }
  const predictedCount = readCount(reply, "tokens_predicted");
  if (predictedCount !== undefined && predictedCount !== sampled.length) {
    throw new ReplyProblem(`tokens_predicted is ${predictedCount}`, `${sampled.length}`);
  }
  readPromptCount(reply, "tokens_evaluated", { sent: request.inputIds });
  // The last token is sampled, but not in the cache yet.
  const expectedLength = length + sampled.length - 1;
  const cacheLength = readCount(reply, "tokens_cached");
  if (reply["truncated"] === true && cacheLength !== undefined && cacheLength < expectedLength) {
    throw new ReplyProblem(
      `tokens_cached is ${cacheLength}: the server dropped a part of the prompt`,
      `${expectedLength}; start it without --context-shift`,
    );
  }
}

function readLogprobs(
  reply: JsonObject,
  sampled: readonly number[],
): readonly (number | undefined)[] {
  const field = "completion_probabilities";
  // Absent if no token has an entry.
  const entries = reply[field] === undefined ? [] : readList(reply, field);
  const read = entries.map((entry, index) => readEntry(entry, `${field}[${index}]`));
  const places = alignEntries(
    sampled,
    read.map(({ id }) => id),
  );
  if (places === undefined) {
    throw new ReplyProblem(
      `${field} is of ids ${show(read.map(({ id }) => id))}`,
      "those in tokens, in order",
    );
  }
  return places.map((entryIndex) =>
    entryIndex === undefined ? undefined : read[entryIndex]?.logprob,
  );
}

function readEntry(entry: unknown, place: string): { id: number; logprob: number } {
  if (!isObject(entry)) throw new ReplyProblem(`${place} is ${show(entry)}`, "an object");
  const id = readTokenId(entry["id"], `${place}.id`);
  // A token that another model drafted is reported as certain, without a list.
  const top = entry["top_logprobs"];
  if (Array.isArray(top) && top.length === 0) {
    throw new ReplyProblem(
      `${place}, of sampled id ${id}, has no probability`,
      "one; start the server without speculative decoding",
      "engine/nan",
    );
  }
  const logprob = readLogprob(entry["logprob"], {
    place: `${place}.logprob`,
    id,
    floor: LOGPROB_FLOOR,
  });
  return { id, logprob };
}

/**
 * Reads the logprob of an id from the reply to a scoring request. Returns `undefined` if the id is
 * not in the list.
 *
 * @throws ReplyProblem
 */
export function readShownLogprob(text: string, id: number): number | undefined {
  const field = "completion_probabilities";
  const reply = parseObject(text);
  const [entry] = reply[field] === undefined ? [] : readList(reply, field);
  if (!isObject(entry)) {
    throw new ReplyProblem(
      `the logprob of sampled id ${id}, which ends within a character, is not shown`,
      "the server to show it after a stop id",
      "engine/nan",
    );
  }
  const place = `${field}[0].top_logprobs`;
  const shown = readList(entry, "top_logprobs", `${field}[0].`);
  const index = shown.findIndex((item) => isObject(item) && item["id"] === id);
  const found = shown[index];
  if (!isObject(found)) return undefined;
  return readLogprob(found["logprob"], {
    place: `${place}[${index}].logprob`,
    id: id,
    floor: LOGPROB_FLOOR,
  });
}
