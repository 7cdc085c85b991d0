import { restBehind } from "../engine/continued-sampling.ts";
import type { GenerateRequest, Generation } from "../engine/engine.ts";
import { isPromptTooLong } from "../engine/is-prompt-too-long.ts";
import { joinGenerations } from "../engine/join-generations.ts";
import { findWholeDemand } from "../engine/whole-demand.ts";
import { samplingOfTurn } from "../engine/turn-seed.ts";
import { RolloutError } from "../errors.ts";
import { askEngine } from "./ask-engine.ts";
import type { Sampled } from "./input-player.ts";
import { isTimeOver, type Play, type TurnsEnd } from "./play.ts";
import { withLostPart } from "./with-lost-part.ts";

/** What asking the policy for a turn came to. */
export type Sampling =
  | {
      readonly type: "sampled";
      readonly generation: Generation;
      readonly promptTokenCount: number;
      readonly engineMs: number;
      /** By the player's clock. */
      readonly sampledAtMs: number;
      /** What was over before the turn was; absent where the policy came to its end. */
      readonly cutBy?: "deadline" | "interrupt";
    }
  /** There is no turn to ask for. */
  | { readonly type: "ended"; readonly end: TurnsEnd };

/**
 * Asks the policy for one turn, with exactly the ids recorded so far. Where the episode's time is over
 * in the meantime, the engine hands over what it has: a policy that was sampling is cut short, or samples the turn
 * to its end where the server cannot be told; an engine that was told and has nothing to show was hung.
 *
 * @throws RolloutError with party `engine`.
 */
export async function sampleTurn(play: Play, turnIndex: number): Promise<Sampling> {
  if (isTimeOver(play)) return ended("deadline");
  const room = remainingTokens(play);
  if (room.tokens <= 0) return ended(room.stopReason);
  const promptTokenCount = play.recorder.length;
  const askedAtMs = play.player.now();
  try {
    const sampled = await takeGeneration(play, turnIndex, room.tokens);
    if ("type" in sampled) return sampled;
    const { generation, isLate, isPartial } = sampled;
    const isShort =
      generation.finish.type === "length" && generation.outputIds.length < room.tokens;
    const sampledAtMs = play.player.now();
    const engineMs = sampledAtMs - askedAtMs;
    const type = "sampled";
    const about = { type, generation, promptTokenCount, engineMs, sampledAtMs } as const;
    if (isPartial) return { ...about, cutBy: "interrupt" };
    return isLate && isShort ? { ...about, cutBy: "deadline" } : about;
  } catch (error) {
    if (isPromptTooLong(error)) return ended("context-full");
    throw error;
  }
}

type Ended = Extract<Sampling, { type: "ended" }>;

const interrupted: Ended = {
  type: "ended",
  end: { outcome: "aborted", stopReason: "interrupted" },
};

/**
 * Takes a turn's generation, with its parts joined where sampling was interrupted and went on later; why
 * there is no turn, where the policy may be asked for nothing more and no id was sampled.
 */
async function takeGeneration(
  play: Play,
  turnIndex: number,
  roomTokens: number,
): Promise<Sampled | Ended> {
  const { interrupt, player, recorder } = play;
  const promptHash = recorder.promptHash;
  let before: Sampled | undefined;
  for (;;) {
    if (!player.isPlaying && interrupt?.aborted === true) {
      // What was done since the last turn is not done again by whoever goes on from here.
      if (before === undefined) player.flush();
      return before === undefined || isEmpty(before) ? interrupted : before;
    }
    // Interrupted when its time was nearly over: there may be none left to go on in.
    if (before !== undefined && isTimeOver(play)) {
      return isEmpty(before) ? ended("deadline") : { generation: before.generation, isLate: true };
    }
    const part = before;
    let sampled: Sampled;
    try {
      sampled = await player.generation(promptHash, () => {
        const sampledIds = part?.generation.outputIds ?? [];
        // The limits may be smaller than those under which it was sampled.
        if (roomTokens <= sampledIds.length) throw noRoom(play, turnIndex, sampledIds.length);
        return askEngine(play, toRequest(play, turnIndex, { roomTokens, sampledIds }));
      });
    } catch (error) {
      // There is no room behind what was sampled before: that is the turn.
      const isTurn = part !== undefined && !isEmpty(part);
      if (isTurn && isPromptTooLong(error)) return { generation: part.generation, isLate: false };
      throw part === undefined ? error : withLostPart(error, part.generation);
    }
    const generation = part
      ? joinGenerations(part.generation, sampled.generation)
      : sampled.generation;
    if (sampled.isPartial !== true) {
      return isEmpty({ generation }) ? ended("deadline") : { generation, isLate: sampled.isLate };
    }
    before = { generation, isLate: sampled.isLate, isPartial: true };
  }
}

/** A turn of which nothing was sampled is none: its time was over, or it was interrupted, before the first id. */
function isEmpty({ generation }: Pick<Sampled, "generation">): boolean {
  return generation.outputIds.length === 0;
}

function ended(stopReason: TurnsEnd["stopReason"]): Ended {
  return { type: "ended", end: { outcome: "truncated", stopReason } };
}

function noRoom({ assignment }: Play, turnIndex: number, sampledCount: number): RolloutError {
  const message =
    `Cannot sample on in turn ${turnIndex} of ${assignment.rolloutId}: the ${sampledCount} ids that ` +
    "were sampled before it was interrupted fill what its limits leave it";
  return new RolloutError("engine/prompt-too-long", message);
}

/** @throws RecordingEnd where it cannot go on behind ids that were recorded of the turn. */
function toRequest(
  play: Play,
  turnIndex: number,
  {
    roomTokens,
    sampledIds,
  }: { readonly roomTokens: number; readonly sampledIds: readonly number[] },
): GenerateRequest {
  const { assignment, player, recorder, setup } = play;
  const { codec, stopTokenIds } = setup.renderer;
  const { rolloutId, attempt = 1, start = 1 } = assignment;
  const place = start === 1 ? attempt : `${attempt}.${start}`;
  const seed = assignment.samplingSeed ?? assignment.seed;
  const sampling = samplingOfTurn(setup.sampling, { seed, turnIndex });
  const turn: GenerateRequest = {
    promptIds: recorder.promptIds,
    sampling,
    maxNewTokens: roomTokens,
    stopTokenIds,
    vocabularySize: codec.vocabularySize,
    requestId: `${rolloutId}:${place}:${turnIndex}${sampledIds.length === 0 ? "" : `+${sampledIds.length}`};`,
    sessionId: rolloutId,
  };
  const rest = restBehind(turn, sampledIds);
  if (rest !== undefined) return rest;
  // An earlier version recorded what was sampled of such a turn, or it was recorded under other settings.
  throw player.end(
    `the recording ends behind ${sampledIds.length} ids of turn ${turnIndex}, which cannot go on: ` +
      `${findWholeDemand(turn)} is of the whole turn`,
  );
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
