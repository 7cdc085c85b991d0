import { takeTurn } from "../async/take-turn.ts";
import { findValueProblem } from "../columns/check-columns.ts";
import { UsageError } from "../errors.ts";
import type { LogprobConvention } from "./engine.ts";
import { findLogprobProblem } from "./check-sampled.ts";
import type { ScoreReply } from "./http/piece-reply.ts";
import { refuseReply } from "./http/piece-reply.ts";
import type { ScorePiece } from "./http/piece-request.ts";
import { ReplyProblem } from "./http/reply-reading.ts";
import type { CallContext } from "./http/repeated-call.ts";
import { RepeatedCall } from "./http/repeated-call.ts";
import type { ScoringProtocol } from "./http/sampling-protocol.ts";

/** The objects that `scoreIds()` works with. */
interface ScoreContext extends CallContext {
  readonly scoring: ScoringProtocol;
  /** The name of the call, by which calls are spread over workers. */
  readonly requestId: string;
}

/** A server's scores of all requested ids. */
type Scored = Extract<ScoreReply, { readonly type: "scored" }>;

/**
 * Scores ids. A request that fails or is interrupted is repeated from the start.
 *
 * @throws RolloutError, or the signal's reason, as `Engine.score()` says.
 */
export async function scoreIds(
  asked: Pick<ScorePiece, "ids" | "from" | "topCount">,
  context: ScoreContext,
): Promise<Scored> {
  const { scoring, workers, requestId } = context;
  const purpose = { verb: "score", noun: "the call", lost: () => [] } as const;
  using call = new RepeatedCall(purpose, context);
  for (;;) {
    await takeTurn();
    call.throwIfOver();
    const at = { requestId, worker: workers.pick(requestId) };
    const piece = { requestId, ...asked, sessionId: requestId };
    const reply = await refuseUnusable(
      await call.request(at, (exchange) => scoring.scoreIds(piece, exchange)),
      piece,
    );
    switch (reply.type) {
      case "scored":
        return reply;
      case "interrupted":
        await call.waitToResume(at, reply.message);
        break;
      case "failed":
        call.throwIfOver();
        await call.waitToRetry(at, reply.failure);
        break;
      default:
        reply satisfies never;
    }
  }
}

/** Refuses invalid scores. The scores of every server pass through here. */
async function refuseUnusable(
  reply: ScoreReply,
  { ids, from, topCount }: ScorePiece,
): Promise<ScoreReply> {
  if (reply.type !== "scored") return reply;
  const { logprobs, tops: bytes } = reply;
  const count = ids.length - from;
  if (logprobs.length !== count) {
    return refuseReply(new ReplyProblem(`${logprobs.length} ids were scored`, `all ${count}`));
  }
  const wrong = findLogprobProblem(logprobs, ids.slice(from));
  if (wrong !== undefined) return refuseReply(wrong);
  if (topCount === undefined) return reply;
  if (bytes === undefined) {
    return refuseReply(new ReplyProblem("no most probable ids are listed", `${topCount} an id`));
  }
  const wanted = { specs: { topLogprobs: { count: topCount } }, knownRows: 0, sampledIds: [] };
  const part = { rows: count, bytes, start: 0 };
  const found = await findValueProblem("topLogprobs", part, { ...wanted, promptLength: from });
  return found === undefined ? reply : refuseReply(new ReplyProblem(found.problem, found.expected));
}

/** True if a temperature does not change scores. A temperature of 0 counts as 1. */
export function isNeutral(temperature = 1): boolean {
  return temperature === 0 || temperature === 1;
}

/**
 * Refuses a temperature that the server ignores in scores but not in sampled logprobs, because these two could not be
 * compared.
 *
 * @throws UsageError
 */
export function refuseTempered(
  temperature: number,
  { kind, convention }: { kind: string; convention: LogprobConvention | undefined },
): void {
  if (convention === "raw") return;
  const reported =
    convention === undefined ? "of a convention that could not be determined" : convention;
  throw new UsageError(
    `Cannot score at temperature ${temperature} with ${kind}: its scores are of the raw logits ` +
      `at any temperature, and the logprobs of what it samples are ${reported}; ` +
      "expected temperature 1 or 0, a server whose logprobs are raw, or the reference engine",
  );
}
