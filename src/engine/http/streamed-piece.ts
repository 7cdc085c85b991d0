import { failureOfStatus } from "./http-failure.ts";
import type { HttpOutcome } from "./http-transport.ts";
import type { FailedReply, PieceReply } from "./piece-reply.ts";
import { readPieceReply, refuseReply } from "./piece-reply.ts";
import { ReplyProblem, isObject } from "./reply-reading.ts";
import type { PieceExchange, Unanswered } from "./sampling-protocol.ts";

/** What servers send behind a stream's last frame. */
export const STREAM_END = "[DONE]";

/**
 * Makes a request whose answer may be streamed, and reads it. A stream that ends before its end counts
 * as a broken connection.
 *
 * @throws what the caller's `onTokens` throws.
 */
export async function readStreamedPiece(
  { stream }: Pick<PieceExchange, "stream">,
  {
    ask,
    read,
  }: {
    readonly ask: () => Promise<HttpOutcome>;
    /** Reads the reply: its text, or what was streamed where that is empty. */
    readonly read: (text: string) => PieceReply | undefined;
  },
): Promise<PieceReply | Unanswered> {
  try {
    const outcome = await ask();
    if (outcome.type !== "reply" || outcome.status !== 200) return { type: "unanswered", outcome };
    const reply = await readPieceReply(() => {
      const whole = read(outcome.text);
      return whole ?? ({ type: "unanswered", outcome: endedEarly } as const);
    });
    return reply;
  } catch (error) {
    if (!(error instanceof ReplyProblem)) throw error;
    return refuseReply(error, stream?.ids.length);
  }
}

const endedEarly: HttpOutcome = {
  type: "broken",
  sent: true,
  cause: new Error("the stream ended early"),
};

/** What the `error` of a frame means: errors in mid-stream come under HTTP 200. */
export function readStreamedError(error: unknown): FailedReply {
  const { code, message } = isObject(error) ? error : {};
  const status = typeof code === "number" && code >= 400 ? code : 500;
  const words = typeof message === "string" ? message : typeof error === "string" ? error : "";
  return { type: "failed", failure: failureOfStatus(status, words) };
}
