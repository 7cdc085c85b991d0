import { isObject } from "../../values/is-object.ts";
import { failureOfStatus } from "./http-failure.ts";
import type { HttpOutcome } from "./http-transport.ts";
import type { FailedReply, PieceReply } from "./piece-reply.ts";
import { readPieceReply, refuseReply } from "./piece-reply.ts";
import { ReplyProblem } from "./reply-reading.ts";
import type { PieceExchange, Unanswered } from "./sampling-protocol.ts";

/** The data that servers send after a stream's last frame. */
export const STREAM_END = "[DONE]";

/**
 * Makes a request with an optionally streamed answer, and reads the answer. A stream without its
 * last frame counts as a broken connection.
 *
 * @throws errors that the caller's `onTokens` throws.
 */
export async function readStreamedPiece(
  { stream }: Pick<PieceExchange, "stream">,
  {
    ask,
    read,
  }: {
    readonly ask: () => Promise<HttpOutcome>;
    /** Reads the reply's text, or the streamed frames if the text is empty. */
    readonly read: (text: string) => PieceReply | undefined | Promise<PieceReply | undefined>;
  },
): Promise<PieceReply | Unanswered> {
  try {
    const outcome = await ask();
    if (outcome.type !== "reply" || outcome.status !== 200) return { type: "unanswered", outcome };
    const reply = await readPieceReply(async () => {
      const complete = await read(outcome.text);
      return complete ?? ({ type: "unanswered", outcome: endedEarly } as const);
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

/** Translates the `error` of a frame into a failure. Errors in mid-stream come with status 200. */
export function readStreamedError(error: unknown): FailedReply {
  const { code, message } = isObject(error) ? error : {};
  const status = typeof code === "number" && code >= 400 ? code : 500;
  const words = typeof message === "string" ? message : typeof error === "string" ? error : "";
  return { type: "failed", failure: failureOfStatus(status, words) };
}
