import { takeTurn } from "../async/take-turn.ts";
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
  /** Names the call, and spreads calls over workers. */
  readonly requestId: string;
}

/**
 * Scores ids. A request that fails or is interrupted is repeated from the start.
 *
 * @throws RolloutError, or the signal's reason, as `Engine.score()` says.
 */
export async function scoreIds(
  { ids, from }: Pick<ScorePiece, "ids" | "from">,
  context: ScoreContext,
): Promise<readonly number[]> {
  const { scoring, workers, requestId } = context;
  const purpose = { verb: "score", noun: "the call", lost: () => [] } as const;
  using call = new RepeatedCall(purpose, context);
  for (;;) {
    await takeTurn();
    call.throwIfOver();
    const at = { requestId, worker: workers.pick(requestId) };
    const piece = { requestId, ids, from, sessionId: requestId };
    const reply = refuseUnusable(
      await call.request(at, (exchange) => scoring.scoreIds(piece, exchange)),
      piece,
    );
    switch (reply.type) {
      case "scored":
        return reply.logprobs;
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
function refuseUnusable(reply: ScoreReply, { ids, from }: ScorePiece): ScoreReply {
  if (reply.type !== "scored") return reply;
  const { logprobs } = reply;
  const count = ids.length - from;
  if (logprobs.length !== count) {
    return refuseReply(new ReplyProblem(`${logprobs.length} ids were scored`, `all ${count}`));
  }
  const problem = findLogprobProblem(logprobs, ids.slice(from));
  return problem === undefined ? reply : refuseReply(problem);
}

/** True if a temperature does not change scores. 0 scores as 1 does. */
export function isNeutral(temperature = 1): boolean {
  return temperature === 0 || temperature === 1;
}

/**
 * Throws if the server's scores ignore a temperature that its reported logprobs include.
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
