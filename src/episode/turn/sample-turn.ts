import { remainingRequest } from "../../engine/continued-sampling.ts";
import type { GenerateRequest, Generation } from "../../engine/engine.ts";
import { isPromptTooLong } from "../../engine/http/is-prompt-too-long.ts";
import { joinGenerations } from "../../engine/join-generations.ts";
import { findOutputRule } from "../../engine/output-rule.ts";
import { samplingOfTurn } from "../../engine/turn-seed.ts";
import { RolloutError } from "../../errors.ts";
import { isTurnOver, takeTurn } from "../../async/take-turn.ts";
import { askEngine } from "./ask-engine.ts";
import type { Sampled } from "../inputs/input-source.ts";
import { isTimeOver, type Play, type TurnsEnd } from "../play.ts";
import { rendererOf } from "../renderer-of.ts";
import { withLostPart } from "../with-lost-part.ts";

/** A sampled turn. */
export type SampledTurn = Extract<Sampling, { type: "sampled" }>;

/** The result of requesting a turn from the policy. */
export type Sampling =
  | {
      readonly type: "sampled";
      readonly generation: Generation;
      readonly promptTokenCount: number;
      readonly engineMs: number;
      /** The episode's time after sampling. */
      readonly sampledAtMs: number;
      /** The event that cut the turn short. Absent if the policy finished the turn. */
      readonly cutBy?: "deadline" | "interrupt";
    }
  /** The episode ends without another turn. */
  | { readonly type: "ended"; readonly end: TurnsEnd };

/**
 * Samples one turn from the policy, with exactly the ids recorded so far. If the episode's time ends meanwhile, the
 * engine returns the ids sampled so far. If its server cannot stop early, it samples the turn to its end. An engine
 * that can stop early and returns no ids counts as hung.
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
  // The ids sampled before an interruption. The parts of the turn are joined.
  let before: Sampled | undefined;
  for (;;) {
    if (playback?.isPlaying !== true && interrupt?.aborted === true) {
      // The next start must not repeat the work since the last turn.
      if (before === undefined) inputRecorder?.flush();
      return before === undefined || isEmpty(before)
        ? interrupted
        : toSampling(play, asked, before);
    }
    // A turn that was interrupted shortly before the deadline may have no time left.
    if (before !== undefined && isTimeOver(play)) {
      if (isEmpty(before)) return ended("deadline");
      return toSampling(play, asked, { generation: before.generation, isLate: true });
    }
    let sampled: Sampled;
    try {
      sampled = await takePart(play, turnIndex, { promptHash, before, roomTokens: room.tokens });
    } catch (error) {
      // The context has no room for more ids: the turn ends with the ids sampled before.
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

/** Requests the turn, or the rest of it. */
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
    // This start may have smaller limits than the start that sampled the first part.
    if (roomTokens <= sampledIds.length) throw noRoom(play, turnIndex, sampledIds.length);
    return askEngine(play, toRequest(play, turnIndex, { roomTokens, before: before?.generation }));
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

/** True if no id was sampled before the deadline or the interruption. Such a turn does not count. */
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

/**
 * Returns the request for a turn, or for the rest of a turn with sampled ids.
 *
 * @throws RecordingEnd if the turn cannot continue after its recorded ids.
 */
function toRequest(
  play: Play,
  turnIndex: number,
  { roomTokens, before }: { readonly roomTokens: number; readonly before: Generation | undefined },
): GenerateRequest {
  const sampledIds = before?.outputIds ?? [];
  const { assignment, playback, recorder, setup } = play;
  const { codec, stopTokenIds } = rendererOf(setup);
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
    ...(setup.columns !== undefined && {
      columns: {
        specs: setup.columns,
        knownRows: recorder.knownRows,
      },
    }),
    // `join()`, because the id is kept with each turn: a text built in steps keeps every step in memory.
    requestId: [rolloutId, place, `${turnIndex}${part};`].join(":"),
    sessionId: rolloutId,
  };
  const rest = remainingRequest(turn, sampledIds, before?.columns);
  if (rest !== undefined) return rest;
  // The rule on the complete output is new: the turn was recorded under other settings.
  throw playback!.end(
    `the recording ends after ${sampledIds.length} ids of turn ${turnIndex}, which cannot continue: ` +
      `${findOutputRule(turn)} applies to the complete turn`,
  );
}

/** Returns the number of ids that the next turn may sample, and the limit that applies if that is 0. */
function remainingTokens({ setup, recorder }: Play) {
  const { maxTokensPerTurn, maxEpisodeTokens, maxContextTokens } = setup.limits;
  const inContext = maxContextTokens - recorder.length;
  const inEpisode = maxEpisodeTokens - recorder.responseLength;
  return {
    tokens: Math.min(maxTokensPerTurn, inContext, inEpisode),
    stopReason: inContext <= inEpisode ? "context-full" : "max-tokens",
  } as const;
}
