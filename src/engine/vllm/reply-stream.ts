import { isObject, type JsonObject } from "../../values/is-object.ts";
import type { FailedReply } from "../http/piece-reply.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import type { PieceStream } from "../http/piece-stream.ts";
import {
  ReplyProblem,
  checkPrompt,
  parseObject,
  readList,
  readTokenIds,
  show,
} from "../http/reply-reading.ts";
import { STREAM_END, readStreamedError } from "../http/streamed-piece.ts";
import { readLogprobs } from "./piece-reading.ts";
import type { VllmApi } from "./vllm-options.ts";

/**
 * Reads the chunks of a streamed reply of either API, and assembles the reply that the request
 * would have had without streaming.
 *
 * A chunk contains only new tokens. The server omits chunks without tokens, so an aborted request
 * may end without a finish reason.
 *
 * **Source:** vllm-project/vllm vllm/entrypoints/scale_out/token_in_token_out/serving.py
 * (`serve_tokens_stream_generator`) and vllm/entrypoints/openai/completion/serving.py
 * (`completion_stream_generator`).
 */
export class VllmReplyStream {
  readonly #request: PieceRequest;
  readonly #stream: PieceStream;
  readonly #api: VllmApi;
  #choice: JsonObject = { index: 0, logprobs: null };
  #promptIds: unknown;
  #usage: unknown;
  #isEnded = false;
  #failed: FailedReply | undefined;
  #routes: unknown;
  /** Kept tokens of each token, if the server returns them. */
  readonly #masks: unknown[] = [];
  /** Top logprobs of each token, if they are requested. */
  readonly #tops: unknown[] = [];

  constructor(request: PieceRequest, { stream, api }: { stream: PieceStream; api: VllmApi }) {
    this.#request = request;
    this.#stream = stream;
    this.#api = api;
  }

  /**
   * Takes the data of the next event.
   *
   * @throws ReplyProblem, or an error that the caller's `onTokens` throws.
   */
  take(data: string): void {
    if (this.#failed !== undefined) return;
    if (data === STREAM_END) {
      this.#isEnded = true;
      return;
    }
    const chunk = parseObject(data);
    if (chunk["error"] !== undefined && chunk["error"] !== null) {
      this.#failed = readStreamedError(chunk["error"]);
      return;
    }
    this.#usage = chunk["usage"] ?? this.#usage;
    const [choice] = readList(chunk, "choices");
    if (choice === undefined) return;
    if (!isObject(choice)) throw new ReplyProblem(`choices[0] is ${show(choice)}`, "an object");
    this.#takePrompt(choice["prompt_token_ids"] ?? chunk["prompt_token_ids"]);
    this.#choice = choice;
    this.#routes = choice["routed_experts"] ?? this.#routes;
    const { token_ids: listed } = choice;
    if (listed === null || (Array.isArray(listed) && listed.length === 0)) return;
    const ids = readTokenIds(choice, "token_ids", "choices[0].");
    const logprobs = readLogprobs(choice, ids, this.#api);
    this.#takeColumns(choice);
    this.#stream.append(ids, logprobs);
  }

  /** The failure that the stream reported. */
  get failed(): FailedReply | undefined {
    return this.#failed;
  }

  /** Returns the complete reply, or `undefined` if the stream ended early. */
  end(): JsonObject | undefined {
    const reason = this.#choice["finish_reason"] ?? (this.#isEnded ? "abort" : undefined);
    if (reason === undefined) return undefined;
    const choice = {
      ...this.#choice,
      finish_reason: reason,
      token_ids: this.#stream.ids,
      logprobs: this.#joinLogprobs(),
      prompt_token_ids: this.#promptIds,
      routed_experts: this.#routes,
      sampling_mask: this.#masks,
    };
    return { choices: [choice], usage: this.#usage };
  }

  /** Keeps the columns of a chunk's tokens. */
  #takeColumns(choice: JsonObject): void {
    const specs = this.#request.turn.columns?.specs;
    const { sampling_mask: masks, logprobs } = choice;
    if (specs?.keptTokens !== undefined && Array.isArray(masks)) this.#masks.push(...masks);
    if (specs?.topLogprobs === undefined || !isObject(logprobs)) return;
    for (const entry of readList(logprobs, "content", "choices[0].logprobs.")) {
      this.#tops.push(isObject(entry) ? entry["top_logprobs"] : undefined);
    }
  }

  /**
   * Checks the prompt before tokens are streamed, because streamed tokens cannot be sampled again.
   */
  #takePrompt(listed: unknown): void {
    if (listed === undefined || listed === null) return;
    checkPrompt(listed, this.#request.inputIds);
    this.#promptIds = listed;
  }

  #joinLogprobs(): JsonObject {
    const { ids, logprobs } = this.#stream;
    return this.#api === "generate"
      ? {
          content: ids.map((id, index) => ({
            token_id: id,
            logprob: logprobs[index],
            top_logprobs: this.#tops[index],
          })),
        }
      : { tokens: ids.map((id) => `token_id:${id}`), token_logprobs: logprobs };
  }
}
