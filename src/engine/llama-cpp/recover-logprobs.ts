import type { BodyBytes } from "../http/byte-parts.ts";
import type { HttpOutcome } from "../http/http-transport.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { ReplyProblem } from "../http/reply-reading.ts";
import type { Unanswered } from "../http/sampling-protocol.ts";
import type { BodyOptions } from "./completion-body.ts";
import { encodeScoringBody } from "./completion-body.ts";
import type { CompletionReply } from "./completion-reply.ts";
import { readShownLogprob } from "./completion-reply.ts";

/** Numbers of likeliest tokens to request: first a small number, then all of any vocabulary. */
const SHOWN_COUNTS = [1_024, 2 ** 24];

/**
 * Requests the logprobs that a reply lacks.
 *
 * The server reports none for a token that ends within a character, such as a part of an emoji, nor for the token that
 * completes a stop text. Each missing logprob costs one short request, which lists the likeliest tokens after the ids
 * before the token. These are the server's own numbers, computed in another step than the one that sampled the id.
 * These logprobs differ from those of sampling by less than 0.001, unless the server's attention uses 16 bits
 * (docs/servers.md).
 *
 * @throws ReplyProblem `engine/nan` if a logprob cannot be obtained.
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
    send: (body: BodyBytes) => Promise<HttpOutcome>;
  },
): Promise<{ readonly type: "scored"; readonly logprobs: readonly number[] } | Unanswered> {
  const complete: number[] = [];
  for (const [index, logprob] of logprobs.entries()) {
    if (logprob !== undefined) {
      complete.push(logprob);
      continue;
    }
    const id = ids[index] ?? 0;
    const inputIds = [...piece.inputIds, ...ids.slice(0, index)];
    let found: number | undefined;
    for (const shownCount of SHOWN_COUNTS) {
      if (found !== undefined) break;
      const { sessionId } = piece.turn;
      const forcedId = findPrintableId({ ids, logprobs }, piece);
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

/** Returns an id that decodes to complete characters: a stop id, or an id that has a logprob. */
function findPrintableId(
  { ids, logprobs }: Pick<CompletionReply, "ids" | "logprobs">,
  { turn }: PieceRequest,
): number {
  const reportedIndex = logprobs.findIndex((logprob) => logprob !== undefined);
  const id = turn.stopTokenIds[0] ?? ids[reportedIndex];
  if (id !== undefined) return id;
  throw new ReplyProblem(
    "no sampled id has a logprob",
    "a stop id in the request, to request logprobs after it",
    "engine/nan",
  );
}
