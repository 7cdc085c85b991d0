/** One message of a chat with a model that plays a user or a judge. */
export interface ChatMessage {
  readonly role: "system" | "user" | "assistant";
  readonly content: string;
}

/** One call of a chat model. For an absent field the server's default applies. */
export interface ChatRequest {
  readonly messages: readonly ChatMessage[];
  /** 0 is greedy. */
  readonly temperature?: number;
  /** Maximum length of the reply in tokens. At least 1. */
  readonly maxTokens?: number;
  /** The seed, which makes the call reproducible if the server supports it. */
  readonly seed?: number;
}

/**
 * The reason for the end of a reply: complete (`stop`), cut at the token limit (`length`), withheld (`content-filter`),
 * or another reason.
 */
export type ChatFinishReason = "stop" | "length" | "content-filter" | "other";

/** The reply of a chat model with its usage. */
export interface ChatReply {
  /** The reply's text. Contains at least one character that is not white space. */
  readonly text: string;
  /**
   * The number of input tokens, including those of earlier tries with an unusable reply. 0 if the server reports no
   * usage.
   */
  readonly inputTokenCount: number;
  readonly outputTokenCount: number;
  /** The cost in US dollars. Absent if no price is known. */
  readonly costUsd?: number;
  readonly finishReason: ChatFinishReason;
}

/** A hosted or local model that answers in text, for users and judges. */
export interface ChatModel {
  /** The model's name for error messages and records, such as `gpt-4o`. */
  readonly name: string;
  /**
   * Requests one reply.
   *
   * @throws RolloutError `user/timeout`, `user/unreachable`, `user/overloaded`,
   *   `user/server-error`, `user/bad-request`, `user/unauthorized`, `user/empty-reply`,
   *   `user/bad-reply`, `user/budget` or `user/model-error` (or the same with `grader/`).
   * @throws the signal's reason if it is aborted.
   */
  complete(request: ChatRequest, options: { signal: AbortSignal }): Promise<ChatReply>;
}
