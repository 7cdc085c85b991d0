import type { ComparedMembers } from "../environment/compared-members.ts";
import type { Environment, World } from "../environment/environment.ts";
import { createAbortController } from "../async/abort-controller.ts";
import type { Clock } from "../async/clock.ts";
import type { Outside } from "../outside.ts";
import type { Task } from "../task.ts";
import type { UserSession } from "../user/user.ts";
import { crossLater, suspectOf } from "./boundary.ts";
import { checkWorld } from "./check/check-foreign.ts";
import type { EpisodeAssignment, EpisodeSetup } from "./episode-setup.ts";
import { CallWatch } from "./turn/call-watch.ts";
import type { UserCallTracker } from "./turn/user-call-tracker.ts";

/** The world that `openForeignWorld()` opens. */
export interface WorldTerms {
  readonly environment: Environment;
  readonly task: Task;
  readonly watch: CallWatch;
  readonly clock: Pick<Clock, "after" | "now">;
  readonly userCalls: UserCallTracker;
  /** The time limit of opening and of disposing, in milliseconds. */
  readonly timeoutMs: number;
  readonly outside?: Outside;
  readonly onCompared?: (compared: ComparedMembers) => void;
}

/** Returns the parameters for opening an attempt's world, without the optional ones. */
export function worldTermsOf({
  assignment,
  clock,
  setup,
  userCalls,
  watch,
}: Pick<WorldTerms, "watch" | "clock" | "userCalls"> & {
  readonly assignment: Pick<EpisodeAssignment, "task">;
  readonly setup: Pick<EpisodeSetup, "environment" | "limits">;
}): WorldTerms {
  const { environment, limits } = setup;
  const { task } = assignment;
  return { environment, task, watch, clock, userCalls, timeoutMs: limits.toolTimeoutMs };
}

/** The functions that `openForeignWorld()` calls with a world. */
interface Opening {
  /** Reads the world. Its errors count as the environment's. */
  readonly read?: (world: World) => void;
  /** Gets a world that opened after the time limit, or that cannot be read. */
  readonly dispose: (world: World) => Promise<void>;
}

/**
 * Opens a task's world, and checks it.
 *
 * @throws RolloutError with party `environment`, or `user` if the world waits for the user.
 */
export async function openForeignWorld(
  terms: WorldTerms,
  user: UserSession,
  { read, dispose }: Opening,
): Promise<World> {
  const { environment, task, watch, userCalls, timeoutMs, outside, onCompared } = terms;
  let isAwaited = true;
  let world: World | undefined;
  try {
    return await crossLater(
      watch,
      {
        waitsFor: userCalls.watchCall(watch),
        party: "environment",
        what: `open task ${task.id}`,
        suspect: suspectOf(environment, "open"),
        timeoutMs,
      },
      async (signal) => {
        const opened = await environment.open(task, {
          user,
          signal,
          ...(outside !== undefined && { outside }),
          ...(onCompared !== undefined && { onCompared }),
        });
        const checked = checkWorld(opened, `environment.open() for task ${task.id}`);
        if (isAwaited) world = checked;
        else await dispose(checked);
        read?.(checked);
        return checked;
      },
    );
  } catch (error) {
    isAwaited = false;
    if (world !== undefined) await dispose(world);
    throw error;
  }
}

const neverAborted = createAbortController().signal;

/**
 * Disposes of a world after any end of its episode.
 *
 * @throws RolloutError with party `environment`.
 */
export async function disposeForeignWorld(
  { environment, task, clock, userCalls, timeoutMs }: Omit<WorldTerms, "watch">,
  world: World,
): Promise<void> {
  // A watch of its own: the world is disposed of even if the caller aborts.
  using watch = new CallWatch(neverAborted, clock);
  const boundary = {
    party: "environment",
    what: `dispose of the world of task ${task.id}`,
    suspect: suspectOf(environment, "dispose"),
    waitsFor: userCalls.watchCall(watch),
    timeoutMs,
  } as const;
  await crossLater(watch, boundary, async (signal) => await world[Symbol.asyncDispose]({ signal }));
}
