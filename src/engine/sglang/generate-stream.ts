import { isObject, type JsonObject } from "../../values/is-object.ts";
import type { FailedReply } from "../http/piece-reply.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import type { PieceStream } from "../http/piece-stream.ts";
import {
  ReplyProblem,
  parseObject,
  readCount,
  readList,
  readObject,
} from "../http/reply-reading.ts";
import { STREAM_END, readStreamedError } from "../http/streamed-piece.ts";
import { entriesOf, readEngineFailure, readSeenCount, readTokens } from "./generate-reply.ts";

/** The fields of `meta_info` that have one entry of a side column for each sampled token. */
const columnLists = ["output_token_sampling_mask", "output_top_logprobs"] as const;

/**
 * Reads the frames of a streamed `/generate`, and assembles the reply that the request would have had without
 * streaming.
 *
 * Frames contain all tokens so far, or only new ones in some releases and with `--incremental-streaming-output`. The
 * counts show which of the two.
 *
 * **Source:** sgl-project/sglang python/sglang/srt/managers/tokenizer_manager.py (`_handle_batch_output`) and
 * python/sglang/srt/entrypoints/http_server.py (`generate_request`).
 */
export class GenerateStream {
  readonly #request: PieceRequest;
  readonly #stream: PieceStream;
  #last: JsonObject | undefined;
  #failed: FailedReply | undefined;
  /** Lists with an entry for each token, by their name in `meta_info`. */
  readonly #lists: Record<(typeof columnLists)[number], unknown[]> = {
    output_token_sampling_mask: [],
    output_top_logprobs: [],
  };

  constructor(request: PieceRequest, stream: PieceStream) {
    this.#request = request;
    this.#stream = stream;
  }

  /**
   * Takes the data of the next event.
   *
   * @throws ReplyProblem, or an error that the caller's `onTokens` throws.
   */
  take(data: string): void {
    if (data === STREAM_END || this.#failed !== undefined) return;
    const frame = parseObject(data);
    const { error } = frame;
    if (error !== undefined) {
      this.#failed = readStreamedError(error);
      return;
    }
    const meta = readObject(frame, "meta_info");
    const reason = meta["finish_reason"];
    this.#failed = isObject(reason) ? readEngineFailure(frame, meta, reason) : undefined;
    const isNan = isObject(reason) && reason["matched"] === "NaN happened";
    if (this.#failed !== undefined || isNan) {
      this.#last = frame;
      return;
    }
    // Checked before tokens are streamed, because streamed tokens cannot be sampled again.
    readSeenCount(frame, meta, this.#request);
    const entries = this.#newEntries(meta);
    this.#noteVersion(meta);
    const { ids, logprobs } = readTokens(entries);
    this.#stream.append(ids, logprobs);
    this.#last = frame;
  }

  /** The failure that the stream reported. */
  get failed(): FailedReply | undefined {
    return this.#failed;
  }

  /** Returns the complete reply, or `undefined` if the stream ended early. */
  end(): JsonObject | undefined {
    const meta = this.#last?.["meta_info"];
    if (this.#last === undefined || !isObject(meta) || !isObject(meta["finish_reason"])) {
      return undefined;
    }
    const { ids, logprobs } = this.#stream;
    return {
      ...this.#last,
      output_ids: ids,
      meta_info: {
        ...meta,
        output_token_logprobs: ids.map((id, index) => [logprobs[index], id, null]),
        output_token_logprobs_length: ids.length,
        // The streamed logprobs are those over the kept tokens, if these were requested.
        output_token_sampling_logprobs: logprobs,
        ...this.#lists,
      },
    };
  }

  #newEntries(meta: JsonObject): readonly unknown[] {
    const streamedCount = this.#stream.ids.length;
    const field = "output_token_logprobs";
    // A request that was aborted before it ran has no list.
    const listed = entriesOf(meta, this.#request);
    const entries = listed === undefined ? [] : readList({ [field]: listed }, field, "meta_info.");
    const totalCount =
      readCount(meta, "completion_tokens", "meta_info.") ??
      readCount(meta, "output_token_logprobs_length", "meta_info.") ??
      entries.length;
    if (entries.length === totalCount) {
      this.#checkStreamed(entries);
      this.#noteLists(meta, { isComplete: true });
      return entries.slice(streamedCount);
    }
    if (streamedCount + entries.length === totalCount) {
      this.#noteLists(meta, { isComplete: false });
      return entries;
    }
    throw new ReplyProblem(
      `a frame has ${entries.length} tokens after ${streamedCount}, and counts ${totalCount}`,
      "all tokens so far, or those that are new",
    );
  }

  /** Keeps the lists of a frame, which has all entries so far or only new ones. */
  #noteLists(meta: JsonObject, { isComplete }: { readonly isComplete: boolean }): void {
    if (this.#request.turn.columns === undefined) return;
    for (const name of columnLists) {
      const list = meta[name];
      if (!Array.isArray(list)) continue;
      if (isComplete) this.#lists[name] = list;
      else for (const entry of list as unknown[]) this.#lists[name].push(entry);
    }
  }

  /** Checks that a frame with all tokens starts with the streamed ones. */
  #checkStreamed(entries: readonly unknown[]): void {
    const { ids, logprobs } = this.#stream;
    for (const [index, id] of ids.entries()) {
      const entry = entries[index];
      if (Array.isArray(entry) && entry[1] === id && entry[0] === logprobs[index]) continue;
      throw new ReplyProblem(
        `a frame differs at token ${index} from those before it`,
        "the same tokens and logprobs",
      );
    }
  }

  #noteVersion(meta: JsonObject): void {
    const version = meta["weight_version"];
    if (typeof version === "string" || typeof version === "number") {
      this.#stream.policyVersion = `${version}`;
    }
  }
}
