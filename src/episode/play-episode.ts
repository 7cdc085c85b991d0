import type { World } from "../environment/environment.ts";
import { RolloutError, UsageError } from "../errors.ts";
import { measuring, systemClock } from "../async/clock.ts";
import { startDeadline } from "../async/deadline.ts";
import { isTurnOver, takeTurn } from "../async/take-turn.ts";
import { PlaybackStop } from "../outside.ts";
import type { RolloutEnd } from "../trajectory/sample.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { leastSpending, noSpending } from "../user/chat/add-spending.ts";
import type { UserSession, UserUsage } from "../user/user.ts";
import { beginTrace } from "./begin-trace.ts";
import { askUsage } from "./turn/ask-usage.ts";
import { suspectOf } from "./boundary.ts";
import { CallWatch } from "./turn/call-watch.ts";
import { checkScore } from "./check/check-foreign.ts";
import { ChatConversation } from "./chat/chat-conversation.ts";
import { playChatTurn } from "./chat/play-chat-turn.ts";
import { countEpisode } from "./count-episode.ts";
import { countShared } from "./check/count-shared.ts";
import type { EpisodeTrace } from "./episode-tracer.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";
import { borrowSession, borrowUser } from "./borrow-session.ts";
import type { Episode, TurnRecord, SharedCounts } from "./episode.ts";
import { UserCallTracker } from "./turn/user-call-tracker.ts";
import { endOf, turnsIn, type Inputs } from "./inputs/input.ts";
import { openInputs, type EpisodeInputs, type InputOptions } from "./inputs/open-inputs.ts";
import { RecordingEnd, ReplayDivergence } from "./inputs/playback-stop.ts";
import { scoredEnd, type ScoreFields } from "./scored-end.ts";
import { openConversation } from "./open-conversation.ts";
import { openSession } from "./open-session.ts";
import { disposeWorld, openWorld } from "./open-world.ts";
import { askWorld, overwritten, tolerate, type Play, type TurnsEnd } from "./play.ts";
import { playTurn } from "./turn/play-turn.ts";

/** Options of `playEpisode()`. */
export interface PlayEpisodeOptions extends InputOptions {
  /** Cancels the episode when it aborts. */
  readonly signal: AbortSignal;
  /**
   * Interrupts the episode when it aborts: the ids sampled so far are kept, the policy gets no more requests, and the
   * episode ends as `aborted`. It can continue later, with its inputs as `past`.
   */
  readonly interrupt?: AbortSignal;
  /**
   * 0-based index of a fork's first turn. All earlier turns become the prompt of its row, and are trained in the
   * original's rows. `past` has the inputs up to this turn.
   */
  readonly forkAt?: number;
}

type EpisodeEnd = RolloutEnd & ScoreFields;

/**
 * Plays one episode: opens the world, plays turns until the policy, the environment or a limit ends the episode, scores
 * it, and returns its record.
 *
 * An outage ends the episode as `failed`, with everything recorded so far and without a reward. An episode that reaches
 * its deadline is truncated and not scored. A failure to dispose of the world does not affect a scored episode.
 *
 * @throws the signal's reason if the caller aborts.
 * @throws ReplayDivergence if the episode differs from its recording. In the shared turns of a fork, such a difference
 *   is a failure of the episode instead, with the code `agent/not-repeatable`.
 * @throws RecordingEnd if the recording does not suffice.
 * @throws InvariantError for bugs of this package.
 */
export async function playEpisode(
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  options: PlayEpisodeOptions,
): Promise<Episode> {
  const trace = beginTrace(assignment, setup);
  let episode: Episode | undefined;
  try {
    episode = await playThrough(assignment, setup, { ...options, trace });
    return episode;
  } finally {
    trace?.end(episode);
  }
}

async function playThrough(
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  options: PlayEpisodeOptions & { readonly trace: EpisodeTrace | undefined },
): Promise<Episode> {
  const { signal, interrupt, past, forkAt } = options;
  const { task, seed } = assignment;
  const { environment } = setup;
  if (forkAt !== undefined && setup.engine.complete !== undefined) throw noForks(setup);
  if (forkAt !== undefined) assertReaches(past, forkAt);
  const { clock = systemClock, limits } = setup;
  const ownsStop = (thrown: unknown): boolean => episodeInputs.playback?.owns(thrown) === true;
  const userCalls = new UserCallTracker({
    taskId: task.id,
    strategy: setup.user.strategy,
    timeoutMs: limits.userTimeoutMs,
    ownsStop,
    wasGivenUp: (thrown) => episodeInputs.playback?.isCancellation(thrown) === true,
  });
  const leftMs = limits.episodeTimeoutMs - playedMs(past);
  using time = startDeadline({ ms: Math.max(leftMs, 0), parents: [], shared: [interrupt], clock });
  // The recording contains the time of the recorded part.
  if (past !== undefined) time.pause();
  const episodeInputs = openInputs(options, {
    // Monotonic, so that a change of the machine's clock does not change the episode's time.
    now: measuring(setup.now, clock),
    clock,
    userRequest: () => userCalls.asked,
    onLive: () => time.resume(),
  });
  const { inputs, inputRecorder, playback } = episodeInputs;
  const startedAtMs = inputs.now();
  using watch = new CallWatch(signal, clock, ownsStop);
  const play = startPlay(assignment, setup, {
    trace: options.trace,
    watch,
    clock,
    time,
    ...episodeInputs,
    userCalls,
    interrupt,
    forkAt,
  });
  if (isTurnOver()) await takeTurn();
  let user: UserSession | undefined;
  const played = await settle(play, async () => {
    user = await openUser(play);
    const world = await openWorld(play, userCalls.watched(user));
    try {
      const end = await playAndScore(play, world, user);
      // Disposing of the world may take long.
      inputRecorder?.flushWork();
      return end;
    } catch (error) {
      // The world may make live calls while it is disposed of.
      if (error instanceof PlaybackStop) playback?.leave();
      if (error instanceof RolloutError) {
        playback?.leaveUnlessNext("usage", error);
        // A call that the caller's abort cut short must be made again by the next start.
        if (!signal.aborted) inputRecorder?.flushWork();
      }
      throw error;
    } finally {
      await disposeWorld(play, world);
    }
  });
  if (played.outcome === "aborted") inputRecorder?.stop();
  if (isTurnOver()) await takeTurn();
  const userUsage = await usageOf(play, user);
  const isSound = play.recorder.isUnchanged();
  // A fork that ended before its first own turn has only ids of the original, which must not be trained twice.
  const isOwn = forkAt === undefined || play.recorder.isFork;
  const segments = isSound && isOwn ? play.recorder.toSegments() : [];
  // The changed ids may have been noticed at an earlier request.
  const isKnown = isSound || played.failure?.code === "engine/bad-reply";
  const end = isKnown ? played : await settle(play, () => Promise.reject(overwritten(play)));
  const durationMs = inputs.now() - startedAtMs;
  inputRecorder?.flush();
  return {
    format: 1,
    rolloutId: assignment.rolloutId,
    groupId: assignment.groupId,
    taskId: task.id,
    environment: environment.name,
    split: task.split,
    taskIndex: task.index,
    ...(assignment.groupIndex !== undefined && { groupIndex: assignment.groupIndex }),
    sampleIndex: assignment.sampleIndex,
    seed,
    attempt: assignment.attempt ?? 1,
    ...(assignment.forkedFrom !== undefined && { forkedFrom: assignment.forkedFrom }),
    ...end,
    counts: countEpisode(play.turns, segments, play.formatErrorCount, forkAt),
    userUsage,
    ...(assignment.forkedFrom && { shared: sharedOf(play, userUsage) }),
    startedAtMs,
    durationMs,
    messages: play.messages,
    turns: play.turns,
    segments,
  };
}

/**
 * Checks that the recording has all turns that a fork shares.
 *
 * @throws RecordingEnd if the recording ends before a fork's first own turn. Sampling shared turns again would change
 *   them.
 */
function assertReaches(past: Inputs = { inputs: [], times: [] }, forkAt: number): void {
  if (turnsIn(past) >= forkAt) return;
  throw new RecordingEnd(
    `the recording ends before turn ${forkAt}, the first own turn of the fork`,
  );
}

/**
 * Returns the error for a fork with an engine that returns messages. A fork needs ids, because its shared turns become
 * its prompt.
 */
function noForks({ engine }: EpisodeSetup): UsageError {
  return new UsageError(
    `Cannot fork an episode with the engine ${engine.kind}: it returns messages without token ids, and a fork's rows ` +
      "begin with the ids of the turns before it",
  );
}

function startPlay(
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  around: Pick<
    Play,
    | keyof EpisodeInputs
    | "watch"
    | "clock"
    | "time"
    | "userCalls"
    | "interrupt"
    | "forkAt"
    | "trace"
  >,
): Play {
  return {
    assignment,
    setup,
    ...around,
    recorder: new TrajectoryRecorder(),
    chat: setup.engine.complete === undefined ? undefined : new ChatConversation(),
    messages: [],
    turns: [],
    tools: [],
    shownTools: [],
    reasoningOpened: false,
    formatErrorCount: 0,
    shared: undefined,
  };
}

/** Returns the duration of the recorded part, in milliseconds. */
function playedMs(past: Inputs | undefined): number {
  const startedAtMs = past?.times[0];
  return past && startedAtMs !== undefined ? endOf(past)! - startedAtMs : 0;
}

/** Turns a failure into the episode's end. Other errors pass. */
async function settle(play: Play, work: () => Promise<EpisodeEnd>): Promise<EpisodeEnd> {
  try {
    return await work();
  } catch (error) {
    play.watch.throwIfAborted();
    const failure = asFailure(play, error);
    play.setup.onTrouble?.(failure);
    return { outcome: "failed", stopReason: "failure", failure: failure.toFailure() };
  }
}

/**
 * Returns the failure to record. A divergence in the shared turns of a fork is a failure of the party that is not
 * repeatable.
 */
function asFailure({ assignment, forkAt, playback, recorder }: Play, error: unknown): RolloutError {
  if (error instanceof RolloutError) {
    playback?.leaveUnlessNext("usage", error);
    return error;
  }
  const isShared = forkAt !== undefined && !recorder.isFork && playback?.isReplay !== true;
  if (!isShared || !(error instanceof ReplayDivergence)) throw error;
  playback?.leave();
  const { rolloutId, forkedFrom } = assignment;
  const from = forkedFrom === undefined ? "another rollout" : forkedFrom.rolloutId;
  const message = `Cannot part ${rolloutId} from ${from} with turn ${forkAt}: ${error.message}`;
  return new RolloutError(`${error.party}/not-repeatable`, message, { cause: error });
}

async function openUser(play: Play): Promise<UserSession> {
  const { assignment, setup, watch } = play;
  const { task, seed } = assignment;
  const { limits, user } = setup;
  const terms = { user, task, seed, timeoutMs: limits.userTimeoutMs };
  if (user.repeatable === true) {
    return await openSession(watch, { ...terms, outside: play.outside.user });
  }
  const borrowed = borrowUser(play);
  return await openSession(watch, {
    ...terms,
    outside: borrowed.outside,
    wrap: (session) => borrowSession(session, play, borrowed),
  });
}

async function playAndScore(play: Play, world: World, user: UserSession): Promise<EpisodeEnd> {
  const end = await playTurns(play, world, user);
  if (end.stopReason === "deadline" || end.outcome === "aborted") return end;
  const { assignment, setup } = play;
  const { id } = assignment.task;
  const score = await askWorld(
    play,
    {
      party: "grader",
      what: `score task ${id}`,
      suspect: suspectOf(setup.environment, "score"),
      timeoutMs: setup.limits.scoreTimeoutMs,
    },
    async (signal) =>
      checkScore(
        await world.score({ signal, actionCounts: actionCountsOf(play.turns) }),
        `world.score() in task ${id} of ${setup.environment.name}`,
        play.turns.length,
      ),
    "score",
  );
  return scoredEnd(end, score);
}

/** Returns the number of actions that the environment performed in each turn. */
function actionCountsOf(turns: readonly TurnRecord[]): readonly number[] {
  return turns.map(({ steps }) => steps.filter(({ result }) => result === "acted").length);
}

async function playTurns(play: Play, world: World, user: UserSession): Promise<TurnsEnd> {
  await openConversation(play, world);
  for (let turnIndex = 0; turnIndex < play.setup.limits.maxTurns; turnIndex++) {
    if (turnIndex === play.forkAt) {
      // A fork at turn 0 shares no turn, so its prompt may differ.
      if (turnIndex > 0) play.playback?.requireNextPrompt(play.recorder.promptHash);
      play.recorder.beginFork();
      play.shared = countShared(play, noSpending);
      await tolerate(play, async () => {
        play.shared = countShared(play, await askUsage(play, user));
      });
    }
    const end = await (play.chat === undefined
      ? playTurn(play, world, turnIndex)
      : playChatTurn(play, play.chat, { world, turnIndex }));
    if (end === undefined) continue;
    if (turnIndex < (play.forkAt ?? 0)) requireSameLimits(play, end);
    return end;
  }
  const end = { outcome: "truncated", stopReason: "max-turns" } as const;
  if (play.setup.limits.maxTurns <= (play.forkAt ?? 0)) requireSameLimits(play, end);
  return end;
}

/** Thrown if a limit ends a fork in its shared turns, which continued in the original. */
export class SmallerLimit extends UsageError {}

/**
 * Refuses a limit that ends a fork in its shared turns. The original continued there, so the fork must not be scored as
 * if it had ended.
 *
 * @throws ReplayDivergence if the agent may have reached the limit because it reads turns differently now.
 * @throws SmallerLimit if only a smaller limit explains it.
 */
function requireSameLimits(play: Play, { outcome, stopReason }: TurnsEnd): void {
  if (outcome !== "truncated" || stopReason === "deadline") return;
  const { assignment, forkAt, playback, recorder } = play;
  // The agent does not affect the number of turns and their length.
  const isCounted = stopReason === "max-turns" || stopReason === "length";
  if (!isCounted) playback!.requirePrompt(recorder.promptHash);
  // The agent may count other turns as format errors and still build the same prompts.
  if (stopReason === "format-errors") {
    throw playback!.diverge(
      "agent",
      "the conversation ends by its format errors where it continued, expected an agent that reads the " +
        "same turns alike, and no smaller limit (max-format-errors)",
    );
  }
  throw new SmallerLimit(
    `Cannot part ${assignment.rolloutId} from another rollout with turn ${forkAt}: a limit ends the ` +
      `conversation before (${stopReason}), expected the limits that it was played with, or larger ones`,
  );
}

/** Returns the counts that a fork shares. All counts if it ended before its first own turn. */
function sharedOf(play: Play, total: UserUsage): SharedCounts {
  const { shared = countShared(play, total) } = play;
  // The user may not have reported the cost at the end.
  return { ...shared, userUsage: leastSpending(shared.userUsage, total) };
}

/** Returns the cost of the user. No cost if the user does not report it. */
async function usageOf(play: Play, user: UserSession | undefined): Promise<UserUsage> {
  let usage: UserUsage = noSpending;
  if (user === undefined) return usage;
  await tolerate(play, async () => {
    usage = await play.inputs.answer("usage", async () => await askUsage(play, user), {
      repeatable: false,
      limitMs: play.setup.limits.userTimeoutMs,
    });
  });
  return usage;
}
