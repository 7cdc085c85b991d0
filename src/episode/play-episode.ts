import type { World } from "../environment/environment.ts";
import { RolloutError } from "../errors.ts";
import { systemClock } from "../internal/clock.ts";
import { startDeadline } from "../internal/deadline.ts";
import { takeTurn } from "../internal/take-turn.ts";
import type { RolloutEnd } from "../trajectory/sample.ts";
import { TrajectoryRecorder } from "../trajectory/trajectory-recorder.ts";
import { noSpending } from "../user/add-spending.ts";
import type { UserSession, UserUsage } from "../user/user.ts";
import { crossBriefly } from "./boundary.ts";
import { CallWatch } from "./call-watch.ts";
import { checkScore, checkSession, checkUsage } from "./check-foreign.ts";
import { countEpisode } from "./count-episode.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";
import type { Episode } from "./episode.ts";
import { openConversation } from "./open-conversation.ts";
import { disposeWorld, openWorld } from "./open-world.ts";
import { callParty, tolerate, type Play, type TurnsEnd } from "./play.ts";
import { playTurn } from "./play-turn.ts";

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
 * @throws InvariantError on our own bugs.
 */
export async function playEpisode(
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  { signal }: { signal: AbortSignal },
): Promise<Episode> {
  const { task, seed } = assignment;
  const { environment, now } = setup;
  const startedAtMs = now();
  const { clock = systemClock, limits } = setup;
  using watch = new CallWatch(signal, clock);
  using time = startDeadline({ ms: limits.episodeTimeoutMs, parents: [], clock });
  const play = startPlay(assignment, setup, { watch, clock, time });
  await takeTurn();
  let user: UserSession | undefined;
  const end = await settle(play, async () => {
    user = await openUser(play);
    const world = await openWorld(play, user);
    try {
      return await playAndScore(play, world);
    } finally {
      await disposeWorld(play, world);
    }
  });
  await takeTurn();
  const userUsage = await usageOf(play, user);
  const segments = play.recorder.segmentCount === 0 ? [] : play.recorder.toSegments();
  return {
    format: 1,
    rolloutId: assignment.rolloutId,
    groupId: assignment.groupId,
    taskId: task.id,
    environment: environment.name,
    split: task.split,
    taskIndex: task.index,
    sampleIndex: assignment.sampleIndex,
    seed,
    ...end,
    counts: countEpisode(play.turns, segments, play.formatErrorCount),
    userUsage,
    startedAtMs,
    durationMs: now() - startedAtMs,
    messages: play.messages,
    turns: play.turns,
    segments,
  };
}

function startPlay(
  assignment: EpisodeAssignment,
  setup: EpisodeSetup,
  around: Pick<Play, "watch" | "clock" | "time">,
): Play {
  const { clock } = around;
  return {
    assignment,
    setup,
    ...around,
    endsAtMs: clock.now() + setup.limits.episodeTimeoutMs,
    recorder: new TrajectoryRecorder(),
    messages: [],
    turns: [],
    tools: [],
    shownTools: [],
    reasoningOpened: false,
    formatErrorCount: 0,
  };
}

/** Turns a failure that is attributed to a party into the episode's end; lets all else pass. */
async function settle(play: Play, work: () => Promise<EpisodeEnd>): Promise<EpisodeEnd> {
  try {
    return await work();
  } catch (error) {
    play.watch.throwIfAborted();
    if (!(error instanceof RolloutError)) throw error;
    play.setup.onTrouble?.(error);
    return { outcome: "failed", stopReason: "failure", failure: error.toFailure() };
  }
}

async function openUser(play: Play): Promise<UserSession> {
  const { assignment, setup } = play;
  const { task, seed } = assignment;
  const { strategy } = setup.user;
  const session = await callParty(
    play,
    {
      party: "user",
      what: `open a conversation about task ${task.id} with user ${strategy}`,
      timeoutMs: setup.limits.userTimeoutMs,
    },
    () => setup.user.open(task, { seed }),
  );
  return checkSession(session, `user.open() of ${strategy} for task ${task.id}`);
}

async function playAndScore(play: Play, world: World): Promise<EpisodeEnd> {
  const end = await playTurns(play, world);
  if (end.stopReason === "deadline") return end;
  const { assignment, setup } = play;
  const { id } = assignment.task;
  const score = await callParty(
    play,
    { party: "grader", what: `score task ${id}`, timeoutMs: setup.limits.scoreTimeoutMs },
    async (signal) =>
      checkScore(
        await world.score({ signal }),
        `world.score() in task ${id} of ${setup.environment.name}`,
      ),
  );
  return { ...end, reward: score.reward, rewardDetails: score.details };
}

async function playTurns(play: Play, world: World): Promise<TurnsEnd> {
  await openConversation(play, world);
  for (let turnIndex = 0; turnIndex < play.setup.limits.maxTurns; turnIndex++) {
    const end = await playTurn(play, world, turnIndex);
    if (end !== undefined) return end;
  }
  return { outcome: "truncated", stopReason: "max-turns" };
}

/** What the user cost. A user who cannot say costs nothing that is known of. */
async function usageOf(play: Play, user: UserSession | undefined): Promise<UserUsage> {
  let usage: UserUsage = noSpending;
  if (user === undefined) return usage;
  const { user: asked, limits } = play.setup;
  const call = {
    party: "user",
    what: "ask what the user cost",
    timeoutMs: limits.userTimeoutMs,
  } as const;
  await tolerate(play, async () => {
    usage = checkUsage(await crossBriefly(play.watch, call, () => user.usage()), asked);
  });
  return usage;
}
