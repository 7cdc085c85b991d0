import { ownBug, RolloutError } from "../../errors.ts";
import type { ChatModel, ChatReply, ChatRequest } from "./chat-model.ts";

/** A scripted answer: text, text with usage, or an error to throw. */
export type ScriptedChatReply = string | ({ readonly text: string } & Partial<ChatReply>) | Error;

/** A chat model that answers from a list and records its requests. */
export interface ScriptedChatModel extends ChatModel {
  /** Copies of the requests so far, in order. */
  readonly requests: readonly ChatRequest[];
  /** @throws InvariantError if answers are left. */
  assertDrained(): void;
}

/**
 * Creates a chat model for tests of users and judges that returns the given answers in order.
 *
 * `complete()` throws RolloutError `user/script-exhausted` after the last answer.
 */
export function scriptedChatModel(replies: readonly ScriptedChatReply[]): ScriptedChatModel {
  const requests: ChatRequest[] = [];
  return {
    name: "scripted",
    requests,
    async complete(request, { signal }) {
      signal.throwIfAborted();
      const reply = replies[requests.length];
      requests.push(structuredClone(request));
      if (reply === undefined) {
        throw new RolloutError(
          "user/script-exhausted",
          `Cannot answer call ${requests.length}: the script has ${replies.length} answers`,
        );
      }
      if (reply instanceof Error) throw reply;
      const given = typeof reply === "string" ? { text: reply } : reply;
      return { inputTokenCount: 0, outputTokenCount: 0, finishReason: "stop", ...given };
    },
    assertDrained() {
      if (requests.length >= replies.length) return;
      throw ownBug(`Only ${requests.length} of ${replies.length} answers were used`);
    },
  };
}
