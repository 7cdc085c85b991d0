import { onAbort } from "../../async/on-abort.ts";
import type { ChatTurn, ChatTurnRequest } from "../../engine/chat/chat-turn.ts";
import { isPromptTooLong } from "../../engine/http/is-prompt-too-long.ts";
import { samplingOfTurn } from "../../engine/turn-seed.ts";
import { RolloutError, UsageError } from "../../errors.ts";
import { crossBoundary } from "../boundary.ts";
import { chatTurnName } from "../inputs/input.ts";
import { isTimeOver, type Play, type TurnsEnd } from "../play.ts";
import type { ChatConversation } from "./chat-conversation.ts";
import { checkChatTurn } from "./check-chat-turn.ts";

/** The result of requesting a turn. */
export type AskedChatTurn =
  | {
      readonly type: "turn";
      readonly turn: ChatTurn;
      readonly engineMs: number;
      /** The episode's time after the reply. */
      readonly sampledAtMs: number;
    }
  /** The episode ends without another turn. */
  | { readonly type: "ended"; readonly end: TurnsEnd };

/** The episode was interrupted, and the turn did not arrive in time. The next start requests it again. */
class TurnLeft extends Error {}

/**
 * Failures that a repeated request would have too. They end the run, which can continue when their cause is removed.
 */
const finalCodes: readonly string[] = ["engine/unauthorized", "engine/not-found", "engine/budget"];

/**
 * Requests one turn as a message. After the episode's deadline, a request under way keeps the engine's own time limit,
 * because its server samples the turn to its end. After an interruption, the request has the grace period.
 *
 * @throws RolloutError with party `engine`.
 * @throws UsageError if the server refuses the key, or does not know the address or the model.
 */
export async function askChatTurn(
  play: Play,
  chat: ChatConversation,
  turnIndex: number,
): Promise<AskedChatTurn> {
  if (isTimeOver(play)) return ended("deadline");
  const room = remainingTokens(play, chat);
  if (room.tokens <= 0) return ended(room.stopReason);
  const { inputRecorder, inputs, interrupt, playback, setup } = play;
  if (playback?.isPlaying !== true && interrupt?.aborted === true) {
    // The next start must not repeat the work since the last turn.
    inputRecorder?.flush();
    return interrupted;
  }
  const request = toRequest(play, chat, { turnIndex, maxNewTokens: room.tokens });
  const atMs = inputs.now();
  try {
    const turn = await inputs.answer(
      chatTurnName(chat.promptHash),
      async () => await ask(play, request),
      { repeatable: false, limitMs: setup.limits.engineTimeoutMs },
    );
    const sampledAtMs = inputs.now();
    inputRecorder?.flush();
    return { type: "turn", turn, engineMs: sampledAtMs - atMs, sampledAtMs };
  } catch (error) {
    if (error instanceof TurnLeft) return interrupted;
    if (isPromptTooLong(error)) return ended("context-full");
    throw error instanceof RolloutError && finalCodes.includes(error.code)
      ? new UsageError(error.message, { cause: error })
      : error;
  }
}

async function ask({ interrupt, setup, watch }: Play, request: ChatTurnRequest): Promise<ChatTurn> {
  const { engineTimeoutMs: timeoutMs, graceTimeoutMs } = setup.limits;
  const what = `request turn ${request.requestId}`;
  const letGo = interrupt && onAbort(interrupt, () => watch.shorten(graceTimeoutMs));
  try {
    return await crossBoundary(watch, { party: "engine", what, timeoutMs }, async (signal) =>
      checkChatTurn(await setup.engine.complete!(request, { signal }), what),
    );
  } catch (error) {
    const isTimeout = error instanceof RolloutError && error.code === "engine/timeout";
    throw isTimeout && interrupt?.aborted === true ? new TurnLeft() : error;
  } finally {
    letGo?.();
  }
}

function toRequest(
  { assignment, setup }: Play,
  { messages, tools }: ChatConversation,
  { turnIndex, maxNewTokens }: { readonly turnIndex: number; readonly maxNewTokens: number },
): ChatTurnRequest {
  const { rolloutId, samplingSeed, seed, attempt = 1, start = 1 } = assignment;
  const place = start === 1 ? attempt : `${attempt}.${start}`;
  return {
    messages,
    tools,
    sampling: samplingOfTurn(setup.sampling, { seed: samplingSeed ?? seed, turnIndex }),
    maxNewTokens,
    requestId: `${rolloutId}:${place}:${turnIndex}`,
    sessionId: rolloutId,
  };
}

/** Returns the number of tokens that the next turn may have, and the limit that applies if that is 0. */
function remainingTokens({ setup }: Play, chat: ChatConversation) {
  const { maxTokensPerTurn, maxEpisodeTokens, maxContextTokens } = setup.limits;
  const inContext = maxContextTokens - chat.contextTokenCount;
  const inEpisode = maxEpisodeTokens - chat.episodeTokenCount;
  return {
    tokens: Math.min(maxTokensPerTurn, inContext, inEpisode),
    stopReason: inContext <= inEpisode ? "context-full" : "max-tokens",
  } as const;
}

const interrupted: AskedChatTurn = {
  type: "ended",
  end: { outcome: "aborted", stopReason: "interrupted" },
};

function ended(stopReason: TurnsEnd["stopReason"]): AskedChatTurn {
  return { type: "ended", end: { outcome: "truncated", stopReason } };
}
