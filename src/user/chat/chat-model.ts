/** One message of a chat with a model that plays a user or a judge. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** One call of a chat model. A field that is absent is not sent: the server's default applies. */
export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** 0 is greedy. */
  readonly temperature?: number;
  /** Upper bound of the reply, in tokens; at least 1. */
  readonly maxTokens?: number;
  /** Makes the call repeatable where the server can. */
  readonly seed?: number;
}

/** Why a reply ended: said to the end, cut at the token limit, withheld, or anything else. */
export type ChatFinishReason = "stop" | "length" | "content-filter" | "other";

/** What a chat model answered, and what that took. */
export interface ChatReply {
  /** Never empty or only white space. */
  readonly text: string;
  /** Counts include attempts whose reply could not be used; 0 where the server reports none. */
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** In US dollars; absent where no price is known. */
  readonly costUsd?: number;
  readonly finishReason: ChatFinishReason;
}

/** A hosted or local model that answers in text: what model users and judges need, and no more. */
export interface ChatModel {
  /** As it is named in messages and records, such as `gpt-4o`. */
  readonly name: string;
  /**
   * Asks for one reply.
   *
   * @throws RolloutError `user/timeout`, `user/unreachable`, `user/overloaded`,
   *   `user/server-error`, `user/bad-request`, `user/unauthorized`, `user/empty-reply`,
   *   `user/bad-reply`, `user/budget` or `user/model-error` (or the same under `grader/`).
   * @throws the signal's reason where the signal is aborted.
   */
  complete(request: ChatRequest, options: { signal: AbortSignal }): Promise<ChatReply>;
}
