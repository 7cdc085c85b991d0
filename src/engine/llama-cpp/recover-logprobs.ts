import type { HttpOutcome } from "../http/http-transport.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { ReplyProblem } from "../http/reply-reading.ts";
import type { Unanswered } from "../http/sampling-protocol.ts";
import type { BodyOptions } from "./completion-body.ts";
import { encodeScoringBody } from "./completion-body.ts";
import type { CompletionReply } from "./completion-reply.ts";
import { readShownLogprob } from "./completion-reply.ts";

/** How many of the likeliest tokens are shown first, and then: all of any vocabulary. */
const SHOWN_COUNTS = [1_024, 2 ** 24];

/**
 * Asks for the logprobs that a reply has none for. The server reports none for a token that ends
 * within a character, as the parts of an emoji do, nor for what completed a stop string. They are had
 * by showing the likeliest tokens behind what came before it, one short request each: the server's own
 * numbers for the same ids behind the same prompt, though not those of the step that sampled them.
 * They differ as much as any two of its computations: by less than 0.001, unless its attention is in 16
 * bits (docs/servers.md).
 *
 * @throws ReplyProblem `engine/nan` where there is none to be had.
 */
export async function recoverLogprobs(
  { ids, logprobs }: Pick<CompletionReply, "ids" | "logprobs">,
  {
    piece,
    options,
    send,
  }: {
    piece: PieceRequest;
    options: BodyOptions;
    send: (body: Uint8Array) => Promise<HttpOutcome>;
  },
): Promise<{ readonly type: "scored"; readonly logprobs: readonly number[] } | Unanswered> {
  const complete: number[] = [];
  for (const [index, logprob] of logprobs.entries()) {
    const id = ids[index] ?? 0;
    const inputIds = [...piece.inputIds, ...ids.slice(0, index)];
    let found = logprob;
    for (const shownCount of SHOWN_COUNTS) {
      if (found !== undefined) break;
      const { sessionId } = piece.turn;
      const forcedId = findWholeId({ ids, logprobs }, piece);
      const outcome = await send(
        encodeScoringBody(inputIds, { ...options, shownCount, forcedId, sessionId }),
      );
      if (outcome.type !== "reply" || outcome.status !== 200) {
        return { type: "unanswered", outcome };
      }
      found = readShownLogprob(outcome.text, id);
    }
    if (found === undefined) {
      throw new ReplyProblem(
        `no logprob of sampled id ${id} is shown among all`,
        "one for each id of the vocabulary",
        "engine/nan",
      );
    }
    complete.push(found);
  }
  return { type: "scored", logprobs: complete };
}

/** An id whose text is whole characters: an end of the turn, or one that was reported. */
function findWholeId(
  { ids, logprobs }: Pick<CompletionReply, "ids" | "logprobs">,
  { turn }: PieceRequest,
): number {
  const reportedIndex = logprobs.findIndex((logprob) => logprob !== undefined);
  const id = turn.stopTokenIds[0] ?? ids[reportedIndex];
  if (id !== undefined) return id;
  throw new ReplyProblem(
    "no sampled id has a logprob",
    "a stop id in the request, for asking behind it",
    "engine/nan",
  );
}
