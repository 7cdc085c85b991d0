import type { BodyBytes } from "../http/byte-parts.ts";
import { findIdProblem } from "../check-sampled.ts";
import type { AttemptFailure } from "../http/http-failure.ts";
import { failureOfOutcome, failureOfStatus, readErrorMessage } from "../http/http-failure.ts";
import type { HttpOutcome } from "../http/http-transport.ts";
import type { FailedReply } from "../http/piece-reply.ts";
import { readPieceReply } from "../http/piece-reply.ts";
import type { PieceRequest } from "../http/piece-request.ts";
import { refuseRequest } from "../http/refuse-request.ts";
import type { SamplingProtocol } from "../http/sampling-protocol.ts";
import { toHeaderValue } from "../http/sampling-protocol.ts";
import type { Worker } from "../http/worker-set.ts";
import type { BodyOptions } from "./completion-body.ts";
import { encodeCompletionBody } from "./completion-body.ts";
import { readCompletionReply } from "./completion-reply.ts";
import type { LlamaCppSettings } from "./llama-cpp-options.ts";
import { recoverLogprobs } from "./recover-logprobs.ts";

/**
 * Creates the protocol. The server has no abort request. If a connection is dropped, it stops
 * within a second and loses the sampled tokens, so no turn is ever resumed.
 */
export function createLlamaCppProtocol(settings: LlamaCppSettings): SamplingProtocol {
  /** Servers that refuse the option `chat_parser`. */
  const refusing = new Set<Worker>();
  return {
    async samplePiece(piece, { worker, post }) {
      const refused = refuseConstraint(piece) ?? refuseColumns(piece);
      if (refused !== undefined) return refused;
      const headers = { "x-session-id": toHeaderValue(piece.turn.sessionId) };
      const send = (body: BodyBytes): Promise<HttpOutcome> =>
        post({ path: "/completion", headers, body });
      const toOptions = (): BodyOptions => ({
        settings,
        leavesTextUnparsed: !refusing.has(worker),
      });
      let outcome = await send(encodeCompletionBody(piece, toOptions()));
      if (!refusing.has(worker) && refusesParser(outcome)) {
        refusing.add(worker);
        outcome = await send(encodeCompletionBody(piece, toOptions()));
      }
      if (outcome.type !== "reply" || outcome.status !== 200) {
        return { type: "unanswered", outcome };
      }
      const { text } = outcome;
      return readPieceReply(async () => {
        const completion = readCompletionReply(text, piece);
        const { ids, finish, surplusCount, cachedTokenCount } = completion;
        // Recovering logprobs sends these ids in a prompt.
        const problem = findIdProblem(ids, piece.turn);
        if (problem !== undefined) throw problem;
        const scored = await recoverLogprobs(completion, { piece, options: toOptions(), send });
        if (scored.type === "unanswered") {
          const failure = toFailure(scored.outcome, settings);
          return { type: "failed", failure, tokenCount: ids.length };
        }
        const reason = "sampled after a stop id that the server does not know";
        return {
          type: "finished",
          piece: {
            ids,
            logprobs: scored.logprobs,
            versions: [{ tokenCount: ids.length, policyVersion: settings.policyVersion() }],
            promptTokenCount: piece.inputIds.length,
            ...(cachedTokenCount !== undefined && { cachedTokenCount }),
          },
          finish,
          ...(surplusCount !== 0 && { surplus: { tokenCount: surplusCount, reason } }),
        };
      });
    },
    abortRequest: async () => false,
  };
}

function refuseColumns({ turn }: PieceRequest): FailedReply | undefined {
  if (turn.columns === undefined) return undefined;
  return refuseRequest("side columns", "none: llama.cpp's server returns none");
}

/** Refuses constraints other than JSON schemas. */
function refuseConstraint({ turn }: PieceRequest): FailedReply | undefined {
  const { constraint } = turn;
  if (constraint === undefined || constraint.type === "json-schema") return undefined;
  const failure = {
    code: "engine/bad-request",
    problem: `a constraint of type ${constraint.type} is not supported by the server`,
    expected: "json-schema",
    retry: false,
    maySample: false,
  } as const;
  return { type: "failed", failure };
}

function refusesParser(outcome: HttpOutcome): boolean {
  if (outcome.type !== "reply" || outcome.status !== 400) return false;
  return readErrorMessage(outcome.text).includes("chat_parser");
}

/** Returns the failure of a scoring request. The turn itself was sampled. */
function toFailure(outcome: HttpOutcome, { timeouts }: LlamaCppSettings): AttemptFailure {
  const failure =
    outcome.type === "reply"
      ? failureOfStatus(outcome.status, readErrorMessage(outcome.text))
      : failureOfOutcome(outcome, timeouts.requestMs);
  const problem = `no logprob of a token that ends within a character: ${failure.problem}`;
  return { ...failure, problem, maySample: true };
}
