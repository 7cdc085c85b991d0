import { isObject, type JsonObject } from "../../values/is-object.ts";
import type { FailedReply, PieceReply } from "../http/piece-reply.ts";
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
import { readLogprobs, readVllmReplyObject } from "./piece-reading.ts";
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

  constructor(request: PieceRequest, { stream, api }: { stream: PieceStream; api: VllmApi }) {
    this.#request = request;
    this.#stream = stream;
    this.#api = api;
  }

  /** @throws ReplyProblem, or an error that the caller's `onTokens` throws. */
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
    const { token_ids: listed } = choice;
    if (listed === null || (Array.isArray(listed) && listed.length === 0)) return;
    const ids = readTokenIds(choice, "token_ids", "choices[0].");
    this.#stream.append(ids, readLogprobs(choice, ids, this.#api));
  }

  /**
   * Returns the complete reply, or `undefined` if the stream ended early.
   *
   * @throws ReplyProblem
   */
  end(): PieceReply | undefined {
    if (this.#failed !== undefined) return this.#failed;
    const reason = this.#choice["finish_reason"] ?? (this.#isEnded ? "abort" : undefined);
    if (reason === undefined) return undefined;
    const { ids } = this.#stream;
    const choice = {
      ...this.#choice,
      finish_reason: reason,
      token_ids: ids,
      logprobs: this.#joinLogprobs(),
      prompt_token_ids: this.#promptIds,
    };
    const reply = { choices: [choice], usage: this.#usage };
    return readVllmReplyObject(reply, { request: this.#request, api: this.#api });
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
      ? { content: ids.map((id, index) => ({ token_id: id, logprob: logprobs[index] })) }
      : { tokens: ids.map((id) => `token_id:${id}`), token_logprobs: logprobs };
  }
}
