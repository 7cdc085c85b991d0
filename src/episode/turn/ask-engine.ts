import { assertRequest } from "../../engine/check-request.ts";
import type { GenerateRequest, Generation } from "../../engine/engine.ts";
import { emptyGeneration } from "../../engine/empty-generation.ts";
import { discardPartialTurn, findOutputRule } from "../../engine/output-rule.ts";
import { RolloutError } from "../../errors.ts";
import { noRedactor } from "../../secrets/redactor.ts";
import { onAbort } from "../../async/on-abort.ts";
import type { Sampled } from "../inputs/input-source.ts";
import { overwritten, type Play } from "../play.ts";
import { emptyReply, requestTurn } from "./request-turn.ts";

/**
 * Requests a turn from the engine, and checks the reply. When the episode's time is over or the episode is interrupted,
 * the engine gets a grace period to return what it has sampled. A server that cannot stop early keeps its own time
 * limit for the complete turn.
 *
 * The reply may be empty in three cases: the turn was interrupted, the request was made shortly before the end of the
 * episode's time, or a weight update cancelled the sampling of a server that cannot stop early.
 *
 * @throws RolloutError with party `engine`, and InvariantError if the request cannot be sent.
 */
export async function askEngine(play: Play, request: GenerateRequest): Promise<Sampled> {
  assertSendable(play, request);
  const { interrupt, redactor, setup, time, watch } = play;
  const { engineTimeoutMs, graceTimeoutMs } = setup.limits;
  const leftMs = time.leftMs();
  let isNotCut = false;
  let isCancelled = false;
  const call = {
    party: "engine" as const,
    what: `sample turn ${request.requestId}`,
    timeoutMs: Math.min(engineTimeoutMs, leftMs + graceTimeoutMs),
  };
  const letGo =
    interrupt &&
    onAbort(interrupt, () => {
      // An interrupted episode waits only for the grace period, even while the policy is paused.
      watch.goOn();
      watch.shorten(graceTimeoutMs);
    });
  try {
    const sampled = await requestTurn(setup.engine, request, {
      watch,
      boundary: call,
      cutShort: time.signal,
      columnStore: setup.columnStore,
      onHeld: (isHeld) => {
        const isLeaving = interrupt?.aborted === true;
        if (!(isHeld && isLeaving)) pauseTime(play, isHeld);
      },
      onNotCutShort: () => {
        // An interrupted episode does not wait for a server that cannot stop early. Only this sampling is lost.
        if (interrupt?.aborted === true) return;
        isNotCut = true;
        if (call.timeoutMs < engineTimeoutMs) watch.lengthen(engineTimeoutMs - call.timeoutMs);
        call.timeoutMs = engineTimeoutMs;
      },
      onAbandoned: () => {
        isCancelled = isNotCut;
      },
    });
    const generation = withoutSecrets(sampled, redactor);
    if (generation.outputIds.length === 0 && interrupt?.aborted !== true) {
      if (!time.expired) throw emptyReply(call.what);
      if (!isCancelled && leftMs >= graceTimeoutMs) throw hungEngine(call.what);
    }
    const isPartial =
      interrupt?.aborted === true &&
      generation.finish.type === "length" &&
      generation.outputIds.length < request.maxNewTokens;
    if (!isPartial) return { generation, isLate: time.expired };
    const rule = findOutputRule(request);
    // A turn with a rule on its complete output cannot continue: the next start samples it again.
    const part = rule === undefined ? generation : discardPartialTurn(generation, rule);
    return { generation: part, isLate: time.expired, isPartial };
  } catch (error) {
    const isTimeout = error instanceof RolloutError && error.code === "engine/timeout";
    if (!isTimeout) throw redactor.thrown(error);
    if (interrupt?.aborted === true) return nothingYet(play, request, error);
    throw redactor.thrown(time.expired && !isNotCut ? hungEngine(call.what, error) : error);
  } finally {
    letGo?.();
  }
}

/**
 * Throws the engine's failure for an invalid request if the engine has changed the prompt ids of an earlier request.
 */
function assertSendable(play: Play, request: GenerateRequest): void {
  try {
    assertRequest(request);
  } catch (error) {
    throw play.recorder.isUnchanged() ? error : overwritten(play);
  }
}

/** Removes secrets from the texts of a generation. Ids and logprobs stay as they are. */
function withoutSecrets(generation: Generation, redactor: Play["redactor"]): Generation {
  if (redactor === noRedactor) return generation;
  const { outputIds, logprobs, ...texts } = generation;
  return { outputIds, logprobs, ...redactor.without(texts) };
}

/**
 * Pauses or resumes the time limits of the call and the episode, and the recorded time, while the
 * policy is paused. An episode that continues later computes its remaining time from the recorded
 * time.
 */
function pauseTime({ episodeTime, time, watch }: Play, isPaused: boolean): void {
  if (isPaused) {
    time.pause();
    watch.pause();
    episodeTime.pause();
  } else {
    time.resume();
    watch.goOn();
    episodeTime.resume();
  }
}

/** Returns the empty reply of an engine that did not answer an interruption in time. The next start samples the turn. */
function nothingYet(
  { redactor, setup, time }: Play,
  { requestId }: GenerateRequest,
  error: RolloutError,
): Sampled {
  const reason = "the engine had nothing to show when it was interrupted";
  const message = `Cannot keep what was sampled of turn ${requestId}: ${reason}`;
  setup.onTrouble?.(new RolloutError("engine/timeout", message, { cause: error, retryable: true }));
  const { discarded } = error;
  const empty = emptyGeneration(discarded.length > 0 ? discarded : [{ requestId, reason }]);
  return { generation: withoutSecrets(empty, redactor), isLate: time.expired, isPartial: true };
}

function hungEngine(what: string, cause?: RolloutError): RolloutError {
  return new RolloutError(
    "engine/timeout",
    `Cannot ${what}: the engine had nothing to show when the episode's time was over`,
    { cause, discarded: cause?.discarded ?? [], retryable: true },
  );
}
