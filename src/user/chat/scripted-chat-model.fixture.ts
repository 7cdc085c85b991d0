import { ownBug, RolloutError } from "../../errors.ts";
import type { ChatModel, ChatReply, ChatRequest } from "./chat-model.ts";

/** One scripted answer: its text alone, or with what it took, or a failure to throw. */
export type ScriptedChatReply = string | ({ readonly text: string } & Partial<ChatReply>) | Error;

/** A chat model that answers from a list and remembers what it was asked. */
export interface ScriptedChatModel extends ChatModel {
  /** Every request so far, in order, as it was when it was made. */
  readonly requests: readonly ChatRequest[];
  /** @throws InvariantError where answers are left over. */
  assertDrained(): void;
}

/**
 * Answers with the given texts in order: for tests of users and judges, without a server.
 *
 * `complete()` throws RolloutError `user/script-exhausted` where no answer is left.
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
