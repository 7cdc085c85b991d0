import type { World } from "../environment/environment.ts";
import type { UserSession } from "../user/user.ts";
import { crossBoundary } from "./boundary.ts";
import { CallWatch } from "./call-watch.ts";
import { checkWorld } from "./check-foreign.ts";
import { callParty, tolerate, type Play } from "./play.ts";

/**
 * Opens the task's world. One that comes too late is disposed of when it comes.
 *
 * @throws RolloutError with party `environment`.
 */
export async function openWorld(play: Play, user: UserSession): Promise<World> {
  const { assignment, setup } = play;
  const { environment, limits } = setup;
  const { task } = assignment;
  let isAwaited = true;
  try {
    return await callParty(
      play,
      {
        party: "environment",
        what: `open task ${task.id}`,
        timeoutMs: limits.toolTimeoutMs,
      },
      async (signal) => {
        const opened = await environment.open(task, { user, signal });
        const world = checkWorld(opened, `environment.open() for task ${task.id}`);
        if (!isAwaited) await disposeWorld(play, world);
        return world;
      },
    );
  } finally {
    isAwaited = false;
  }
}

/** Disposes of a world, whatever became of its episode; a failure is told and passed over. */
export async function disposeWorld(play: Play, world: World): Promise<void> {
  const { assignment, clock, setup } = play;
  // The caller's abort must not keep the world from being cleared away.
  using watch = new CallWatch(new AbortController().signal, clock);
  const boundary = {
    party: "environment",
    what: `dispose of the world of task ${assignment.task.id}`,
    timeoutMs: setup.limits.toolTimeoutMs,
  } as const;
  await tolerate(
    play,
    async () =>
      await crossBoundary(watch, boundary, async () => await world[Symbol.asyncDispose]()),
  );
}
