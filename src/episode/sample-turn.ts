import { checkGeneration } from "../engine/check-sampled.ts";
import type { GenerateRequest, Generation, SamplingParameters } from "../engine/engine.ts";
import { RolloutError } from "../errors.ts";
import { callParty, isTimeOver, type Play, type TurnsEnd } from "./play.ts";

/** What asking the policy for a turn came to. */
export type Sampling =
  | {
      readonly type: "sampled";
      readonly generation: Generation;
      readonly promptTokenCount: number;
      readonly engineMs: number;
      /** The episode's time was over before the turn was. */
      readonly isCutShort: boolean;
    }
  /** There is no turn to ask for. */
  | { readonly type: "ended"; readonly end: TurnsEnd };

/**
 * Asks the policy for one turn, with exactly the ids recorded so far. Where the episode's time is over
 * in the meantime, the engine hands over what it has: a policy that was sampling is cut short, an
 * engine that has nothing to show was hung.
 *
 * @throws RolloutError with party `engine`.
 */
export async function sampleTurn(play: Play, turnIndex: number): Promise<Sampling> {
  if (isTimeOver(play)) return ended("deadline");
  const room = remainingTokens(play);
  if (room.tokens <= 0) return ended(room.stopReason);
  const request = toRequest(play, turnIndex, room.tokens);
  const promptTokenCount = play.recorder.length;
  const askedAtMs = play.setup.now();
  try {
    const { generation, isLate } = await generate(play, request);
    const isCutShort =
      isLate && generation.finish.type === "length" && generation.outputIds.length < room.tokens;
    const engineMs = play.setup.now() - askedAtMs;
    return { type: "sampled", generation, promptTokenCount, engineMs, isCutShort };
  } catch (error) {
    const isFull = error instanceof RolloutError && error.code === "engine/prompt-too-long";
    if (isFull) return ended("context-full");
    throw error;
  }
}

function ended(stopReason: TurnsEnd["stopReason"]): Sampling {
  return { type: "ended", end: { outcome: "truncated", stopReason } };
}

async function generate(
  play: Play,
  request: GenerateRequest,
): Promise<{ readonly generation: Generation; readonly isLate: boolean }> {
  const { clock, endsAtMs, setup, time } = play;
  const { engineTimeoutMs, graceTimeoutMs } = setup.limits;
  const leftMs = Math.max(endsAtMs - clock.now(), 0);
  const call = {
    party: "engine",
    what: `sample turn ${request.requestId}`,
    timeoutMs: Math.min(engineTimeoutMs, leftMs + graceTimeoutMs),
  } as const;
  try {
    const generation = await callParty(play, call, async (signal) => {
      const reply = await setup.engine.generate(request, { signal, cutShort: time.signal });
      if (checkGeneration(reply, request).outputIds.length > 0) return reply;
      throw time.expired ? hungEngine(call.what) : emptyReply(call.what);
    });
    return { generation, isLate: time.expired };
  } catch (error) {
    const isHung = error instanceof RolloutError && error.code === "engine/timeout";
    throw isHung && time.expired ? hungEngine(call.what, error) : error;
  }
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

function toRequest(play: Play, turnIndex: number, maxNewTokens: number): GenerateRequest {
  const { assignment, recorder, setup } = play;
  const { codec, stopTokenIds } = setup.renderer;
  return {
    promptIds: recorder.promptIds,
    sampling: seeded(setup.sampling, assignment.seed, turnIndex),
    maxNewTokens,
    stopTokenIds,
    vocabularySize: codec.vocabularySize,
    requestId: `${assignment.rolloutId}:${assignment.attempt ?? 1}:${turnIndex};`,
    sessionId: assignment.rolloutId,
  };
}

function seeded(sampling: SamplingParameters, seed: number, turnIndex: number): SamplingParameters {
  return sampling.seed === undefined
    ? sampling
    : { ...sampling, seed: (sampling.seed + seed * 1009 + turnIndex) % 2 ** 31 };
}

/** How many ids the next turn may sample, and which limit says so where it may sample none. */
function remainingTokens({ setup, recorder }: Play) {
  const { maxTokensPerTurn, maxEpisodeTokens, maxContextTokens } = setup.limits;
  const inContext = maxContextTokens - recorder.length;
  const inEpisode = maxEpisodeTokens - recorder.responseLength;
  return {
    tokens: Math.min(maxTokensPerTurn, inContext, inEpisode),
    stopReason: inContext <= inEpisode ? "context-full" : "max-tokens",
  } as const;
}
