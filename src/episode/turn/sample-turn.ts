import { restBehind } from "../../engine/continued-sampling.ts";
import type { GenerateRequest, Generation } from "../../engine/engine.ts";
import { isPromptTooLong } from "../../engine/http/is-prompt-too-long.ts";
import { joinGenerations } from "../../engine/join-generations.ts";
import { findWholeDemand } from "../../engine/whole-demand.ts";
import { samplingOfTurn } from "../../engine/turn-seed.ts";
import { RolloutError } from "../../errors.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { askEngine } from "./ask-engine.ts";
import type { Sampled } from "../inputs/input-source.ts";
import { isTimeOver, type Play, type TurnsEnd } from "../play.ts";
import { withLostPart } from "../with-lost-part.ts";

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
  if (isTurnOver()) await takeTurn();
  if (isTimeOver(play)) return ended("deadline");
  const room = remainingTokens(play);
  if (room.tokens <= 0) return ended(room.stopReason);
  const { inputRecorder, inputs, interrupt, playback, recorder } = play;
  const asked = { roomTokens: room.tokens, promptTokenCount: recorder.length, atMs: inputs.now() };
  const { promptHash } = recorder;
  // Parts are joined where sampling was interrupted and went on later.
  let before: Sampled | undefined;
  for (;;) {
    if (playback?.isPlaying !== true && interrupt?.aborted === true) {
      // The next start must not repeat the work since the last turn.
      if (before === undefined) inputRecorder?.flush();
      return before === undefined || isEmpty(before)
        ? interrupted
        : toSampling(play, asked, before);
    }
    // Interrupted when its time was nearly over: there may be none left to go on in.
    if (before !== undefined && isTimeOver(play)) {
      if (isEmpty(before)) return ended("deadline");
      return toSampling(play, asked, { generation: before.generation, isLate: true });
    }
    let sampled: Sampled;
    try {
      sampled = await takePart(play, turnIndex, { promptHash, before, roomTokens: room.tokens });
    } catch (error) {
      // There is no room behind what was sampled before: that is the turn.
      if (isPromptTooLong(error)) return withoutRoom(play, asked, before);
      throw before === undefined ? error : withLostPart(error, before.generation);
    }
    const generation =
      before === undefined
        ? sampled.generation
        : joinGenerations(before.generation, sampled.generation);
    if (sampled.isPartial !== true) {
      if (isEmpty({ generation })) return ended("deadline");
      return toSampling(play, asked, { generation, isLate: sampled.isLate });
    }
    before = { generation, isLate: sampled.isLate, isPartial: true };
  }
}

/** Asks for the turn, or for what is left of it. */
function takePart(
  play: Play,
  turnIndex: number,
  {
    promptHash,
    before,
    roomTokens,
  }: {
    readonly promptHash: string;
    readonly before: Sampled | undefined;
    readonly roomTokens: number;
  },
): Sampled | Promise<Sampled> {
  return play.inputs.generation(promptHash, () => {
    const sampledIds = before?.generation.outputIds ?? [];
    // The limits may be smaller than those under which it was sampled.
    if (roomTokens <= sampledIds.length) throw noRoom(play, turnIndex, sampledIds.length);
    return askEngine(play, toRequest(play, turnIndex, { roomTokens, sampledIds }));
  });
}

interface Asked {
  readonly roomTokens: number;
  readonly promptTokenCount: number;
  readonly atMs: number;
}

function toSampling(
  { inputs }: Play,
  { atMs, promptTokenCount, roomTokens }: Asked,
  { generation, isLate, isPartial }: Sampled,
): Sampling {
  const isShort = generation.finish.type === "length" && generation.outputIds.length < roomTokens;
  const sampledAtMs = inputs.now();
  const engineMs = sampledAtMs - atMs;
  const type = "sampled";
  const about = { type, generation, promptTokenCount, engineMs, sampledAtMs } as const;
  if (isPartial) return { ...about, cutBy: "interrupt" };
  return isLate && isShort ? { ...about, cutBy: "deadline" } : about;
}

function withoutRoom(play: Play, asked: Asked, before: Sampled | undefined): Sampling {
  if (before === undefined || isEmpty(before)) return ended("context-full");
  return toSampling(play, asked, { generation: before.generation, isLate: false });
}

type Ended = Extract<Sampling, { type: "ended" }>;

const interrupted: Ended = {
  type: "ended",
  end: { outcome: "aborted", stopReason: "interrupted" },
};

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
  const { assignment, playback, recorder, setup } = play;
  const { codec, stopTokenIds } = setup.renderer;
  const { rolloutId, attempt = 1, start = 1 } = assignment;
  const place = start === 1 ? attempt : `${attempt}.${start}`;
  const seed = assignment.samplingSeed ?? assignment.seed;
  const sampling = samplingOfTurn(setup.sampling, { seed, turnIndex });
  const part = sampledIds.length === 0 ? "" : `+${sampledIds.length}`;
  const turn: GenerateRequest = {
    promptIds: recorder.promptIds,
    sampling,
    maxNewTokens: roomTokens,
    stopTokenIds,
    vocabularySize: codec.vocabularySize,
    // Joined, as it is kept with each turn: a text that is put together in steps keeps each of them.
    requestId: [rolloutId, place, `${turnIndex}${part};`].join(":"),
    sessionId: rolloutId,
  };
  const rest = restBehind(turn, sampledIds);
  if (rest !== undefined) return rest;
  // An earlier version recorded what was sampled of such a turn, or it was recorded under other settings.
  throw playback!.end(
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
