import { assertRequest } from "../../engine/check-request.ts";
import { checkGeneration } from "../../engine/check-sampled.ts";
import type { Engine, GenerateOptions, GenerateRequest, Generation } from "../../engine/engine.ts";
import { withEnd } from "../../engine/find-end.ts";
import { nothingSampled } from "../../engine/nothing-sampled.ts";
import { discardPart, findWholeDemand } from "../../engine/whole-demand.ts";
import { RolloutError } from "../../errors.ts";
import { endedBy } from "../../async/ended-by.ts";
import { onAbort } from "../../async/on-abort.ts";
import type { Sampled } from "../inputs/input-player.ts";
import { callParty, overwritten, type Play } from "../play.ts";

/**
 * Calls the engine. Where the episode's time is over, or it is interrupted, the engine has a while to hand over
 * what it sampled; one whose server cannot be told that the time is over has its own limit, for all of the turn.
 * Nothing is an answer only where it was interrupted, asked when the time was nearly over, or where what such a
 * server still sampled was given up for an update of the policy.
 *
 * @throws RolloutError with party `engine`, and InvariantError where the request cannot be sent.
 */
export async function askEngine(play: Play, request: GenerateRequest): Promise<Sampled> {
  assertSendable(play, request);
  const { interrupt, setup, time, watch } = play;
  const { engineTimeoutMs, graceTimeoutMs } = setup.limits;
  const leftMs = time.leftMs();
  let isCalling = true;
  let isNotCut = false;
  let isGivenUp = false;
  const call = {
    party: "engine" as const,
    what: `sample turn ${request.requestId}`,
    timeoutMs: Math.min(engineTimeoutMs, leftMs + graceTimeoutMs),
  };
  const letGo =
    interrupt &&
    onAbort(interrupt, () => {
      // Whatever holds the policy, whoever leaves waits for no longer than the grace.
      watch.goOn();
      watch.shorten(graceTimeoutMs);
    });
  try {
    const generation = await callParty(play, call, (signal) =>
      takeReply(setup.engine, request, {
        signal,
        cutShort: time.signal,
        onHeld: (isHeld) => {
          const isLeaving = interrupt?.aborted === true;
          if (isCalling && !(isHeld && isLeaving)) holdTime(play, isHeld);
        },
        onNotCutShort: () => {
          // Nothing but sampling is lost to an interruption that does not wait for it.
          if (!isCalling || interrupt?.aborted === true) return;
          isNotCut = true;
          if (call.timeoutMs < engineTimeoutMs) watch.lengthen(engineTimeoutMs - call.timeoutMs);
          call.timeoutMs = engineTimeoutMs;
        },
        onGivenUp: () => {
          isGivenUp = isNotCut;
        },
      }),
    );
    if (generation.outputIds.length === 0 && interrupt?.aborted !== true) {
      if (!time.expired) throw emptyReply(call.what);
      if (!isGivenUp && leftMs >= graceTimeoutMs) throw hungEngine(call.what);
    }
    const isPartial =
      interrupt?.aborted === true &&
      generation.finish.type === "length" &&
      generation.outputIds.length < request.maxNewTokens;
    if (!isPartial) return { generation, isLate: time.expired };
    const demand = findWholeDemand(request);
    // Whoever goes on with the episode asks for such a turn anew.
    const part = demand === undefined ? generation : discardPart(generation, demand);
    return { generation: part, isLate: time.expired, isPartial };
  } catch (error) {
    if (!(error instanceof RolloutError) || error.code !== "engine/timeout") throw error;
    if (interrupt?.aborted === true) return nothingYet(play, request, error);
    throw time.expired && !isNotCut ? hungEngine(call.what, error) : error;
  } finally {
    letGo?.();
    // An engine that never said that it goes on holds nothing but its own call.
    isCalling = false;
    holdTime(play, false);
  }
}

/** What cannot be sent is a bug of ours, unless an engine has written into the ids that it was sent before. */
function assertSendable(play: Play, request: GenerateRequest): void {
  try {
    assertRequest(request);
  } catch (error) {
    throw play.recorder.isUnchanged() ? error : overwritten(play);
  }
}

type CuttableOptions = GenerateOptions & { readonly cutShort: AbortSignal };

/**
 * What the engine answers, checked: nothing of it as it came leaves the call, whose limit holds also for what reading
 * it may do. An engine may be anyone's, and end its call by `cutShort` itself, as `fetch()` does with that as its
 * signal: it has nothing to show then. Whatever else it throws is its failure, also behind a cut.
 */
async function takeReply(
  engine: Engine,
  request: GenerateRequest,
  options: CuttableOptions,
): Promise<Generation> {
  let reply: Generation;
  try {
    reply = await engine.generate(request, options);
  } catch (error) {
    if (!endedBy(options.cutShort, error)) throw error;
    const reason = "the engine had nothing to show when it was cut short";
    reply = nothingSampled([{ requestId: request.requestId, reason }]);
  }
  return withEnd(checkGeneration(reply, request), request);
}

/**
 * Neither the call nor the episode loses time while the policy is held by its owner, nor does what is
 * recorded of its time, by which an episode that goes on later knows how much is left.
 */
function holdTime({ player, time, watch }: Play, isHeld: boolean): void {
  if (isHeld) {
    time.pause();
    watch.pause();
    player.pause();
  } else {
    time.resume();
    watch.goOn();
    player.goOn();
  }
}

/**
 * What an engine sampled that handed over nothing when it was interrupted: the turn is asked for again by
 * whoever goes on with the episode.
 */
function nothingYet(
  { setup, time }: Play,
  { requestId }: GenerateRequest,
  error: RolloutError,
): Sampled {
  const reason = "the engine had nothing to show when it was interrupted";
  const message = `Cannot keep what was sampled of turn ${requestId}: ${reason}`;
  setup.onTrouble?.(new RolloutError("engine/timeout", message, { cause: error, retryable: true }));
  const { discarded } = error;
  const generation = nothingSampled(discarded.length > 0 ? discarded : [{ requestId, reason }]);
  return { generation, isLate: time.expired, isPartial: true };
}

function emptyReply(what: string): RolloutError {
  const message = `Cannot ${what}: the engine sampled nothing, expected at least one id`;
  return new RolloutError("engine/bad-reply", message, { retryable: true });
}

function hungEngine(what: string, cause?: RolloutError): RolloutError {
  return new RolloutError(
    "engine/timeout",
    `Cannot ${what}: the engine had nothing to show when the episode's time was over`,
    { cause, discarded: cause?.discarded ?? [], retryable: true },
  );
}
