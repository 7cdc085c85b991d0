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
import { crossBriefly, suspectOf } from "./boundary.ts";
import { CallWatch } from "./turn/call-watch.ts";
import { checkScore, checkSession } from "./check/check-foreign.ts";
import { countEpisode } from "./count-episode.ts";
import { countShared } from "./check/count-shared.ts";
import type { EpisodeTrace } from "./episode-tracer.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";
import { borrowSession, borrowUser } from "./borrow-session.ts";
import type { Episode, SharedCounts } from "./episode.ts";
import { UserCallTracker } from "./turn/user-call-tracker.ts";
import { endOf, turnsIn, type Inputs } from "./inputs/input.ts";
import {
  InputPlayer,
  RecordingEnd,
  ReplayDivergence,
  type InputPlayerOptions,
} from "./inputs/input-player.ts";
import { scoredEnd } from "./scored-end.ts";
import { openConversation } from "./open-conversation.ts";
import { disposeWorld, openWorld } from "./open-world.ts";
import { callParty, askWorld, overwritten, tolerate, type Play, type TurnsEnd } from "./play.ts";
import { playTurn } from "./turn/play-turn.ts";

/** What a play of an episode is told besides who plays it. */
export interface PlayEpisodeOptions extends Pick<
  InputPlayerOptions,
  "past" | "atEnd" | "scoreAnew" | "onInputs" | "redactor"
> {
  /** Aborted, there is no episode. */
  readonly signal: AbortSignal;
  /**
   * Aborted, the policy is asked for nothing more: what it is sampling is cut short and kept, and the
   * episode ends as `aborted`. With its inputs as `past` it can go on later.
   */
  readonly interrupt?: AbortSignal;
  /**
   * The turn, 0-based, with which a fork begins: all before it is the prompt of its row, and is trained
   * in another's. `past` are the inputs up to there.
   */
  readonly forkAt?: number;
}

type EpisodeEnd = RolloutEnd & Pick<Episode, "rewardDetails">;

/**
 * Plays one episode: opens the world, lets the policy and the environment take turns until one of
 * them or a limit ends it, scores it, and returns the record of everything.
 *
 * An outage ends the episode as `failed` with what was recorded so far and without a reward. The
 * episode's deadline truncates a policy that is still sampling; it is not scored then. A world that
 * cannot be disposed of takes nothing from an episode that is scored.
 *
 * @throws the signal's reason where the caller aborts: an episode that was not played to its end is
 *   no episode.
 * @throws ReplayDivergence where its recording says otherwise, but for what a fork shares: that is a failure
 *   of whoever is not repeatable (`agent/not-repeatable`). RecordingEnd where the recording is not enough.
 * @throws InvariantError on our own bugs.
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
  const { signal, interrupt, past, atEnd, scoreAnew, onInputs, redactor, forkAt } = options;
  const { task, seed } = assignment;
  const { environment } = setup;
  if (forkAt !== undefined) assertReaches(past, forkAt);
  const { clock = systemClock, limits } = setup;
  const hearing = new UserCallTracker({
    taskId: task.id,
    strategy: setup.user.strategy,
    timeoutMs: limits.userTimeoutMs,
    ownsStop: (thrown) => player.owns(thrown),
    wasGivenUp: (thrown) => player.wasGivenUp(thrown),
  });
  const leftMs = limits.episodeTimeoutMs - playedMs(past);
  using time = startDeadline({ ms: Math.max(leftMs, 0), parents: [], shared: [interrupt], clock });
  // What is played from the recording took its time when that was recorded.
  if (past !== undefined) time.pause();
  const player = new InputPlayer({
    // The machine's clock may be set while it is played: what it took, and what is left of its time, stays.
    now: measuring(setup.now, clock),
    ...(past && { past }),
    ...(atEnd && { atEnd }),
    ...(scoreAnew && { scoreAnew }),
    ...(onInputs && { onInputs }),
    ...(redactor && { redactor }),
    clock,
    userAsked: () => hearing.asked,
    onLive: () => time.resume(),
  });
  const startedAtMs = player.now();
  using watch = new CallWatch(signal, clock, (thrown) => player.owns(thrown));
  const play = startPlay(assignment, setup, {
    trace: options.trace,
    watch,
    clock,
    time,
    player,
    hearing,
    interrupt,
    forkAt,
  });
  if (isTurnOver()) await takeTurn();
  let user: UserSession | undefined;
  const played = await settle(play, async () => {
    user = await openUser(play);
    const world = await openWorld(play, hearing.watched(user));
    try {
      const end = await playAndScore(play, world, user);
      // Clearing the world away may take long.
      player.handOverWork();
      return end;
    } catch (error) {
      // What its world calls to clear itself away is called.
      if (error instanceof PlaybackStop) player.leave();
      if (error instanceof RolloutError) {
        player.leaveUnlessNext("usage", error);
        // What the caller's abort cut short is to be done again.
        if (!signal.aborted) player.handOverWork();
      }
      throw error;
    } finally {
      await disposeWorld(play, world);
    }
  });
  if (played.outcome === "aborted") player.stopRecording();
  if (isTurnOver()) await takeTurn();
  const userUsage = await usageOf(play, user);
  const isSound = play.recorder.isUnchanged();
  // What a fork that ended before its first turn has is another's: it would be trained twice.
  const isOwn = forkAt === undefined || play.recorder.isFork;
  const segments = isSound && isOwn ? play.recorder.toSegments() : [];
  // It may have been found when the policy was to be asked.
  const isKnown = isSound || played.failure?.code === "engine/bad-reply";
  const end = isKnown ? played : await settle(play, () => Promise.reject(overwritten(play)));
  const durationMs = player.now() - startedAtMs;
  player.flush();
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

/** What comes before a fork is another's: sampled anew, it would be neither's. */
function assertReaches(past: Inputs = { inputs: [], times: [] }, forkAt: number): void {
  if (turnsIn(past) >= forkAt) return;
  throw new RecordingEnd(
    `the recording ends before turn ${forkAt}, with which the attempt parts from another`,
  );
}

function startPlay(
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  around: Pick<
    Play,
    "watch" | "clock" | "time" | "player" | "hearing" | "interrupt" | "forkAt" | "trace"
  >,
): Play {
  return {
    assignment,
    setup,
    ...around,
    recorder: new TrajectoryRecorder(),
    messages: [],
    turns: [],
    tools: [],
    shownTools: [],
    reasoningOpened: false,
    formatErrorCount: 0,
    shared: undefined,
  };
}

/** How long the part of an episode took that is recorded. */
function playedMs(past: Inputs | undefined): number {
  const startedAtMs = past?.times[0];
  return past && startedAtMs !== undefined ? endOf(past)! - startedAtMs : 0;
}

/** Turns a failure that is attributed to a party into the episode's end; lets all else pass. */
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

/** What a fork shares and cannot be brought back is a failure of whoever is not repeatable. */
function asFailure({ assignment, forkAt, player, recorder }: Play, error: unknown): RolloutError {
  if (error instanceof RolloutError) {
    player.leaveUnlessNext("usage", error);
    return error;
  }
  const isShared = forkAt !== undefined && !recorder.isFork && !player.isReplay;
  if (!isShared || !(error instanceof ReplayDivergence)) throw error;
  player.leave();
  const { rolloutId, forkedFrom } = assignment;
  const from = forkedFrom === undefined ? "another rollout" : forkedFrom.rolloutId;
  const message = `Cannot part ${rolloutId} from ${from} with turn ${forkAt}: ${error.message}`;
  return new RolloutError(`${error.party}/not-repeatable`, message, { cause: error });
}

async function openUser(play: Play): Promise<UserSession> {
  const { assignment, setup } = play;
  const { task, seed } = assignment;
  const { strategy } = setup.user;
  const call = {
    party: "user",
    what: `open a conversation about task ${task.id} with user ${strategy}`,
    timeoutMs: setup.limits.userTimeoutMs,
  } as const;
  const borrowed = setup.user.repeatable === true ? undefined : borrowUser(play);
  const outside = borrowed?.outside ?? play.player.usersOutside;
  const opened = await callParty(play, call, () => setup.user.open(task, { seed, outside }));
  return await crossBriefly(
    play.watch,
    () => call,
    () => {
      const session = checkSession(opened, `user.open() of ${strategy} for task ${task.id}`);
      return borrowed === undefined ? session : borrowSession(session, play, borrowed);
    },
  );
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
        await world.score({ signal }),
        `world.score() in task ${id} of ${setup.environment.name}`,
      ),
    "score",
  );
  return scoredEnd(end, score);
}

async function playTurns(play: Play, world: World, user: UserSession): Promise<TurnsEnd> {
  await openConversation(play, world);
  for (let turnIndex = 0; turnIndex < play.setup.limits.maxTurns; turnIndex++) {
    if (turnIndex === play.forkAt) {
      // Without a turn before it nothing is shared, and it may well be asked otherwise.
      if (turnIndex > 0) play.player.requireNextPrompt(play.recorder.promptHash);
      play.recorder.beginFork();
      play.shared = countShared(play, noSpending);
      await tolerate(play, async () => {
        play.shared = countShared(play, await askUsage(play, user));
      });
    }
    const end = await playTurn(play, world, turnIndex);
    if (end === undefined) continue;
    if (turnIndex < (play.forkAt ?? 0)) requireSameLimits(play, end);
    return end;
  }
  const end = { outcome: "truncated", stopReason: "max-turns" } as const;
  if (play.setup.limits.maxTurns <= (play.forkAt ?? 0)) requireSameLimits(play, end);
  return end;
}

/** A limit that ends what a fork shares where it went on. */
export class SmallerLimit extends UsageError {}

/**
 * What a fork shares went on under the limits of the time, and is not scored as if it had ended.
 *
 * @throws ReplayDivergence where the agent may have come to its limit by reading otherwise than before, and
 *   SmallerLimit where only that can be why.
 */
function requireSameLimits(play: Play, { outcome, stopReason }: TurnsEnd): void {
  if (outcome !== "truncated" || stopReason === "deadline") return;
  const { assignment, forkAt, player, recorder } = play;
  // How many turns there are, and how long one is, is no matter of the agent's.
  const isCounted = stopReason === "max-turns" || stopReason === "length";
  if (!isCounted) player.requirePrompt(recorder.promptHash);
  // It may count as errors what it did not, and show the policy the same.
  if (stopReason === "format-errors") {
    throw player.diverge(
      "agent",
      "the conversation ends by its format errors where it went on, expected an agent that reads the " +
        "same turns alike, and no smaller limit (max-format-errors)",
    );
  }
  throw new SmallerLimit(
    `Cannot part ${assignment.rolloutId} from another rollout with turn ${forkAt}: a limit ends the ` +
      `conversation before (${stopReason}), expected the limits that it was played with, or larger ones`,
  );
}

/** What a fork shares: all that it has, where it never came to its own turn. */
function sharedOf(play: Play, whole: UserUsage): SharedCounts {
  const { shared = countShared(play, whole) } = play;
  // A user who could say before what they cost may not be able to at the end.
  return { ...shared, userUsage: leastSpending(shared.userUsage, whole) };
}

/** What the user cost. A user who cannot say costs nothing that is known of. */
async function usageOf(play: Play, user: UserSession | undefined): Promise<UserUsage> {
  let usage: UserUsage = noSpending;
  if (user === undefined) return usage;
  await tolerate(play, async () => {
    usage = await play.player.answer("usage", async () => await askUsage(play, user), {
      repeatable: false,
      limitMs: play.setup.limits.userTimeoutMs,
    });
  });
  return usage;
}
